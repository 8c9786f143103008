"""Notebooks: Markdown cells are translated in the form of their source."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_documents.codec import DocumentError, Extraction
from dragoman_documents.markup.notebooks import CODECS
from support.documents.laws import (
    GERMAN,
    HOSTILE,
    assert_identity,
    assert_read_back,
    tagged,
    translations,
)

CODEC = CODECS["ipynb"]
CELLS = [
    {"cell_type": "markdown", "metadata": {"title": "Not this"},
     "source": ["# A *title*\n", "\n", "Some text on\n", "two lines."]},
    {"cell_type": "code", "source": ["print('Hello you')"],
     "outputs": [{"output_type": "stream", "text": ["Hello you"]}]},
    {"source": "One string with `code`.\n", "cell_type": "markdown"},
    {"cell_type": "raw", "source": ["Raw text"]},
    {"cell_type": "markdown", "source": []},
    {"cell_type": "markdown", "source": ["- One item"]},
]  # fmt: skip
NOTEBOOK = {"cells": CELLS, "metadata": {"authors": ["Some One"]}, "nbformat": 4}
DATA = json.dumps(NOTEBOOK, indent=1, ensure_ascii=False).encode()


def of_source(source: object) -> Extraction:
    cell = {"cell_type": "markdown", "source": source}
    return assert_identity(CODEC, json.dumps({"cells": [cell]}).encode())


def test_markdown_cells_are_read_with_their_places() -> None:
    found = assert_identity(CODEC, DATA).segments
    assert [each.text for each in found] == [
        "A <g1>title</g1>", "Some text on two lines.", "One string with <x1/>.", "One item",
    ]  # fmt: skip
    assert [each.place.partition(",")[0] for each in found] == [
        "cell 1", "cell 1", "cell 3", "cell 6",
    ]  # fmt: skip


def test_sources_keep_their_form_and_all_else_stays() -> None:
    output = assert_read_back(
        CODEC, DATA, ["Ein <g1>Titel</g1>", "Text.", "Eine Kette: <x1/>.", "Ein Punkt"]
    )
    wanted = json.loads(DATA)
    wanted["cells"][0]["source"] = ["# Ein *Titel*\n", "\n", "Text."]
    wanted["cells"][2]["source"] = "Eine Kette: `code`.\n"
    wanted["cells"][5]["source"] = ["- Ein Punkt"]
    assert output == json.dumps(wanted, indent=1, ensure_ascii=False).encode()


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_marked_translations_read_back(indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(NOTEBOOK, indent=indent, ensure_ascii=ascii_only)
    for data in (text.encode(), text.encode("utf-16"), text.replace("\n", "\r\n").encode()):
        assert_read_back(CODEC, data, tagged(assert_identity(CODEC, data)))


def test_a_bilingual_notebook_holds_both_texts() -> None:
    options = replace(GERMAN, bilingual=True)
    output = assert_read_back(CODEC, DATA, tagged(CODEC.extract(DATA, options)), options)
    assert b"Some text on" in output
    assert b"[de] Some text\\n" in output


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text(text: str) -> None:
    if any(map(str.isalpha, text)):
        assert_read_back(CODEC, DATA, [f"{text} <g1>x</g1>", text, f"x <x1/> {text}", text])


@given(st.lists(translations, min_size=2, max_size=2))
@settings(deadline=None)
def test_any_translation_reads_back(held: list[str]) -> None:
    texts = [text if any(map(str.isalpha, text)) else f"x {text} x" for text in held]
    assert_read_back(CODEC, DATA, [None, texts[0], None, texts[1]])


@pytest.mark.parametrize("source", [["A text", 3], [["A text"]], {"a": "A text"}, 3, None])
def test_a_source_of_another_shape_is_left_alone(source: object) -> None:
    found = of_source(source).segments
    assert not found or source == ["A text", 3]


def test_half_a_surrogate_pair_leaves_its_cell_alone() -> None:
    assert not of_source("Some \ud800 text").segments


def test_what_is_no_notebook_has_no_segments_and_broken_json_is_refused() -> None:
    assert not assert_identity(CODEC, b'{"cells": "Some text", "a": ["Some text"]}').segments
    assert not assert_identity(CODEC, b'{"cells": {"a": {"cell_type": "markdown"}}}').segments
    with pytest.raises(DocumentError, match="not valid JSON at line 1"):
        CODEC.extract(b'{"cells": [', GERMAN)
