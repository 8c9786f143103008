"""Tests of .properties and .strings."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.catalogs.properties.codec import CODECS
from dragoman_documents.catalogs.properties.lines import entries, escaped
from dragoman_documents.codec import Codec, DocumentError
from dragoman_documents.read_back import differing
from support.documents.laws import GERMAN, assert_identity, assert_read_back, translations

PROPERTIES, STRINGS = CODECS["properties"], CODECS["strings"]
JAVA = r"""# A comment = not a key
! nor this: one
title=Open file
path.key : C:\\temp\\files and more
spaced\ key\=x    A value with blanks@@
long = first part, \
       second part
empty=
number = 42
unicode=Stra\u00dfe und \ud83d\ude00 Gesicht
lines=one\nand two\n
quoted=It''s {0} now
files={n, plural, one{# file} other{# files}}
""".replace("@@", "  ")
APPLE = r"""/* Title of the window */
"title" = "Open \"file\"";
// another
key.plain = "Hello %@";  "two" = "on
two lines\n"; "shortcut";
"files" = "\U00dcber \u00fcber";
"""


def places(codec: Codec, text: str) -> dict[str, str]:
    return {each.place: each.text for each in assert_identity(codec, text.encode()).segments}


def test_values_of_properties_are_read_as_java_does() -> None:
    found = assert_identity(PROPERTIES, JAVA.encode()).segments
    assert [(each.place, each.text) for each in found] == [
        ("title", "Open file"),
        ("path.key", "C:\\temp\\files and more"),
        ("spaced key=x", "A value with blanks"),
        ("long", "first part, second part"),
        ("unicode", "Stra\u00dfe und \U0001f600 Gesicht"),
        ("lines", "one\nand two"),
        ("quoted", "It's {0} now"),
        ("files", "1 file"),
        ("files", "21 files"),
    ]


def test_values_of_strings_are_read() -> None:
    assert places(STRINGS, APPLE) == {
        "title": 'Open "file"',
        "key.plain": "Hello %@",
        "two": "on\ntwo lines",
        "files": "\u00dcber \u00fcber",
    }


def test_only_values_change() -> None:
    texts = [f"[de] {each.text}" for each in PROPERTIES.extract(JAVA.encode(), GERMAN).segments]
    output = assert_read_back(PROPERTIES, JAVA.encode(), texts).decode("ascii")
    assert "\ntitle=[de] Open file\n" in output
    assert "\nlong = [de] first part, \\\n       second part\nempty=\n" in output
    assert "\nspaced\\ key\\=x    [de] A value with blanks  \n" in output
    assert "\nlines=[de] one\\nand two\\n\n" in output
    assert "\nquoted=[de] It''s {0} now\n" in output
    assert "\nfiles={n, plural, one{[de] # file} other{[de] # files}}\n" in output


@pytest.mark.parametrize(
    ("value", "translation", "expected"),
    [
        ("For {0}", "d'{0}", "d''{0}"),
        ("don't {0}", "d'{0}", "d'{0}"),
        ("don't", "l'a", "l'a"),
        ("it''s {0}", "l'a {0}", "l''a {0}"),
    ],
)
def test_apostrophes_are_doubled_where_message_format_reads(
    value: str, translation: str, expected: str
) -> None:
    output = assert_read_back(PROPERTIES, f"k={value}".encode(), [translation])
    assert output.decode() == f"k={expected}"


def test_an_ascii_file_and_one_in_latin_1_get_escapes() -> None:
    assert assert_read_back(PROPERTIES, b"k=a b", ["\u00fc \U0001f600 x"]) == (
        b"k=\\u00fc \\ud83d\\ude00 x"
    )
    data = "a=Gr\u00fc\u00dfe\nk=a b".encode("latin-1")
    assert PROPERTIES.extract(data, GERMAN).encoding == "iso8859-1"
    assert assert_read_back(PROPERTIES, data, [None, "\u00fc \u20acx"]) == (
        data[:-3] + b"\xfc \\u20acx"
    )
    data = "a=Gr\u00fc\u00dfe\nk=a b".encode()
    assert assert_read_back(PROPERTIES, data, [None, "\u20acx"]).endswith("\u20acx".encode())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_strings_files_keep_their_encoding(encoding: str) -> None:
    data = APPLE.encode(encoding)
    output = assert_read_back(STRINGS, data, ["\u20ac x", None, None, None])
    assert output.decode(encoding) == APPLE.replace('Open \\"file\\"', "\u20ac x")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_stay(newline: str) -> None:
    for codec, text in ((PROPERTIES, JAVA), (STRINGS, APPLE)):
        assert_identity(codec, text.replace("\n", newline).encode())


@given(translations)
def test_any_text_reads_back(text: str) -> None:
    text = f"Wort {text}"
    assert_read_back(PROPERTIES, b"k = a b\nl=c d", [text, None])
    assert_read_back(STRINGS, b'"k" = "a b"; "l" = "c d";', [text, None])


def test_a_translation_without_words_is_not_used() -> None:
    extraction = PROPERTIES.extract(b"k=a b", GERMAN)
    output = PROPERTIES.splice(b"k=a b", extraction, ["{0}"], GERMAN)
    assert differing(PROPERTIES, output, extraction, ["{0}"], GERMAN) == [0]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_value_is_spelled_and_read(value: str) -> None:
    found = [each.value for each in entries(f"k={escaped(value)}")]
    assert found == ([value] if value else [])


@given(st.text(st.sampled_from("ab=: \\\n\r#!u0\t"), max_size=30))
def test_any_text_is_a_properties_file(text: str) -> None:
    assert_identity(PROPERTIES, text.encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'"a" = "b"', "corrupt"),
        (b'"a" "b";', "corrupt"),
        (b'"a" = "b;', "corrupt"),
        (b"/* open", "corrupt"),
        (b"bplist00", "wrong_type"),
        (b"<?xml version='1.0'?>", "wrong_type"),
    ],
)
def test_what_is_no_strings_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        STRINGS.extract(data, GERMAN)
    assert caught.value.reason == reason


def test_a_binary_file_is_no_properties_file() -> None:
    with pytest.raises(DocumentError, match="NUL"):
        PROPERTIES.extract(bytes(range(256)), GERMAN)


@pytest.mark.parametrize(
    "body", ["x", "\\", "\\\n", " ", "=", "\\u00e4", "''", "/*", '\\"', "k=a b\n", '"k"="a b";']
)
def test_huge_files_take_linear_time(body: str) -> None:
    many = body * (2**17 // len(body))
    assert_identity(PROPERTIES, f"k=a {many}".encode())
    assert_identity(PROPERTIES, many.encode())
    for text in (f'"k" = "a {many}";', many, f"/*{many}*/"):
        with contextlib.suppress(DocumentError):
            assert_identity(STRINGS, text.encode())
