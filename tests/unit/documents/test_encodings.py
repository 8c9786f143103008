"""Tests of encodings: read as declared or recognised, written as read."""

from __future__ import annotations

import codecs
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import DocumentError
from dragoman_documents.encodings import Notes, decoded, expecting, noting

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


@pytest.mark.parametrize("declared", ["utf-16-le", "utf_16_be", "utf-32", "cp037"])
def test_a_declaration_that_could_not_be_read_so_is_not_believed(declared: str) -> None:
    data = f'<?xml version="1.0" encoding="{declared}"?><a>Grüße</a>'.ljust(80).encode()
    assert decoded(data, declared).encoding == "utf-8"


def test_an_undeclared_encoding_is_recognised() -> None:
    assert decoded(GERMAN.encode("cp1252")).text == GERMAN


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Café crème brûlée … très bon, déjà vu à l'hôtel."),
        ("cp1252", "¿Qué tal, señor? ¡Adiós mañana!"),
        ("cp1252", "Não há opções, você é alemão."),
        ("cp1252", "Åke äter ärtsoppa på ön."),
        ("cp1252", "Rødgrød med fløde på æblet."),
        ("cp1252", "Price: £5 for ½ cup, 20 °C, ± 5 µm."),
        ("cp1252", "mañana"),
        ("cp1252", "It’s “quoted” – and more…"),
        ("cp1252", "It’s"),
        ("cp1252", "«\xa0Oui\xa0» dit-il, 5\xa0kg"),
        ("mac_roman", "It’s “quoted” – and more…"),
        ("mac_roman", "café"),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
        ("cp1250", "Zażółć gęślą jaźń, łódź płynie."),
        ("cp1250", "Čovjek šeće kroz žuto polje."),
        ("iso8859_2", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
        ("cp1254", "Şu ılık günde çocuğun ağacı güzel."),
        ("cp1257", "Ąžuolas ėmė žydėti, šįkart gražiai."),
        ("mac_roman", "Grüße aus München, schöne Straße."),
        ("cp1251", "Привет, как дела сегодня?"),
        ("cp1251", "Привет, как дела? Это простой текст.\n" * 20),
        ("shift_jis", "日本語の文章です。"),
    ],
)
def test_the_letters_of_a_language_tell_its_encoding(encoding: str, text: str) -> None:
    assert decoded(text.encode(encoding)).text == text


def test_the_language_of_the_text_tells_apart_what_its_letters_do_not() -> None:
    data = "reč".encode("cp1250")
    assert decoded(data).text == "reè"
    with noting(Notes(lang="cs")):
        assert decoded(data).text == "reč"


def test_an_encoding_that_is_given_is_that_of_files_that_declare_none() -> None:
    with noting(Notes(given="cp1251")):
        assert decoded("Да".encode("cp1251")).text == "Да"
        assert decoded("Да".encode()).text == "Да"
        assert decoded("Да".encode("koi8-r"), "koi8-r").text == "Да"
        assert decoded(b"ASCII").encoded("Да") == "Да".encode("cp1251")
    with noting(Notes(given="ascii")), pytest.raises(DocumentError, match="not ascii"):
        decoded("Straße".encode("cp1252"))


def test_notes_say_what_was_recognised_and_what_an_output_lacks() -> None:
    with noting(notes := Notes()):
        found = decoded(GERMAN.encode("cp1252"))
        assert notes == Notes(recognised="cp1252")
        found.encoded("Łódź")
        assert notes.left == "cp1252"
        found.encoded("Straße")
        assert notes.left is None
    with noting(notes := Notes()):
        decoded(GERMAN.encode())
        decoded(GERMAN.encode("cp1252"), "cp1252")
        assert notes == Notes()


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
