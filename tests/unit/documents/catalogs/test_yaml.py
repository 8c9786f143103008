"""YAML: values of every style are translated in place, whatever a translation holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.catalogs.key_patterns import is_selected
from dragoman_documents.catalogs.yaml.codec import CODECS
from dragoman_documents.codec import DocumentError
from dragoman_documents.values import is_text
from support.documents.laws import (
    GERMAN,
    HOSTILE,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
    translations,
)

CODEC = CODECS["yaml"]
DOCUMENT = """\
# a comment
title: Plain text   # why
single: 'It''s quoted'
double: "With \\"escapes\\" \\u00e4"
wrapped: a plain value
  on two lines
flow: {a: Flow text, b: [One item, "two", 3, yes, null, 2024-01-01]}
anchor: &name !!str Anchored text
alias: *name
custom: !Ref Resource
url: https://example.org/x
path: ./docs/index.md
colour: "#ff8800"
literal: |
  First line

    indented line
  last line

folded: >-
  Folded text
  goes on

  new paragraph
list:
- Listed
- - Nested
? complex key
: Complex value
---
Second document
...
"""


def texts(document: str, *keys: str) -> list[str]:
    """Return the texts of the segments."""
    options = replace(GERMAN, keys=keys)
    return [segment.text for segment in CODEC.extract(document.encode(), options).segments]


def test_string_values_are_segments_and_nothing_else() -> None:
    assert texts(DOCUMENT) == [
        "Plain text", "It's quoted", 'With "escapes" ä', "a plain value on two lines", "Flow text",
        "One item", "two", "Anchored text", "First line\n\n  indented line\nlast line",
        "Folded text goes on\nnew paragraph", "Listed", "Nested", "Complex value",
        "Second document",
    ]  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_document_without_translations_stays_and_marked_ones_read_back(newline: str) -> None:
    data = DOCUMENT.replace("\n", newline).encode()
    extraction = assert_identity(CODEC, data)
    assert_identity(CODEC, b"\xef\xbb\xbf" + data)
    assert_read_back(CODEC, data, tagged(extraction))
    assert_read_back(CODEC, b"\xef\xbb\xbf" + data, tagged(extraction))
    assert_read_back(CODEC, data.decode().encode("utf-16"), tagged(extraction))


def test_each_style_is_kept_and_plain_values_are_quoted_where_they_must_be() -> None:
    data = b"a: one\nb: 'two'\nc: \"three\"\nd: |\n  four\n"
    assert assert_read_back(CODEC, data, ["eins", "zw'ei", 'dr"ei', "vier\nfünf"]).decode() == (
        "a: eins\nb: 'zw''ei'\nc: \"dr\\\"ei\"\nd: |\n  vier\n  fünf\n"
    )
    assert assert_read_back(CODEC, b"a: one", ["yes: no"]) == b'a: "yes: no"'
    assert assert_read_back(CODEC, b"a: one", ["yes"]) == b'a: "yes"'


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text_in_every_place(text: str) -> None:
    held = text if is_text(text) else f"x {text} x"
    count = len(CODEC.extract(DOCUMENT.encode(), GERMAN).segments)
    assert_read_back(CODEC, DOCUMENT.encode(), [held] * count)


@given(st.data())
def test_any_translation_reads_back(data: st.DataObject) -> None:
    count = len(CODEC.extract(DOCUMENT.encode(), GERMAN).segments)
    held = [data.draw(translations.filter(is_text)) for _ in range(count)]
    assert_read_back(CODEC, DOCUMENT.encode(), held)


@given(st.text(min_size=1).map(lambda text: f"x{text}x"))
def test_quotes_hold_every_character(text: str) -> None:
    assert_read_back(CODEC, b"a: \"one\"\nb: two\nc: 'three'", [text] * 3)


@pytest.mark.parametrize("text", ["[de] Text", "Text\u2028Text"])
@pytest.mark.parametrize("value", ["Some text\xa0", "|\n  Some text\xa0\n"])
def test_a_no_break_space_at_the_end_of_a_value_does_not_stay_behind_quotes(
    value: str, text: str
) -> None:
    assert_read_back(CODEC, f"a: {value}\nb: Other\n".encode(), [text, "[de] Other"])


def test_keys_select_values() -> None:
    document = "a: {t: One, u: Two}\nb: [{t: Three}]\nt: Four\n"
    assert texts(document, "*.t") == ["One"]
    assert texts(document, "**.t") == ["One", "Three", "Four"]
    assert texts(document, "b.*.t", "t") == ["Three", "Four"]
    assert is_selected(("a", "b", "c"), ["a.**", "x"])


@pytest.mark.parametrize("data", [b"a: [", b"\tx: y", b"a: b: c", b"a: \x01"])
def test_invalid_yaml_is_refused_without_its_text(data: bytes) -> None:
    with pytest.raises(DocumentError, match="not valid YAML"):
        CODEC.extract(data, GERMAN)


def test_nesting_is_limited() -> None:
    data = b"- " * 127 + b"a: Some text\n"
    assert len(assert_identity(CODEC, data).segments) == 1
    with pytest.raises(DocumentError, match="line 2 is nested more than 128 times"):
        CODEC.extract(b"# a\n- " + data, GERMAN)


def test_places_stay_short_under_a_long_key() -> None:
    data = b"? %s\n: [Some text, More text]\n" % (b"k" * 9_999)
    assert all(len(each.place) <= 200 for each in assert_identity(CODEC, data).segments)


def test_a_translation_that_its_encoding_lacks_reads_back() -> None:
    text = "Die Straße führt über große Brücken zum schönen Schloß"
    data = f"a: {text}\nb: {text}\n".encode("cp1252")
    output = assert_read_back(CODEC, data, ["Привет вам", None])
    assert output.decode() == f"a: Привет вам\nb: {text}\n"


@pytest.mark.parametrize("unit", ["[", "{a: ", "- ", "a: &a *a\n", "? ", "x\n", "'", "- x\n"])
def test_repeated_structure_takes_linear_time_and_stays(unit: str) -> None:
    data = (unit * 65_536)[:65_536].encode()
    try:
        extraction = assert_identity(CODEC, data)
    except DocumentError:
        return
    CODEC.splice(data, extraction, tagged(extraction), GERMAN)


SYMBOLS = """\
order: [ :year, :month, "a :b" ]  # [ :c
map: {k: :v, :s: some words, t: [::x, :y z w]}
literal: |
  [ :block ] text
"""


def test_symbols_in_brackets_are_read_as_yaml_1_2_has_them() -> None:
    extraction = assert_identity(CODEC, SYMBOLS.encode())
    texts = [each.text for each in extraction.segments]
    assert texts == ["a :b", "some words", ":y z w", "[ :block ] text"]
    assert_itself_again(CODEC, SYMBOLS.encode())
    output = assert_read_back(CODEC, SYMBOLS.encode(), [":eins", ":zwei", None, ":vier"]).decode()
    assert output.startswith('order: [ :year, :month, ":eins" ]  # [ :c\nmap: {k: :v, :s: ":zwei",')


def test_a_file_that_libyaml_reads_gets_no_symbol_in_brackets() -> None:
    assert b'[":eins"]' in assert_read_back(CODEC, b"a: [one word] # [ :x", [":eins"])


@pytest.mark.parametrize("text", ["a: [ :b, c: d: e ]", "a: [ :b, @c ]", "a: [ :b"])
def test_symbols_do_not_make_a_file_valid_that_has_another_fault(text: str) -> None:
    with pytest.raises(DocumentError):
        CODEC.extract(text.encode(), GERMAN)
