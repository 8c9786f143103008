"""Inline markup of segments: to `<g1>..</g1>` and `<x2/>`, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman_documents.codec import MOST_CHARACTERS, InlineCode

_TAG: Final = re.compile(r"<(/?)([gx])([1-9][0-9]{0,5})(/?)>")
_NUMBER: Final = re.compile(r"<[gx]([1-9][0-9]{0,5})/?>")
_NUMBERS: Final = [str(number) for number in range(1, 100)]
LOOKALIKE: Final = re.compile(r"<\s{0,3}/?\s{0,3}[gxGX]\s{0,3}[0-9]{1,6}\s{0,3}/?\s{0,3}>")
"""Text of a document that a reader could take for one of our tags; it becomes a code itself."""


class OpeningCode(NamedTuple):
    """The start of a pair of inline markup, with both of its codes."""

    opening: str
    closing: str


@dataclass(frozen=True, slots=True)
class ClosingCode:
    """The end of the last pair that is still open."""


class SingleCode(NamedTuple):
    """Markup without text in it: an image, a line break, inline code."""

    code: str


Piece = str | OpeningCode | ClosingCode | SingleCode


def composed(
    pieces: Iterable[Piece], escape: Callable[[str], str] = str
) -> tuple[str, tuple[InlineCode, ...]]:
    """Return a segment's text and codes. Pairs nest, and all are closed.

    `escape` spells decoded text as the document would, for text that looks like one of our tags.
    Neighbouring texts are one, so that such text is seen whole.
    Raises ValueError if pairs do not nest.
    """
    parts: list[str] = []
    codes: list[InlineCode] = []
    texts: list[str] = []
    opened: list[int] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if texts:
            _add_texts(texts, parts, codes, escape)
        if isinstance(piece, SingleCode):
            _add_single(piece.code, parts, codes)
        elif isinstance(piece, OpeningCode):
            codes.append(InlineCode(piece.opening, piece.closing))
            opened.append(len(codes))
            parts.append(f"<g{len(codes)}>")
        else:
            if not opened:
                raise ValueError("a pair of inline codes is closed that was not opened")
            parts.append(f"</g{opened.pop()}>")
    if opened:
        raise ValueError("a pair of inline codes is not closed")
    _add_texts(texts, parts, codes, escape)
    return "".join(parts), tuple(codes)


def _add_single(code: str, parts: list[str], codes: list[InlineCode]) -> None:
    codes.append(InlineCode(code))
    parts.append(f"<x{len(codes)}/>")


def _add_texts(
    texts: list[str], parts: list[str], codes: list[InlineCode], escape: Callable[[str], str]
) -> None:
    """Move the texts to the parts as one text; what looks like a tag of ours becomes a code."""
    text = texts[0] if len(texts) == 1 else "".join(texts)
    texts.clear()
    end = 0
    for match in LOOKALIKE.finditer(text) if "<" in text else ():
        parts.append(text[end : match.start()])
        _add_single(escape(match[0]), parts, codes)
        end = match.end()
    parts.append(text[end:] if end else text)


def of_value(value: str) -> tuple[str, tuple[InlineCode, ...]]:
    """Return a value without the blanks around it as a segment's text and codes.

    Of a value that is too long for a segment only so much that this is too long, too: searched
    whole for codes, one of 50 MB takes 1.9 GB of memory.
    """
    if len(value) > MOST_CHARACTERS:
        return value[: MOST_CHARACTERS + 1], ()
    return of_text(value.strip())


def of_text(text: str, escape: Callable[[str], str] = str) -> tuple[str, tuple[InlineCode, ...]]:
    """Return the segment's text and codes of a text without markup: `composed([text], escape)`."""
    return composed([text], escape) if "<" in text else (text, ())


def pieces(text: str, codes: Sequence[InlineCode]) -> Iterator[Piece]:
    """Yield the pieces of a translation in order. Raises ValueError if it does not fit."""
    if not fits(text, codes):
        raise ValueError("the translation's tags differ from its segment's")
    end = 0
    for match in _TAG.finditer(text):
        if not _is_ours(match, codes):
            continue
        if match.start() > end:
            yield text[end : match.start()]
        code = codes[int(match[3]) - 1]
        if code.closing is None:
            yield SingleCode(code.opening)
        else:
            yield ClosingCode() if match[1] else OpeningCode(code.opening, code.closing)
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
        if isinstance(piece, str):
            parts.append(escape(piece))
        elif isinstance(piece, SingleCode):
            parts.append(piece.code)
        elif isinstance(piece, OpeningCode):
            parts.append(piece.opening)
            opened.append(piece.closing)
        else:
            parts.append(opened.pop())
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


def is_in_order(text: str, codes: Sequence[InlineCode]) -> bool:
    """Return whether the tags of a translation that fits are numbered in their order.

    Then it is `composed` of its own pieces, if no text looks like a tag.
    """
    numbers = _NUMBER.findall(text)
    tags = len(codes) + sum(code.closing is not None for code in codes)
    return numbers == _NUMBERS[: len(codes)] and len(LOOKALIKE.findall(text)) == tags


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
    return _TAG.sub("", text) if "<" in text else text


def _is_ours(match: re.Match[str], codes: Sequence[InlineCode]) -> bool:
    number = int(match[3])
    if number > len(codes):
        return False
    paired = codes[number - 1].closing is not None
    if match[2] == "g":
        return paired and not match[4]
    return not paired and not match[1] and bool(match[4])
