// Compiles each page of a folder as Docusaurus does, and writes its tree as HTML.
import fs from 'node:fs';
import path from 'node:path';
import {compile} from '@mdx-js/mdx';
import gfm from 'remark-gfm';
import utils from '@docusaurus/utils';

const [source, output] = process.argv.slice(2);
const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');

function value(each) {
  if (each.value === null || each.value === undefined) return '';
  return typeof each.value === 'string' ? each.value : `{${each.value.value}}`;
}

function attributes(node) {
  const given = node.attributes
    ? node.attributes.map((each) => [each.name ?? 'spread', value(each)])
    : Object.entries(node.properties ?? {}).map(([name, each]) => [name, String(each)]);
  return given.map(([name, each]) => ` ${name}="${escape(each)}"`).join('');
}

function html(node) {
  const inside = (node.children ?? []).map(html).join('');
  if (node.type === 'root') return inside;
  if (node.type === 'text') return escape(node.value);
  if (node.type === 'mdxjsEsm') return `<pre>${escape(node.value)}</pre>`;
  if (node.type.endsWith('Expression')) return `<code>{${escape(node.value)}}</code>`;
  const name = node.tagName ?? node.name ?? 'fragment';
  return `<${name}${attributes(node)}>${inside}</${name}>`;
}

for (const file of fs.readdirSync(source, {recursive: true}).sort()) {
  if (!/\.mdx?$/.test(file) || file.includes('node_modules')) continue;
  const text = fs.readFileSync(path.join(source, file), 'utf8');
  const {content} = utils.parseFileContentFrontMatter
    ? utils.parseFileContentFrontMatter(text)
    : {content: text.replace(/^---\n[\s\S]*?\n---\n/, '')};
  const escaped = utils.escapeMarkdownHeadingIds(content);
  let tree;
  const keep = () => (root) => {
    tree = structuredClone(root);
  };
  await compile(escaped, {remarkPlugins: [gfm], rehypePlugins: [keep]});
  const page = path.join(output, file.replace(/\.mdx?$/, '.html'));
  fs.mkdirSync(path.dirname(page), {recursive: true});
  fs.writeFileSync(page, html(tree));
}
