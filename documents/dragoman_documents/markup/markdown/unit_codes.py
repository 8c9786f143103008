"""The inline codes of a unit as its segment has them, and the titles inside these codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import (
    LOOKALIKE,
    Closing,
    Opening,
    Piece,
    Single,
    composed,
)
from dragoman_documents.markup.markdown.escaping import escaped_lookalike
from dragoman_documents.markup.markdown.events import Token
from dragoman_documents.markup.markdown.titles import Title
from dragoman_documents.markup.markdown.units import Unit

_CLOSING: Final = Closing()
_PREFIX: Final = re.compile(rb"[ \t>]*")
_CANONICAL: Final = {"_": "*", "__": "**"}
_IN_ANGLES: Final = re.compile(r"<((?:https?|ftp)://[^<>]*)>")


@dataclass(frozen=True, slots=True)
class InnerTitle:
    """A title in the markup of a unit, which a translation may move with its code."""

    index: int
    """Of its own segment."""
    code: str
    start: int
    end: int


def with_titles(changed: Iterable[tuple[InnerTitle, str]]) -> dict[str, str]:
    """Return markup with other titles, by the markup; it may have several of them."""
    made: dict[str, str] = {}
    for title, text in sorted(changed, key=lambda each: each[0].start, reverse=True):
        code = made.get(title.code, title.code)
        made[title.code] = code[: title.start] + text + code[title.end :]
    return made


def text_and_codes(tokens: Sequence[Token], source: bytes) -> tuple[str, tuple[InlineCode, ...]]:
    """Return the text and the codes of a unit."""
    if len(tokens) == 1 and tokens[0].kind == "text" and "<" not in tokens[0].text:
        return tokens[0].text, ()
    return composed(_pieces(tokens, source), escaped_lookalike)


def _pieces(tokens: Sequence[Token], source: bytes) -> Iterator[Piece]:
    """Yield the texts and the codes of tokens."""
    closings = _closings(tokens, source)
    for index, token in enumerate(tokens):
        if token.kind == "text":
            yield token.text
        elif token.kind == "soft":
            yield " "
        else:
            yield _code(index, tokens, closings, source)


def _code(index: int, tokens: Sequence[Token], closings: Mapping[int, str], source: bytes) -> Piece:
    token = tokens[index]
    if token.kind == "close":
        return _CLOSING
    raw = source[token.start : token.end].decode()
    if token.kind == "open":
        return Opening(raw, closings[index])
    last = index + 1 == len(tokens)
    if raw.endswith(("\n", "\r")) and not last and (prefix := _PREFIX.match(source, token.end)):
        end = min(prefix.end(), tokens[index + 1].start)
        return Single(raw + source[token.end : end].decode())
    return Single(raw)


def _closings(tokens: Sequence[Token], source: bytes) -> dict[int, str]:
    closings: dict[int, str] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(index)
        elif token.kind == "close":
            closings[opened.pop()] = token.text or source[token.start : token.end].decode()
    return closings


def inner_titles(
    unit: Unit, within: Iterable[Title], first: int, source: bytes
) -> Iterator[InnerTitle]:
    tokens = iter(unit.tokens)
    token = next(tokens)
    for index, title in enumerate(within, first):
        while token.end <= title.end:
            token = next(tokens)
        start = len(source[token.start : title.start].decode())
        code = source[token.start : token.end].decode()
        yield InnerTitle(index, code, start, start + len(source[title.start : title.end].decode()))


def digestible(codes: Iterable[InlineCode], inner: Iterable[InnerTitle]) -> str:
    """Return the codes in an order of their own, each in one of its spellings, without titles."""
    bare = with_titles((title, "") for title in inner)
    spellings: list[str] = []
    for code in codes:
        opening = _CANONICAL.get(code.opening, code.opening)
        if code.closing is not None:
            closing = _CANONICAL.get(code.closing, code.closing)
            spellings.append(f"{bare.get(opening, opening)}\0{bare.get(closing, closing)}")
        elif not LOOKALIKE.fullmatch(opening.removeprefix("\\")):
            single = bare.get(opening, opening)
            spellings.append(_IN_ANGLES.sub(r"\1", single) if "<" in single else single)
    return "\0\0".join(sorted(spellings))
