"""How a site keeps the ids of headings, by its configuration."""

from pathlib import Path

import pytest

from dragoman_documents.markup.anchors.settings import AnchorSettings
from dragoman_documents.markup.sites import Anchors
from dragoman_documents.site_recognition import Sites

LIST = "markdown_extensions: [attr_list, toc]\n"
TAGS = """\
site_name: !ENV [NAME, "a"]
plugins: [{x: !relative $docs_dir}]
markdown_extensions:
  - attr_list
  - pymdownx.emoji: {emoji_index: !!python/name:material.extensions.emoji.twemoji }
  - toc:
      slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}
"""


def of(folder: Path, name: str = "docs/page.md", *, choice: str = "auto") -> tuple[str, str]:
    page = folder / name
    form = {".mdx": "mdx", ".ipynb": "ipynb"}.get(page.suffix, "markdown")
    found = AnchorSettings(choice).of(form, Sites().of(page))
    assert found is not None
    return found.slugger, found.ids


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("site_name: a\n", ("python-markdown", "html")),
        (LIST, ("python-markdown", "attributes")),
        ("markdown_extensions: {extra: {}}\n", ("python-markdown", "attributes")),
        (TAGS, ("pymdownx-lower+emoji", "attributes")),
        (
            LIST.replace(
                "toc", "toc: {slugify: !!python/name:markdown.extensions.toc.slugify_unicode }"
            ),
            ("python-markdown-unicode", "attributes"),
        ),
        (
            LIST.replace("toc", "toc: {slugify: !!python/name:ours.slugify }"),
            ("python-markdown", "none"),
        ),
        ("a: [\n", ("python-markdown", "html")),
    ],
)
def test_mkdocs_is_read_without_being_run(
    tmp_path: Path, config: str, expected: tuple[str, str]
) -> None:
    (tmp_path / "mkdocs.yml").write_text(config)

    assert of(tmp_path) == expected


def test_mkdocs_inherits_its_extensions(tmp_path: Path) -> None:
    for name in ("en", "de"):
        (tmp_path / name).mkdir()
    (tmp_path / "en/mkdocs.yml").write_text(LIST)
    (tmp_path / "de/mkdocs.yml").write_text("INHERIT: ../en/mkdocs.yml\n")

    assert of(tmp_path, "de/docs/page.md") == ("python-markdown", "attributes")


@pytest.mark.parametrize(
    ("config", "text", "page", "ids"),
    [
        ("docusaurus.config.js", "", "docs/a.mdx", "attributes"),
        ("docusaurus.config.js", "mdx1Compat: { headingIds: false }", "docs/a.mdx", "comment"),
        ("hugo.toml", "", "content/a.md", "attributes"),
        ("book.toml", "", "src/a.md", "attributes"),
        ("mint.json", "{}", "a.mdx", "attributes"),
        ("_quarto.yml", "", "a.md", "attributes"),
        ("_config.yml", "title: a", "a.md", "attributes"),
        ("astro.config.mjs", "", "src/a.md", "html"),
        ("antora.yml", "", "a.md", "none"),
        ("conf.py", "extensions = ['myst_parser']\nmyst_links = 1", "a.md", "none"),
        ("conf.py", "extensions = ['myst_parser']\nmyst_heading_anchors = 3", "a.md", "label"),
        ("other.txt", "", "a.md", "html"),
        ("other.txt", "", "a.ipynb", "html"),
    ],
)
def test_each_site_has_its_syntax(
    tmp_path: Path, config: str, text: str, page: str, ids: str
) -> None:
    (tmp_path / config).write_text(text)

    assert of(tmp_path, page)[1] == ids


@pytest.mark.parametrize("name", ["hugo.toml", "config/_default/markup.toml"])
def test_hugo_may_give_ids_to_terms(tmp_path: Path, name: str) -> None:
    config = tmp_path / name
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[goldmark.parser]\nautoDefinitionTermID = false\n")
    assert of(tmp_path) == ("goldmark", "attributes")

    config.write_text("[goldmark.parser]\nautoDefinitionTermID = true\n")

    assert of(tmp_path) == ("goldmark+terms", "attributes")


def test_the_nearest_of_two_sites_decides(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text(LIST)
    (tmp_path / "web/.vitepress").mkdir(parents=True)

    assert of(tmp_path, "docs/a.md") == ("python-markdown", "attributes")
    assert of(tmp_path, "web/a.md") == ("mdit-vue", "attributes")


def test_a_choice_overrides_the_site(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text(LIST)

    assert of(tmp_path, choice="html") == ("python-markdown", "html")
    assert of(tmp_path, "a.ipynb", choice="attributes") == ("nbconvert", "html")
    assert of(tmp_path, "a.ipynb", choice="none") == ("nbconvert", "none")


def test_other_formats_have_no_ids(tmp_path: Path) -> None:
    assert AnchorSettings().of("json", Sites().of(tmp_path / "a.json")) is None


def test_only_a_page_of_no_site_is_looked_at(tmp_path: Path) -> None:
    assert AnchorSettings().of("markdown", None) == Anchors("github-slugger", "html", guesses=True)
