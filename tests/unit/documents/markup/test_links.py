"""Links to headings: what a page links to, and where such links lead."""

import pytest

from dragoman_documents.codec import Options
from dragoman_documents.markup.anchors.links import Link, LinkedPage, linked_page
from dragoman_documents.markup.anchors.resolving import Pages
from dragoman_documents.markup.markdown.codec import CODECS
from dragoman_documents.markup.sites import Anchors

ANCHORS = Anchors("github-slugger", "attributes")


def page(text: str, *, mdx: bool = False) -> LinkedPage:
    codec = CODECS["mdx" if mdx else "markdown"]
    return linked_page(codec, text.encode(), Options("de"), ANCHORS, wants_ids=True)


@pytest.mark.parametrize(
    "text",
    [
        "[x](#run-it)",
        '[x](#run-it "title")',
        "[x][ref]\n\n[ref]: #run-it",
        "[x][]\n\n[x]: #run-it",
        "![x](a.png) [y [z]](<#run-it>)",
        'See <a class="b" href="#run-it">x</a>.',
        "<p>\n<a href='#run-it'>x</a>\n</p>",
        "> - [x](#run-it)",
        "| a |\n|---|\n| [x](#run-it) |",
    ],
)
def test_links_with_fragments_are_found(text: str) -> None:
    assert [each.target for each in page(text).links] == ["#run-it"]


def test_links_of_components_are_found() -> None:
    assert page('Text <Link href="/a#b">x</Link>.', mdx=True).links == [Link(1, "/a#b")]


@pytest.mark.parametrize(
    "text", ["`[x](#a)`", "```\n[x](#a)\n```", "[x](a.md)", "<!-- [x](#a) -->", "[x](", "a # b"]
)
def test_code_and_links_without_fragments_are_none(text: str) -> None:
    assert page(text).links == []


def test_lines_of_links_are_counted() -> None:
    assert page("---\ntitle: a\n---\n\n[x](#a)\n[y](#b)\n").links == [Link(5, "#a"), Link(6, "#b")]


def test_ids_are_of_headings_elements_and_lists() -> None:
    text = '# Run it\n\n## B {#b1}\n\n<a id="c"></a><i name=d>x</i>\n\n[e]{#e}\n\n(f)=\n\nG\n---'
    assert page(text).ids == frozenset({"run-it", "b1", "c", "d", "e", "f", "g"})


def test_terms_have_ids_where_the_site_gives_them() -> None:
    text = b"Run it\n: Starts.\n: And stops.\n\n## Run it\n"
    anchors = ANCHORS._replace(slugger="goldmark+terms")

    made = linked_page(CODECS["markdown"], text, Options("de"), anchors, wants_ids=True)

    assert made.ids == frozenset({"run-it", "run-it-1"})


PAGES = Pages(["index.md", "guide/install.md", "guide/index.md", "guide/a b.mdx", "en/x.md"])


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("index.md", "#a", ("index.md", "a")),
        ("index.md", "guide/install.md#a", ("guide/install.md", "a")),
        ("guide/install.md", "../index.md#%C3%BC", ("index.md", "ü")),
        ("index.md", "guide/install#a", ("guide/install.md", "a")),
        ("index.md", "guide/install.html#a", ("guide/install.md", "a")),
        ("index.md", "guide/#a", ("guide/index.md", "a")),
        ("guide/install.md", "../#a", ("index.md", "a")),
        ("guide/index.md", "./a%20b#a", ("guide/a b.mdx", "a")),
        ("guide/index.md", "/docs/guide/install/#a", ("guide/install.md", "a")),
        ("guide/index.md", "/x#a", ("en/x.md", "a")),
        ("index.md", "https://example.com/index.md#a", None),
        ("index.md", "//example.com#a", None),
        ("index.md", "mailto:a@b#c", None),
        ("index.md", "other.md#a", None),
        ("index.md", "#", None),
        ("index.md", "#top", None),
        ("index.md", "#:~:text=a", None),
        ("index.md", "{{ x }}#a", None),
    ],
)
def test_a_link_leads_to_a_page(source: str, target: str, expected: tuple[str, str] | None) -> None:
    assert PAGES.of(source, target) == expected
