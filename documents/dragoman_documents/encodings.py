"""Encodings of text files: read as declared or recognised, written as read."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import DocumentError
from dragoman_documents.latin_encodings import cyrillic, latin

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: it begins with the same bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_EXPECTED: Final[ContextVar[str | None]] = ContextVar("expected encoding", default=None)
_NOTES: Final[ContextVar[Notes]] = ContextVar("notes on encodings")
_MOST_RECOGNISED: Final = 1024 * 1024
"""Bytes that are looked at to recognise an encoding."""
_UNKNOWN: Final = "its encoding is unknown; give --encoding, or convert the file to UTF-8"


@dataclass(slots=True)
class Notes:
    """What is known of the encoding of a document beforehand, and what is to be said of it."""

    given: str | None = None
    """By a person, for files that declare none."""
    lang: str | None = None
    """Of the text."""
    recognised: str | None = None
    """The encoding if it was neither declared nor given, and is not UTF-8."""
    left: str | None = None
    """The encoding of the source if the output is UTF-8 because that one lacks characters."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a file, and how to write it back byte by byte."""

    text: str
    encoding: str
    mark: bytes = b""

    def encoded(self, text: str, fallback: Callable[[str], str] | None = None) -> bytes:
        """Return the bytes of a new text in the encoding of the file.

        `fallback` spells a character that the encoding lacks (`&#8364;`, `\\u20ac`); without it the
        bytes are UTF-8: compare `encoding_of`.
        """
        notes = _NOTES.get(Notes())
        notes.left = None
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError:
            if fallback is None:
                notes.left = self.encoding
                return text.encode("utf-8")
            lacking = {ord(each): fallback(each) for each in set(text) if not self._has(each)}
            return self.mark + text.translate(lacking).encode(self.encoding)

    def encoding_of(self, text: str) -> str:
        """Return the encoding that `encoded` uses for a text without a fallback."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return "utf-8"
        return self.encoding

    def _has(self, character: str) -> bool:
        try:
            character.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True


def decoded(data: bytes, declared: str | None = None, *, recognise: bool = True) -> Decoded:
    """Return the text: by its byte order mark, as declared, as UTF-8, as given, or as recognised.

    A format whose files are UTF-8 or declare their encoding recognises none: one damaged character
    would make all others of the file be read as those of another encoding. Newlines stay as they
    are. Raises DocumentError (`encoding`) if no encoding gives the same bytes back.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _exact(data[len(mark) :], encoding, mark)
    notes = _NOTES.get(Notes())
    given = notes.given if declared is None else None
    ascii_too = given if data.isascii() else None
    if declared is not None and (found := _as_declared(data, declared)) is not None:
        return found
    for name in (ascii_too, "utf-8", _EXPECTED.get()):
        if name is not None and (found := _tried(data, name)) is not None:
            return found
    if given is not None:
        return _exact(data, given)
    if not recognise:
        detail = "the bytes are neither UTF-8 nor what it declares; convert it to UTF-8"
        raise DocumentError("encoding", detail)
    found = _exact(data, _recognised(data, notes.lang))
    notes.recognised = found.encoding
    return found


def marked_encoding(start: bytes) -> tuple[bytes, str]:
    """Return the byte order mark with which a file starts, and its encoding; else UTF-8."""
    return next((pair for pair in _MARKS if start.startswith(pair[0])), (b"", "utf-8"))


def newline_of(text: str) -> str:
    """Return the line end of a file that has one kind; of several CRLF, then LF."""
    if "\r\n" in text:
        return "\r\n"
    return "\n" if "\n" in text or "\r" not in text else "\r"


@contextmanager
def expecting(encoding: str) -> Iterator[None]:
    """Have `decoded` take this encoding rather than recognise one, as for the output of a document.

    A translation changes the bytes by which an encoding is recognised.
    """
    token = _EXPECTED.set(encoding)
    try:
        yield
    finally:
        _EXPECTED.reset(token)


@contextmanager
def noting(notes: Notes) -> Iterator[None]:
    """Have `decoded` and `Decoded.encoded` use these notes, and write into them."""
    token = _NOTES.set(notes)
    try:
        yield
    finally:
        _NOTES.reset(token)


def _as_declared(data: bytes, declared: str) -> Decoded | None:
    """Return the text as declared, unless a declaration in ASCII names what ASCII is not part of.

    Such as UTF-16 in a file that somebody converted to UTF-8.
    """
    found = _tried(data, declared)
    is_ascii = b"\0" < data[:1] < b"\x80"
    if found is None or (is_ascii and not found.text.startswith(chr(data[0]))):
        return None
    return found


def _tried(data: bytes, encoding: str) -> Decoded | None:
    try:
        text = data.decode(encoding)
        return (
            Decoded(text, codecs.lookup(encoding).name) if text.encode(encoding) == data else None
        )
    except (LookupError, UnicodeError):
        return None


def _exact(data: bytes, encoding: str, mark: bytes = b"") -> Decoded:
    found = _tried(data, encoding)
    if found is None:
        raise DocumentError(
            "encoding", f"the bytes are not {encoding} throughout; convert the file to UTF-8"
        )
    return Decoded(found.text, found.encoding, mark)


def _recognised(data: bytes, lang: str | None) -> str:
    sample = _sample(data)
    if b"\0" in sample:
        raise DocumentError("encoding", _UNKNOWN)
    if (found := latin(data, sample, lang)) is not None:
        return found
    from charset_normalizer import from_bytes  # noqa: PLC0415  0.1 s, and rarely needed

    best = from_bytes(sample).best()
    if best is None:
        raise DocumentError("encoding", _UNKNOWN)
    return latin(data, sample, lang, best.encoding) or cyrillic(sample, best.encoding)


def _sample(data: bytes) -> bytes:
    """Return the first lines: the end of a line is not inside a character of several bytes."""
    if len(data) <= _MOST_RECOGNISED:
        return data
    behind = max(data.rfind(end, 0, _MOST_RECOGNISED) for end in (b"\n", b"\r", b" ")) + 1
    return data[: behind or _MOST_RECOGNISED]
