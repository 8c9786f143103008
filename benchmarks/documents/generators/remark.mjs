// Renders each Markdown file of a folder as GitHub Flavored Markdown.
import fs from 'node:fs';
import path from 'node:path';
import {remark} from 'remark';
import gfm from 'remark-gfm';
import html from 'remark-html';
import math from 'remark-math';

const [source, output] = process.argv.slice(2);
const renderer = remark().use(gfm).use(math).use(html, {sanitize: false});
for (const file of fs.readdirSync(source, {recursive: true}).sort()) {
  if (!file.endsWith('.md')) continue;
  const page = path.join(output, file.replace(/\.md$/, '.html'));
  fs.mkdirSync(path.dirname(page), {recursive: true});
  const rendered = await renderer.process(fs.readFileSync(path.join(source, file), 'utf8'));
  fs.writeFileSync(page, String(rendered));
}
