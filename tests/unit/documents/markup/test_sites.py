"""The table of sites, and which site and format a file has."""

from __future__ import annotations

import os
from pathlib import Path
from string import punctuation

import pytest

from dragoman_documents.catalogs.key_patterns import is_selected
from dragoman_documents.markup import sites
from dragoman_documents.recognition import format_of
from dragoman_documents.site_recognition import Recognized, Sites


@pytest.mark.parametrize("name", [*sites.NAMES, None])
def test_a_name_is_code_or_a_block_but_never_both(name: str | None) -> None:
    site = sites.site(name)
    assert not site.code & site.blocks
    assert set(site.escapes) <= set(punctuation)


def test_an_unnamed_site_has_the_code_and_blocks_of_all() -> None:
    site = sites.site(None)
    assert {"highlight", "code-toggle", "code-block"} <= site.code
    assert {"note", "tab-item", "callout-tip", "details"} <= site.blocks
    assert site.metadata == ("title", "description", "summary")


def test_front_matter_of_a_home_page_is_selected() -> None:
    keys = sites.site("vitepress").metadata
    assert is_selected(("hero", "actions", "0", "text"), keys)
    assert is_selected(("features", "3", "details"), keys)
    assert not is_selected(("hero", "actions", "0", "link"), keys)


@pytest.mark.parametrize(
    ("files", "page", "site", "format_name"),
    [
        ({"docusaurus.config.ts": ""}, "docs/a.md", "docusaurus", "mdx"),
        ({"docusaurus.config.ts": ""}, "README.md", "docusaurus", "markdown"),
        ({"docusaurus.config.js": "markdown: {format: 'detect'}"}, "docs/a.md", "docusaurus", None),
        (
            {"docusaurus.config.js": "{a: 'https://b.c/', format: 'md'}"},
            "docs/a.md",
            "docusaurus",
            None,
        ),
        ({"docusaurus.config.js": "  // format: 'md',"}, "docs/a.md", "docusaurus", "mdx"),
        ({"website/docusaurus.config.ts": "path: '../docs'"}, "docs/b/a.md", "docusaurus", "mdx"),
        ({"website/docusaurus.config.ts": "path: '../docs'"}, "notes/a.md", None, None),
        ({"mkdocs.yml": "x: !!python/name:a.b\ny: !ENV Z"}, "docs/b/a.md", "mkdocs", None),
        ({".vitepress/config.ts": "", "package.json": ""}, "guide/a.md", "vitepress", None),
        ({"hugo.yaml": "", "_config.yml": ""}, "content/a.md", "hugo", None),
        ({"config.toml": 'baseURL = "x"', "content/x.md": ""}, "content/a.md", "hugo", None),
        ({"config.toml": 'base_url = "x"', "content/x.md": ""}, "content/a.md", None, None),
        ({"config/_default/menus.toml": ""}, "content/a.md", "hugo", None),
        ({"_config.yml": "title: A"}, "_posts/a.md", "jekyll", None),
        ({"_config.yml": "title: A\nsource_dir: source"}, "source/a.md", None, None),
        ({"_config.yml": "", "_toc.yml": ""}, "a.md", "sphinx", None),
        ({"conf.py": "extensions = ['myst_parser']"}, "a.md", "sphinx", None),
        ({"conf.py": "extensions = []"}, "a.md", None, None),
        ({"docs.json": '{"navigation": {}}'}, "a.md", "mintlify", None),
        ({"docs.json": "{}"}, "a.md", None, None),
        ({"astro.config.mjs": ""}, "src/content/a.md", "astro", None),
        ({"_quarto.yml": ""}, "a.md", "quarto", None),
        ({"book.toml": ""}, "src/a.md", "mdbook", None),
        ({"antora.yml": ""}, "a.md", "antora", None),
        ({".obsidian/app.json": ""}, "a.md", "obsidian", None),
        ({"mkdocs.yml": "", "blog/hugo.toml": ""}, "blog/content/a.md", "hugo", None),
        ({"mkdocs.yml": "", "sub/.git/HEAD": ""}, "sub/a.md", None, None),
        ({}, "a.md", None, None),
    ],
)
def test_the_nearest_configuration_shows_the_site(
    tmp_path: Path, files: dict[str, str], page: str, site: str | None, format_name: str | None
) -> None:
    for name, content in {".git/HEAD": "", page: "Text", **files}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    found = Sites().of(tmp_path / page)
    assert (found and found.name) == site
    assert format_of(tmp_path / page, found) == (format_name or "markdown")


def test_a_folder_that_a_path_leaves_again_is_not_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mkdocs.yml").touch()
    os.mkfifo(tmp_path / "conf.py")
    monkeypatch.chdir(tmp_path / "site")
    assert Sites().of(Path("../a.md")) is None
    found = Sites().of(Path("docs/a.md"))
    assert found is not None
    assert found.name == "mkdocs"


def test_a_named_site_precedes_a_recognized_one_but_not_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "docusaurus.config.js").write_text("format: 'md'", encoding="utf-8")
    page = tmp_path / "docs" / "a.md"
    assert Sites("mkdocs").of(page) == Recognized("mkdocs", mdx=False)
    named = Sites("docusaurus").of(page)
    assert named is not None
    assert not named.mdx
    assert format_of(page, Sites("react.dev").of(page)) == "mdx"


@pytest.mark.parametrize(
    ("text", "format_name"),
    [
        ("---\ntitle: A\n---\nimport A from 'a';\n\n<A />\n", "mdx"),
        ('# A\n\nimport {A, B} from "a"\n', "mdx"),
        ("Text\nimport A from 'a'\n", "markdown"),
        ("- one:\n  ```js\nimport A from 'a'\n  ```\n", "markdown"),
        ("````md\n```\n\nimport A from 'a'\n````\n", "markdown"),
        ("    \nfrom a import b\n", "markdown"),
        ("<script setup>\n\nimport A from 'a'\n</script>\n", "markdown"),
        ("<!-- a -->\n\nimport A from 'a'\n", "markdown"),
        ("\nImport tea from 'China'\n\nimport tea from China\n", "markdown"),
    ],
)
def test_md_of_no_site_is_mdx_if_it_imports(tmp_path: Path, text: str, format_name: str) -> None:
    page = tmp_path / "a.md"
    page.write_text(text, encoding="utf-8")
    assert format_of(page) == format_name
    assert format_of(page, Recognized("astro", mdx=False)) == "markdown"


def test_the_reference_has_every_site() -> None:
    page = Path(__file__).parents[4] / "docs" / "reference" / "documents.md"
    section = page.read_text("utf-8").partition("\n## Sites\n")[2].partition("\n## ")[0]
    named = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")][1:]
    assert named == list(sites.NAMES)
