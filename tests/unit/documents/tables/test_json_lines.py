"""Tests of JSONL."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.read_back import SkeletonDiffers, differing
from dragoman_documents.tables.jsonl import CODECS
from dragoman_documents.values import is_text
from support.documents.laws import GERMAN, assert_identity, assert_read_back, translations

CODEC = CODECS["jsonl"]
LINES = """\
{"id": "a1", "text": "A red hat", "meta": {"url": "https://example.org/x", "note": "Say hello"}}

{ "text" : "Second \\"line\\"\\n" , "turns": [{"content": "Hello there"}, {"content": "Bye"}] }
"Only a string"
[1, "In a list", null, true]
"""


def test_strings_that_are_text_are_segments() -> None:
    found = assert_identity(CODEC, LINES.encode()).segments
    assert [(each.text, each.place) for each in found] == [
        ("A red hat", "line 1, text"),
        ("Say hello", "line 1, meta.note"),
        ('Second "line"', "line 3, text"),
        ("Hello there", "line 3, turns.content"),
        ("Bye", "line 3, turns.content"),
        ("Only a string", "line 4"),
        ("In a list", "line 5"),
    ]


def test_fields_are_chosen_by_their_members() -> None:
    options = Options("de", fields=("turns.content", "id"))
    found = assert_identity(CODEC, LINES.encode(), options).segments
    assert [each.text for each in found] == ["a1", "Hello there", "Bye"]


def test_only_the_strings_change() -> None:
    texts = ["Ein Hut", None, 'Zweite "Zeile"', None, "Tsch\u00fcss", None, None]
    output = assert_read_back(CODEC, LINES.encode(), texts).decode()
    assert output == LINES.replace("A red hat", "Ein Hut").replace(
        'Second \\"line\\"', 'Zweite \\"Zeile\\"'
    ).replace("Bye", "Tsch\u00fcss")


def test_a_file_with_escapes_stays_ascii() -> None:
    output = assert_read_back(CODEC, b'{"a": "gr\\u00fcn und rot"}', ["\u00fc \U0001f600 x"])
    assert output == b'{"a": "\\u00fc \\ud83d\\ude00 x"}'


@pytest.mark.parametrize(
    "value",
    ["a1", "user_id", "img/red.png", "https://example.org", "#ffcc00", "2026-01-01T10:00Z",
     "12.5", "", "a@b.org", "key:value", "true"],
)  # fmt: skip
def test_identifiers_are_no_text(value: str) -> None:
    assert not is_text(value)


@pytest.mark.parametrize(
    "value", ["Hello", "Hello.", "No. 5", "\u6f22\u5b57", "Wait...", "\u7b2c5\u7ae0", "a b_c"]
)
def test_words_are_text(value: str) -> None:
    assert is_text(value)


@given(translations)
def test_any_text_reads_back(text: str) -> None:
    output = assert_read_back(CODEC, b'{"a": "x y", "b": ["x y"]}\n', [text, None])
    assert json.loads(output)["a"] == text


def test_a_translation_that_looks_like_an_identifier_is_kept() -> None:
    assert_read_back(CODEC, b'{"a": "x y", "b": "x y"}', ["user_id", "x"])


_values = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=6), st.booleans(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(_values, max_size=3), st.booleans())
def test_any_lines_are_read(values: list[object], ascii_only: bool) -> None:
    lines = [json.dumps(each, ensure_ascii=ascii_only) for each in values]
    data = "\n".join(lines).encode("utf-8", "ignore")
    extraction = assert_identity(CODEC, data)
    assert_read_back(CODEC, data, [f"[de] {each.text}" for each in extraction.segments])


@pytest.mark.parametrize("line", ["{", '{"a": "b"', "hello", '{"a": "\t"}', "[" * 100_000, "{} {}"])
def test_a_line_that_is_no_json_is_named(line: str) -> None:
    with pytest.raises(DocumentError, match="line 2") as caught:
        CODEC.extract(f"{{}}\n{line}\n".encode(), GERMAN)
    assert caught.value.reason == "corrupt"


def test_nesting_is_limited_and_places_stay_short() -> None:
    line = b"[" * 127 + b'{"%s": ["Some text", "More text"]}' % (b"k" * 9_999) + b"]" * 127
    with pytest.raises(DocumentError, match="line 1 is nested more than 128 times"):
        CODEC.extract(line, GERMAN)
    found = assert_identity(CODEC, line[1:-1]).segments
    assert [len(each.place) <= 220 for each in found] == [True, True]


def test_a_lost_string_or_a_changed_number_is_noticed() -> None:
    extraction = CODEC.extract(LINES.encode(), GERMAN)
    with pytest.raises(SkeletonDiffers, match="strings"):
        differing(
            CODEC, LINES.replace(', "In a list"', "").encode(), extraction, [None] * 7, GERMAN
        )
    with pytest.raises(SkeletonDiffers, match="markup"):
        differing(CODEC, LINES.replace("[1,", "[2,").encode(), extraction, [None] * 7, GERMAN)


@pytest.mark.parametrize("body", ["x", " ", "\\\\", "\\u00e4", "a_", "1.", "<g1>"])
def test_huge_strings_take_linear_time(body: str) -> None:
    data = f'{{"a": "b {body * (2**17 // len(body))}"}}\n'.encode()
    extraction = assert_identity(CODEC, data)
    assert_read_back(CODEC, data, [each.text for each in extraction.segments])
    many = ('{"k": [' + '{"a": "b c"},' * 9_000 + "0]}").encode()
    assert len(assert_identity(CODEC, many).segments) == 9_000
