"""Ids of headings, equal to those that the renderers themselves made (`heading_ids.py`)."""

import json
from pathlib import Path

import pytest

from dragoman_documents.codec import Options, layout_of
from dragoman_documents.markup.anchors.headings import headings, ids_of
from dragoman_documents.markup.anchors.sluggers import SLUGGERS, WITH_EMOJI, WITH_TERMS
from dragoman_documents.markup.markdown.codec import CODECS, MarkdownLayout
from dragoman_documents.markup.sites import NAMES, site

RECORD = json.loads((Path(__file__).parents[3] / "data/heading_ids.json").read_text())


def ids(
    page: str, slugger: str, *, named: str | None = None, mdx: bool = False
) -> list[str | None]:
    codec = CODECS["mdx" if mdx else "markdown"]
    extraction = codec.extract(page.encode(), Options("de", site=named))
    found = headings(
        layout_of(extraction, MarkdownLayout),
        SLUGGERS[slugger],
        mdx=mdx,
        reads_lists=named is not None,
    )
    return ids_of(found, SLUGGERS[slugger])


@pytest.mark.parametrize("renderer", RECORD["renderers"])
def test_ids_are_those_of_the_renderer(renderer: str) -> None:
    record = RECORD["renderers"][renderer]
    page = "".join(f"## {each}\n\ntext\n\n" for each in RECORD["headings"])

    assert ids(page, record["slugger"]) == record["ids"]


def test_every_slugger_is_compared_with_its_renderer() -> None:
    compared = {each["slugger"] for each in RECORD["renderers"].values()}

    names = {name.removesuffix(WITH_EMOJI) for name in SLUGGERS} - {WITH_TERMS}
    assert {name.removesuffix(WITH_EMOJI) for name in compared} == names
    assert {site(name).slugger for name in NAMES} <= compared
