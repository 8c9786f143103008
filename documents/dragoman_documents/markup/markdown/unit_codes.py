"""The inline codes of a unit as its segment has them, and the titles inside these codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import (
    LOOKALIKE,
    ClosingCode,
    OpeningCode,
    Piece,
    SingleCode,
    composed,
)
from dragoman_documents.markup.markdown.escaping import escaped_lookalike
from dragoman_documents.markup.markdown.events import MarkdownToken
from dragoman_documents.markup.markdown.titles import Title
from dragoman_documents.markup.markdown.units import MarkdownUnit

_CLOSING: Final = ClosingCode()
_PREFIX: Final = re.compile(rb"[ \t>]*")
_LOOK: Final = ("<", "\\")
"""What a code begins with that looks like a tag of ours."""
_CANONICAL: Final = {"_": "*", "__": "**"}
_IN_ANGLES: Final = re.compile(r"<((?:https?|ftp)://[^<>]*)>")


@dataclass(frozen=True, slots=True)
class InnerTitle:
    """A title in the markup of a unit, which a translation may move with its code."""

    index: int
    """Of its own segment."""
    code: str
    number: int
    """Of its code among the equal ones of the unit, from 1."""
    start: int
    end: int


def with_titles(
    codes: Sequence[InlineCode], changed: Iterable[tuple[InnerTitle, str]]
) -> Sequence[InlineCode]:
    """Return the codes of a unit with other titles; a code may have several of them."""
    made: dict[tuple[str, int], str] = {}
    for title, text in sorted(changed, key=lambda each: each[0].start, reverse=True):
        key = title.code, title.number
        code = made.get(key, title.code)
        made[key] = code[: title.start] + text + code[title.end :]
    if not made:
        return codes
    seen = Counter[str]()

    def other(raw: str) -> str:
        seen[raw] += 1
        return made.get((raw, seen[raw]), raw)

    return [
        each._replace(opening=other(each.opening), closing=each.closing and other(each.closing))
        for each in codes
    ]


def text_and_codes(
    tokens: Sequence[MarkdownToken], source: bytes
) -> tuple[str, tuple[InlineCode, ...]]:
    """Return the text and the codes of a unit."""
    if len(tokens) == 1 and tokens[0].kind == "text" and "<" not in tokens[0].text:
        return tokens[0].text, ()
    return composed(_pieces(tokens, source), escaped_lookalike)


def _pieces(tokens: Sequence[MarkdownToken], source: bytes) -> Iterator[Piece]:
    """Yield the texts and the codes of tokens."""
    closings = _closings(tokens, source)
    for index, token in enumerate(tokens):
        if token.kind == "text":
            yield token.text
        elif token.kind == "soft":
            yield " "
        else:
            yield _code(index, tokens, closings, source)


def _code(
    index: int, tokens: Sequence[MarkdownToken], closings: Mapping[int, str], source: bytes
) -> Piece:
    token = tokens[index]
    if token.kind == "close":
        return _CLOSING
    raw = source[token.start : token.end].decode()
    if token.kind == "open":
        return OpeningCode(raw, closings[index])
    last = index + 1 == len(tokens)
    if raw.endswith(("\n", "\r")) and not last and (prefix := _PREFIX.match(source, token.end)):
        end = min(prefix.end(), tokens[index + 1].start)
        return SingleCode(raw + source[token.end : end].decode())
    return SingleCode(raw)


def _closings(tokens: Sequence[MarkdownToken], source: bytes) -> dict[int, str]:
    closings: dict[int, str] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(index)
        elif token.kind == "close":
            closings[opened.pop()] = token.text or source[token.start : token.end].decode()
    return closings


def inner_titles(
    unit: MarkdownUnit, within: Iterable[Title], first: int, source: bytes
) -> Iterator[InnerTitle]:
    """Yield the titles of a unit in their order; `first` is the number of their first segment."""
    tokens, seen = iter(unit.tokens), Counter[bytes]()
    end, start, raw = -1, 0, b""
    for index, title in enumerate(within, first):
        while end <= title.end:
            _, start, end, _ = next(tokens)
            raw = source[start:end]
            seen[raw] += 1
        at = len(source[start : title.start].decode())
        behind = at + len(source[title.start : title.end].decode())
        yield InnerTitle(index, raw.decode(), seen[raw], at, behind)


def digestible(codes: Sequence[InlineCode], inner: Iterable[InnerTitle]) -> str:
    """Return the codes in an order of their own, each in one of its spellings, without titles."""
    spellings: list[str] = []
    for opening, closing in with_titles(codes, ((title, "") for title in inner)):
        single = _CANONICAL.get(opening, opening)
        if closing is not None:
            spellings.append(f"{single}\0{_CANONICAL.get(closing, closing)}")
        elif single[:1] not in _LOOK or not LOOKALIKE.fullmatch(single.removeprefix("\\")):
            spellings.append(_IN_ANGLES.sub(r"\1", single) if "<" in single else single)
    return "\0\0".join(sorted(spellings))
