# Renders each Markdown file of a folder by kramdown alone, without Liquid.
require "fileutils"
require "kramdown"

source, output = ARGV
Dir.glob("**/*.md", base: source).sort.each do |file|
  text = File.read(File.join(source, file), encoding: "UTF-8").sub(/\A---\n.*?\n---\n/m, "")
  page = File.join(output, file.sub(/\.md\z/, ".html"))
  FileUtils.mkdir_p(File.dirname(page))
  File.write(page, Kramdown::Document.new(text, syntax_highlighter: nil).to_html)
end
