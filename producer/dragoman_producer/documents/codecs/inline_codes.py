"""Inline markup of segments: to `<g1>..</g1>` and `<x2/>`, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_producer.documents.codecs.codec import InlineCode

_TAG: Final = re.compile(r"<(/?)([gx])([1-9][0-9]{0,5})(/?)>")
LOOKALIKE: Final = re.compile(r"<\s{0,3}/?\s{0,3}[gxGX]\s{0,3}[0-9]{1,6}\s{0,3}/?\s{0,3}>")
"""Text of a document that a reader could take for one of our tags; it becomes a code itself."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The start of a pair of inline markup, with both of its codes."""

    opening: str
    closing: str


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of the last pair that is still open."""


@dataclass(frozen=True, slots=True)
class Single:
    """Markup without text in it: an image, a line break, inline code."""

    code: str


Piece = str | Opening | Closing | Single


def composed(
    pieces: Iterable[Piece], escape: Callable[[str], str] = str
) -> tuple[str, tuple[InlineCode, ...]]:
    """Return a segment's text and codes. Pairs nest, and all are closed.

    `escape` spells decoded text as the document would, for text that looks like one of our tags.
    Neighbouring texts are one, so that such text is seen whole.
    Raises ValueError if pairs do not nest.
    """
    text = _Composing(escape)
    for piece in pieces:
        text.add(piece)
    return text.done()


def of_text(text: str, escape: Callable[[str], str] = str) -> tuple[str, tuple[InlineCode, ...]]:
    """Return the segment's text and codes of a text without markup: `composed([text], escape)`."""
    return composed([text], escape) if "<" in text else (text, ())


class _Composing:
    """A segment's text and codes as they are put together."""

    def __init__(self, escape: Callable[[str], str]) -> None:
        self._escape = escape
        self._parts: list[str] = []
        self._codes: list[InlineCode] = []
        self._opened: list[int] = []
        self._texts: list[str] = []

    def add(self, piece: Piece) -> None:
        if isinstance(piece, str):
            self._texts.append(piece)
            return
        if self._texts:
            self._add_texts()
        match piece:
            case Single(code):
                self._add_single(code)
            case Opening(opening, closing):
                self._codes.append(InlineCode(opening, closing))
                self._opened.append(len(self._codes))
                self._parts.append(f"<g{len(self._codes)}>")
            case Closing():
                if not self._opened:
                    raise ValueError("a pair of inline codes is closed that was not opened")
                self._parts.append(f"</g{self._opened.pop()}>")

    def done(self) -> tuple[str, tuple[InlineCode, ...]]:
        self._add_texts()
        if self._opened:
            raise ValueError("a pair of inline codes is not closed")
        return "".join(self._parts), tuple(self._codes)

    def _add_single(self, code: str) -> None:
        self._codes.append(InlineCode(code))
        self._parts.append(f"<x{len(self._codes)}/>")

    def _add_texts(self) -> None:
        text = "".join(self._texts)
        self._texts.clear()
        end = 0
        for match in LOOKALIKE.finditer(text) if "<" in text else ():
            self._parts.append(text[end : match.start()])
            self._add_single(self._escape(match[0]))
            end = match.end()
        self._parts.append(text[end:] if end else text)


def pieces(text: str, codes: Sequence[InlineCode]) -> Iterator[Piece]:
    """Yield the pieces of a translation in order. Raises ValueError if it does not fit."""
    if not fits(text, codes):
        raise ValueError("the tags of the translation are not those of its segment")
    end = 0
    for match in _TAG.finditer(text):
        if not _is_ours(match, codes):
            continue
        if match.start() > end:
            yield text[end : match.start()]
        code = codes[int(match[3]) - 1]
        if code.closing is None:
            yield Single(code.opening)
        else:
            yield Closing() if match[1] else Opening(code.opening, code.closing)
        end = match.end()
    if end < len(text):
        yield text[end:]


def rendered(text: str, codes: Sequence[InlineCode], escape: Callable[[str], str]) -> str:
    """Return the document's spelling of a translation: text escaped, tags as their codes.

    Raises ValueError if it does not fit its codes.
    """
    if not codes and "<" not in text:
        return escape(text)
    parts: list[str] = []
    opened: list[str] = []
    for piece in pieces(text, codes):
        match piece:
            case str():
                parts.append(escape(piece))
            case Opening(opening, closing):
                parts.append(opening)
                opened.append(closing)
            case Closing():
                parts.append(opened.pop())
            case Single(code):
                parts.append(code)
    return "".join(parts)


def fits(text: str, codes: Sequence[InlineCode]) -> bool:
    """Return whether a translation has each tag of its segment exactly once, nested."""
    if "<" not in text:
        return not codes
    expected = len(codes) + sum(code.closing is not None for code in codes)
    opened: list[str] = []
    seen: set[str] = set()
    for match in _TAG.finditer(text):
        if not _is_ours(match, codes) or match[0] in seen:
            return False
        seen.add(match[0])
        if match[2] == "x":
            continue
        if not match[1]:
            opened.append(match[3])
        elif not opened or opened.pop() != match[3]:
            return False
    return len(seen) == expected and not opened


def same_tags(source: str, target: str) -> bool:
    """Return whether a translation has the tags of its source, each once and nested.

    For a source whose codes are not at hand; with them use `fits`.
    """
    tags = [match.groups() for match in _TAG.finditer(source)]
    pairs = {number for _, letter, number, _ in tags if letter == "g"}
    count = max((int(number) for _, _, number, _ in tags), default=0)
    codes = [InlineCode("", "" if str(n) in pairs else None) for n in range(1, count + 1)]
    return not _TAG.search(target) if not tags else fits(target, codes)


def plain(text: str) -> str:
    """Return the text without its tags, for counting and for reading."""
    return _TAG.sub("", text)


def _is_ours(match: re.Match[str], codes: Sequence[InlineCode]) -> bool:
    number = int(match[3])
    if number > len(codes):
        return False
    paired = codes[number - 1].closing is not None
    if match[2] == "g":
        return paired and not match[4]
    return not paired and not match[1] and bool(match[4])
