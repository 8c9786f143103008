"""JSON, ARB and Chrome messages: values are translated, whatever a translation holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_documents.catalogs.json import codec as json_values
from dragoman_documents.catalogs.json.codec import CODECS
from dragoman_documents.catalogs.json.scanning import strings
from dragoman_documents.codec import DocumentError
from support.documents.laws import (
    GERMAN,
    HOSTILE,
    assert_identity,
    assert_read_back,
    tagged,
    translations,
)

CODEC = CODECS["json"]
DOCUMENT = """\
{ // a comment, "quoted"
  "title": "A \\u00e4 \\"page\\"", /* another */
  "menu": {"file": ["Open file", " Save\\nall ", 3, true, null, -1.5e3, {}, []],},
  "url": "https://example.org", "colour": "#ff8800", "id": "user_id", "empty": "",
  "icu": "{n, plural, one {# file} other {# files",
  "last": "The end"
}
"""
DATA = DOCUMENT.encode()


def test_string_values_are_segments_with_their_paths() -> None:
    found = CODEC.extract(DATA, GERMAN).segments
    assert [(segment.place, segment.text) for segment in found] == [
        ("title", 'A ä "page"'), ("menu.file.0", "Open file"), ("menu.file.1", "Save\nall"),
        ("last", "The end"),
    ]  # fmt: skip


def test_a_document_without_translations_stays_and_marked_ones_read_back() -> None:
    for data in (DATA, DATA.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + DATA):
        assert_read_back(CODEC, data, tagged(assert_identity(CODEC, data)))


def test_blanks_around_a_value_and_its_escapes_stay() -> None:
    output = assert_read_back(CODEC, DATA, [None, None, "Alles\nspeichern", "Schluß"])
    assert output == DATA.replace(b"Save\\nall", b"Alles\\nspeichern").replace(
        b"The end", b"Schlu\\u00df"
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text(text: str) -> None:
    assert_read_back(CODEC, DATA, [text] * 4)


@given(st.lists(translations | st.text().map(lambda text: f"x{text}x"), min_size=4, max_size=4))
@settings(deadline=None)
def test_any_translation_reads_back(held: list[str]) -> None:
    assert_read_back(CODEC, DATA, held)


def test_keys_select_values() -> None:
    options = replace(GERMAN, keys=("menu.**", "last"))
    found = CODEC.extract(DATA, options).segments
    assert [segment.place for segment in found] == ["menu.file.0", "menu.file.1", "last"]


def test_descriptions_of_arb_resources_are_left_alone() -> None:
    data = b'{"@@locale": "en", "hi": "Hello", "@hi": {"description": "A greeting here"}}'
    found = CODECS["arb"].extract(data, GERMAN).segments
    assert [segment.text for segment in found] == ["Hello"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[1 2]", b'{"a" "b"}', b'{"a": }', b'["a"', b"]", b'"a" "b"', b'"a', b"[1}",
     b"{1: 2}", b"nul", b"/* x", b'["a\\x"]', b"[,]x", b"{,}", b"[1,,2]", b"1,", b"{} {}",
     b"[1x]", b'{"a": 1, "b"}', b"[}", b"1 /* x"],
)  # fmt: skip
def test_invalid_json_is_refused_with_its_line(data: bytes) -> None:
    with pytest.raises(DocumentError, match="not valid JSON at line 1"):
        CODEC.extract(data, GERMAN)


@pytest.mark.parametrize("unit", ["[", '{"a":', '["x y",', "/*", "//", "/**/", '"', "1,", "\\"])
def test_repeated_structure_takes_linear_time(unit: str) -> None:
    data = (unit * 131_072)[:131_072].encode()
    with pytest.raises(DocumentError):
        CODEC.extract(data, GERMAN)


def test_nesting_is_limited() -> None:
    data = b"[" * 128 + b'"Some text"' + b"]" * 128
    assert len(assert_identity(CODEC, data).segments) == 1
    with pytest.raises(DocumentError, match="line 2 is nested more than 128 times"):
        CODEC.extract(b"[\n" + data + b"]", GERMAN)


def test_places_stay_short_under_a_long_key() -> None:
    data = b'{"%s": ["Some text", {"%s": "More text"}]}' % (b"k" * 9_999, b"l" * 9_999)
    assert all(len(each.place) <= 200 for each in CODEC.extract(data, GERMAN).segments)


def test_the_document_is_looked_through_for_escapes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(json_values, "is_escaped", calls.append)
    data = b'["Some text", "More text", "Last text"]'
    assert_read_back(CODEC, data, tagged(CODEC.extract(data, GERMAN)))
    assert len(calls) <= 3  # two extractions, one read-back


def test_a_translation_that_its_encoding_lacks_reads_back() -> None:
    data = '{"a": "Die Straße führt über große Brücken zum schönen Schloß"}'.encode("cp1252")
    assert b'"\\u041f\\u0440' in assert_read_back(CODEC, data, ["Привет вам"])


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def _strings(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[object, object]]:
    """Yield the strings of a value of Python with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _strings(each, (*path, index))


