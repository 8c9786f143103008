// Prints the ids that a renderer of this folder's node_modules gives to the headings of a page:
// one line of JSON: {renderer, version, ids}.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [name, page, modules] = process.argv.slice(2);
const source = readFileSync(page, "utf8");
const require = createRequire(join(modules, "index.js"));
const manifest = (each) => JSON.parse(readFileSync(join(modules, each, "package.json"), "utf8"));

function entry(each) {
  const { exports, main } = manifest(each);
  const root = typeof exports === "string" ? exports : exports?.["."] ?? exports;
  const found = typeof root === "string" ? root : root?.import?.default ?? root?.import ?? root?.default;
  return typeof found === "string" ? found : main ?? "index.js";
}

const esm = async (each) => import(pathToFileURL(join(modules, each, entry(each))).href);

async function headings(withImages) {
  const { remark } = await esm("remark");
  const { default: gfm } = await esm("remark-gfm");
  const { toString } = await esm("mdast-util-to-string");
  const tree = remark().use(gfm).parse(source);
  const found = tree.children.filter((each) => each.type === "heading");
  const isText = (child) => child.type !== "html" && (withImages || child.type !== "image");
  return found.map((each) => toString(each.children.filter(isText)));
}

const renderers = {
  "github-slugger": async () => {
    const { default: Slugger } = await esm("github-slugger");
    const slugger = new Slugger();
    return (await headings(false)).map((each) => slugger.slug(each));
  },
  "@docusaurus/utils": async () => {
    const { createSlugger } = require("@docusaurus/utils");
    const slugger = createSlugger();
    return (await headings(true)).map((each) => slugger.slug(each, { maintainCase: false }));
  },
  "@astrojs/markdown-remark": async () => {
    const { createMarkdownProcessor } = await esm("@astrojs/markdown-remark");
    const processor = await createMarkdownProcessor({});
    const { metadata } = await processor.render(source);
    return metadata.headings.map((each) => each.slug);
  },
  vitepress: async () => {
    const { createMarkdownRenderer } = await esm("vitepress");
    const renderer = await createMarkdownRenderer(process.cwd(), {});
    const html = await renderer.renderAsync?.(source) ?? renderer.render(source);
    return [...html.matchAll(/<h\d id="([^"]*)"/g)].map((each) => each[1]);
  },
};

console.log(JSON.stringify({ renderer: name, version: manifest(name).version, ids: await renderers[name]() }));
