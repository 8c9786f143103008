"""Plain text: lines, wrapped paragraphs, bilingual output."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.plain import CODECS
from dragoman_text.spans import has_letters
from support.documents.laws import (
    GERMAN,
    HOSTILE,
    assert_identity,
    assert_read_back,
    tagged,
    translations,
)

CODEC = CODECS["txt"]
WRAPPED = (
    "This paragraph was wrapped by its author at seventy columns, as people\n"
    "have done for decades in files named README, and as mail programs still\n"
    "do today.\n"
)
LINES = "1.0\n\nFirst title\nA second and longer title of the list\nThird\n\n    indented  \n"


def texts(document: str) -> list[str]:
    """Return the texts of the segments."""
    return [segment.text for segment in CODEC.extract(document.encode(), GERMAN).segments]


def test_lines_are_segments_and_a_wrapped_paragraph_is_one() -> None:
    assert texts(LINES) == [
        "First title", "A second and longer title of the list", "Third", "indented",
    ]  # fmt: skip
    assert texts(WRAPPED) == [" ".join(WRAPPED.split())]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_document_without_translations_stays_as_it_is(newline: str) -> None:
    document = (LINES + "\n" + WRAPPED).replace("\n", newline).encode()
    assert_identity(CODEC, document)
    assert_identity(CODEC, b"\xef\xbb\xbf" + document)
    output = assert_read_back(CODEC, document, tagged(CODEC.extract(document, GERMAN)))
    assert output.count(newline.encode()) == document.count(newline.encode())


def test_a_translated_paragraph_is_wrapped_as_its_source() -> None:
    text = "Dieser Absatz wurde von seinem Autor umbrochen, wie es Leute seit Jahren tun. " * 3
    output = assert_read_back(CODEC, WRAPPED.encode(), [text.strip()]).decode()
    assert max(map(len, output.splitlines())) <= 72
    assert len(output.splitlines()) == 4


def test_a_bilingual_text_has_each_translation_behind_its_source() -> None:
    options = replace(GERMAN, bilingual=True)
    document = (LINES + "\n" + WRAPPED).encode()
    output = assert_read_back(CODEC, document, tagged(CODEC.extract(document, options)), options)
    assert b"First title\n[de] First title\nA second" in output
    assert b"    indented  \n" not in output
    assert b"\ndo today.\n\n[de] This" in output


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text(text: str) -> None:
    held = text if has_letters(text) else f"x {text} x"
    assert_read_back(CODEC, (LINES + "\n" + WRAPPED).encode(), [held] * 5)


@given(st.lists(translations.filter(has_letters), min_size=5, max_size=5))
def test_any_translation_reads_back(held: list[str]) -> None:
    document = ("1\n\nFirst title\n\nshort\n\nThird\n\nx\n\n" + WRAPPED).encode()
    assert_read_back(CODEC, document, held)


def test_text_like_our_own_tags_stays() -> None:
    assert texts("Write <g1> here") == ["Write <x1/> here"]
    assert assert_read_back(CODEC, b"Write <g1> here", ["Hier <x1/>"]) == b"Hier <g1>"


@pytest.mark.parametrize("unit", ["x", " ", "a ", "\n", "\r", "x\n", "<g1>", "- "])
def test_repeated_text_takes_linear_time_and_stays(unit: str) -> None:
    document = (unit * 131_072)[:131_072].encode()
    extraction = assert_identity(CODEC, document)
    CODEC.splice(document, extraction, tagged(extraction), GERMAN)


@pytest.mark.timeout(120)
def test_a_long_run_of_blanks_in_a_translation_takes_linear_time() -> None:
    """A search from each blank takes many minutes."""
    gap = " " * 400_000
    assert assert_read_back(CODEC, b"x\n", [f"a{gap}b{gap}\r\n c"]) == f"a{gap}b c\n".encode()


@pytest.mark.timeout(120)
def test_a_long_run_of_blanks_between_texts_takes_linear_time() -> None:
    """A search from each blank takes many minutes."""
    data = f"x\n{' ' * 400_000}-\ny\n".encode()
    assert_read_back(CODEC, data, ["a", "b"])


def test_lines_stay_lines_when_translations_look_wrapped() -> None:
    data = b"one\ntwo\nthree\n"
    long = "eine Zeile, die so lang ist, dass sie wie der Anfang eines Absatzes aussieht"
    output = assert_read_back(CODEC, data, [long, long, "kurz"])
    assert output.decode() == f"{long} \n{long}\nkurz\n"


def test_a_wrapped_paragraph_keeps_the_lines_that_did_not_change() -> None:
    lines = [
        "A line that its author has wrapped at some column of a page, and",
        "not where a program would have; the one after that is",
        "the same again.",
    ]
    data = "\r\n".join(lines).encode()
    found = CODEC.extract(data, GERMAN)
    assert len(found.segments) == 1
    text = found.segments[0].text
    assert CODEC.splice(data, found, [text], GERMAN) == data
    changed = CODEC.splice(data, found, [text.replace("again", "anew")], GERMAN)
    assert changed == data.replace(b"again", b"anew")