@given(_json, st.booleans(), st.sampled_from([None, 1]))
def test_strings_and_paths_are_those_that_python_reads(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = [(each.path, each.value) for each in strings(f" {text}\n")]
    assert found == list(_strings(value))
    assert all(json.loads(text[each.start : each.end]) == each.value for each in strings(text))


@given(st.text(alphabet='[]{},:"\\/*1 a\n', max_size=12))
def test_what_python_reads_is_read_and_all_else_is_refused_or_has_comments(text: str) -> None:
    try:
        json.loads(text)
        valid = True
    except ValueError:
        valid = False
    try:
        list(strings(text))
        read = True
    except DocumentError:
        read = False
    plain = not set("/*,\n") & set(text) and not re.search(r"[0-9][0-9]", text)
    assert read >= valid
    assert read == valid or not plain


MESSAGES = b"""{
  "@@locale": "en", "files": "You have {n, plural, one{# file} other{# files}}",
  "@files": {"placeholders": {"n": {"type": "int"}}}, "hi": "Hello {name}"
}"""


@pytest.mark.parametrize("name", ["json", "arb"])
def test_icu_messages_have_the_forms_of_the_target_language(name: str) -> None:
    codec, polish = CODECS[name], replace(GERMAN, target_lang="pl", keys=("files", "hi"))
    found = assert_identity(codec, MESSAGES, polish).segments
    assert [each.plural for each in found] == ["one", "few", "many", "other", None]
    assert [each.place for each in found] == ["files"] * 4 + ["hi"]
    texts = [f"Masz {each.number or '#'} x{each.plural}" for each in found[:4]]
    output = assert_read_back(codec, MESSAGES, [*texts, "Cześć {name}"], polish).decode()
    assert "few{Masz # xfew}" in output
    assert "Cześć {name}" in output


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text_in_icu_messages(text: str) -> None:
    found = CODECS["arb"].extract(MESSAGES, GERMAN).segments
    texts = [f"{text} x {each.number} x" if each.number else text for each in found]
    if any(map(str.isalpha, text)) and not set(text) & set("{1"):
        assert_read_back(CODECS["arb"], MESSAGES, texts)


CHROME = b"""{"greeting": {
  "message": "Hello $user$, that is $1 for $$5", "description": "A greeting with a name",
  "placeholders": {"user": {"content": "$1", "example": "Cira Smith"}}
}, "name": {"message": "Word counter"}}"""


def test_only_messages_of_chrome_extensions_are_read_and_placeholders_are_tags() -> None:
    found = assert_identity(CODECS["chrome"], CHROME).segments
    assert [(each.place, each.text) for each in found] == [
        ("greeting.message", "Hello <x1/>, that is <x2/> for <x3/>5"),
        ("name.message", "Word counter"),
    ]
    assert_read_back(CODECS["chrome"], CHROME, tagged(CODECS["chrome"].extract(CHROME, GERMAN)))
    output = assert_read_back(CODECS["chrome"], CHROME, ["<x3/>5: <x2/>, <x1/>", None])
    assert b'"$$5: $1, $user$"' in output


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text_in_chrome_messages(text: str) -> None:
    assert_read_back(CODECS["chrome"], CHROME, [f"{text} <x1/> <x2/> {text} <x3/>", text])


@pytest.mark.parametrize(("language", "written"), [("zh-Hant", "zh_Hant"), ("de", "de")])
def test_the_language_of_an_arb_file_is_set_with_its_first_translation(
    language: str, written: str
) -> None:
    codec, options = CODECS["arb"], replace(GERMAN, target_lang=language)
    data = b'{"@@locale": "en", "a": "One cat", "@a": {"x": "No"}}'
    assert_identity(codec, data, options)
    output = assert_read_back(codec, data, ["Eine Katze"], options)
    assert output == f'{{"@@locale": "{written}", "a": "Eine Katze", "@a": {{"x": "No"}}}}'.encode()
    data = b'{"@@locale": "en", "@@locale": 3, "a": "One cat"}'
    assert_read_back(codec, data, ["Eine Katze"], options)
