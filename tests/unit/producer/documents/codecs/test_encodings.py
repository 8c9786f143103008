"""Tests of encodings: read as declared or recognised, written as read."""

from __future__ import annotations

import codecs
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.documents.codecs.codec import DocumentError
from dragoman_producer.documents.codecs.encodings import decoded, expecting

GERMAN = "Die Straße führt über große Brücken zum schönen Schloß. " * 20


@given(st.binary(max_size=60))
def test_what_is_read_is_written_byte_by_byte(data: bytes) -> None:
    with contextlib.suppress(DocumentError):
        found = decoded(data)
        assert found.encoded(found.text) == data


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_kept(encoding: str) -> None:
    found = decoded("Grüße\r\n".encode(encoding))
    assert found.text == "Grüße\r\n"
    assert found.encoded("Ende\r\n") == "Ende\r\n".encode(encoding)


def test_a_declared_encoding_is_used() -> None:
    assert decoded("Grüße".encode("cp1252"), "windows-1252").text == "Grüße"


def test_an_undeclared_encoding_is_recognised() -> None:
    assert decoded(GERMAN.encode("cp1252")).text == GERMAN


def test_a_wrong_declaration_does_no_harm() -> None:
    assert decoded("Grüße".encode(), "no-such-encoding").text == "Grüße"
    assert decoded("Grüße".encode(), "base64").text == "Grüße"


def test_a_character_that_does_not_fit_is_spelled_or_makes_the_file_utf_8() -> None:
    found = decoded("Grüße".encode("latin-1"), "latin-1")
    assert found.encoded("5 €", lambda c: f"&#{ord(c)};") == b"5 &#8364;"
    assert (found.encoded("5 €"), found.encoding_of("5 €")) == ("5 €".encode(), "utf-8")
    assert codecs.lookup(found.encoding_of("ü")).name == "iso8859-1"


@pytest.mark.parametrize("end", ["\n", "\r", " "])
def test_a_long_file_of_two_bytes_per_character_is_recognised(end: str) -> None:
    text = ("a" + "日本語の文章がここにあります。" * 3 + end) * 15_000
    assert decoded(text.encode("shift_jis")).text == text


def test_binary_data_is_refused() -> None:
    with pytest.raises(DocumentError, match="UTF-8") as caught:
        decoded(bytes(range(256)) * 4)
    assert caught.value.reason == "encoding"


def test_an_expected_encoding_is_taken_rather_than_recognised() -> None:
    data = GERMAN.encode("cp1252")
    with expecting("cp437"):
        assert decoded(data).encoding == "cp437"
        assert decoded(GERMAN.encode()).encoding == "utf-8"
    with expecting("ascii"):
        assert decoded(data).text == GERMAN
    assert decoded(data).text == GERMAN
