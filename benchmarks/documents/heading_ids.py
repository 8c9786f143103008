"""The ids that renderers give to headings, recorded: `tests/data/heading_ids.json`.

    python benchmarks/documents/heading_ids.py [--npm NODE_MODULES] [--mdbook PROGRAM]

Renders the headings of that file by each renderer that is installed (Python packages in this
environment, Ruby's, those of npm in a folder) and writes its ids and version into the file. What is
not installed keeps what was recorded.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests/data/heading_ids.json"
SCRIPT = Path(__file__).parent / "generators/heading_ids.mjs"
_IDS = re.compile(r'<h2[^>]*?\bid="([^"]*)"')
_RUBY = """
require "json"; require "kramdown"; require "kramdown-parser-gfm"
page = Kramdown::Document.new(File.read(ARGV[1], encoding: "UTF-8"), input: ARGV[0])
version = ARGV[0] == "GFM" ? Kramdown::Parser::GFM::VERSION : Kramdown::VERSION
puts JSON.dump([version, page.to_html.scan(/<h2 id="([^"]*)"/).flatten])
"""

Made = tuple[str, list[str]]


def ids_in(page: str) -> list[str]:
    """Return the ids of the headings of a page."""
    return [html.unescape(each) for each in _IDS.findall(page)]


def _python_markdown(page: str, slugify: Any = None) -> list[str]:
    markdown = import_module("markdown")
    settings = {"toc": {"slugify": slugify}} if slugify else {}
    return ids_in(markdown.markdown(page, extensions=["toc"], extension_configs=settings))


def python_markdown(page: str) -> Made:
    return version("markdown"), _python_markdown(page)


def slugify_unicode(page: str) -> Made:
    slugify = import_module("markdown.extensions.toc").slugify_unicode
    return version("markdown"), _python_markdown(page, slugify)


def with_emoji(page: str) -> Made:
    markdown = import_module("markdown")
    return version("markdown"), ids_in(
        markdown.markdown(page, extensions=["toc", "pymdownx.emoji"])
    )


def of_pymdownx(case: str) -> Callable[[str], Made]:
    """Return the recorder of pymdownx.slugs with a setting of `case`."""

    def record(page: str) -> Made:
        slugify = import_module("pymdownx.slugs").slugify
        return version("pymdown-extensions"), _python_markdown(page, slugify(case=case))

    return record


def pandoc(page: str) -> Made:
    pypandoc = import_module("pypandoc")
    made = pypandoc.convert_text(page, "html", format="markdown")
    return pypandoc.get_pandoc_version(), ids_in(made)


def nbconvert(page: str) -> Made:
    rendered = import_module("nbconvert.filters.markdown_mistune").markdown2html_mistune
    return version("nbconvert"), [unquote(each) for each in ids_in(rendered(page))]


def myst_parser(page: str) -> Made:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "conf.py").write_text('extensions=["myst_parser"]\nmyst_heading_anchors=6\n')
        (root / "index.md").write_text(f"# Title\n\n{page}")
        command = ["sphinx-build", "-q", "-b", "pseudoxml", folder, f"{folder}/out"]
        subprocess.run(command, capture_output=True, check=True)
        made = (root / "out/index.pseudoxml").read_text()
    slugs = [html.unescape(each) for each in re.findall(r' slug="([^"]*)"', made)]
    return version("myst-parser"), slugs[1:]


def hugo(page: str) -> Made:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for each in ("content", "layouts/_default"):
            (root / each).mkdir(parents=True)
        (root / "hugo.toml").write_text('baseURL="https://example.com/"\n')
        (root / "content/a.md").write_text(f"---\ntitle: a\n---\n{page}")
        (root / "layouts/_default/single.html").write_text("{{ .Content }}")
        command = ["hugo", "-s", folder, "-d", f"{folder}/out"]
        subprocess.run(command, capture_output=True, check=True)
        return version("hugo"), ids_in((root / "out/a/index.html").read_text())


def _kramdown(page: str, parser: str) -> Made:
    with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
        file.write(page)
        file.flush()
        command = ["ruby", "-e", _RUBY, parser, file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Made = json.loads(done.stdout)
    return found


def kramdown(page: str) -> Made:
    return _kramdown(page, "kramdown")


def kramdown_gfm(page: str) -> Made:
    return _kramdown(page, "GFM")


def of_npm(name: str, modules: Path) -> Callable[[str], Made]:
    """Return the recorder of a package of npm."""

    def record(page: str) -> Made:
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write(page)
            file.flush()
            command = ["node", str(SCRIPT), name, file.name, str(modules)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        made = json.loads(done.stdout.splitlines()[-1])
        return made["version"], made["ids"]

    return record


def of_mdbook(program: str) -> Callable[[str], Made]:
    """Return the recorder of mdBook."""

    def record(page: str) -> Made:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "src").mkdir()
            (root / "book.toml").write_text('[book]\ntitle = "a"\n')
            (root / "src/SUMMARY.md").write_text("- [a](a.md)\n")
            (root / "src/a.md").write_text(page)
            subprocess.run([program, "build", folder], capture_output=True, check=True)
            made = (root / "book/a.html").read_text()
        command = [program, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split()[-1].lstrip("v"), ids_in(made)

    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npm", type=Path, default=ROOT / "build/generators/npm/node_modules")
    parser.add_argument("--mdbook", default="mdbook")
    given = parser.parse_args()
    recorders: dict[str, tuple[str, Callable[[str], Made]]] = {
        "Python-Markdown": ("python-markdown", python_markdown),
        "Python-Markdown, slugify_unicode": ("python-markdown-unicode", slugify_unicode),
        "Python-Markdown, pymdownx.emoji": ("python-markdown+emoji", with_emoji),
        **{
            f"pymdownx, case={case}": (f"pymdownx-{case}", of_pymdownx(case))
            for case in ("none", "lower", "lower-ascii", "fold")
        },
        "pandoc": ("pandoc", pandoc),
        "nbconvert": ("nbconvert", nbconvert),
        "MyST-Parser": ("myst-parser", myst_parser),
        "Hugo": ("goldmark", hugo),
        "kramdown": ("kramdown", kramdown),
        "kramdown-parser-gfm": ("kramdown-gfm", kramdown_gfm),
        "github-slugger": ("github-slugger", of_npm("github-slugger", given.npm)),
        "@docusaurus/utils": ("docusaurus", of_npm("@docusaurus/utils", given.npm)),
        "@astrojs/markdown-remark": ("astro", of_npm("@astrojs/markdown-remark", given.npm)),
        "vitepress": ("mdit-vue", of_npm("vitepress", given.npm)),
        "mdBook": ("mdbook", of_mdbook(given.mdbook)),
    }
    record = json.loads(RECORD.read_text())
    page = "".join(f"## {each}\n\ntext\n\n" for each in record["headings"]) + "[r]: /url\n"
    for name, (slugger, recorder) in recorders.items():
        try:
            made = recorder(page)
        except (ImportError, OSError, subprocess.CalledProcessError, IndexError) as error:
            print(f"{name}: not run: {type(error).__name__}")
            continue
        record["renderers"][name] = {"version": made[0], "slugger": slugger, "ids": made[1]}
        print(f"{name} {made[0]}: {len(made[1])} ids")
    RECORD.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
