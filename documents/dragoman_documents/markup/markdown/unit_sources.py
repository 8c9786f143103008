"""How a unit is spelled in the source, and where it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final

from dragoman_documents.markup.markdown.escaping import Context
from dragoman_documents.markup.markdown.events import MarkdownToken
from dragoman_documents.markup.markdown.spelled import ShortLinks
from dragoman_documents.markup.markdown.units import MarkdownUnit
from dragoman_documents.spelling import Spelling

_NO_TEXT: Final = re.compile(r"[<{]")
_NO_LINKS: Final[ShortLinks] = {}
AS_IT_IS: Final = Spelling(())


def inner_start(unit: MarkdownUnit) -> int:
    """Return where the text of a unit begins, inside the link around it."""
    if not unit.wrap[0]:
        return unit.start
    return unit.inner


def inner_end(unit: MarkdownUnit) -> int:
    """Return where the text of a unit ends, inside the link around it."""
    return unit.tokens[-1].end


def raw_of(unit: MarkdownUnit, source: bytes) -> str:
    """Return the text of a unit as it is spelled."""
    return source[inner_start(unit) : inner_end(unit)].decode()


def spelling_of(unit: MarkdownUnit, source: bytes, syntax: str, *, mdx: bool) -> Spelling | None:
    """Return how a unit is spelled; None if all of it is, as it is, on one line.

    `syntax`: characters that are syntax in its dialect, though our parser takes them for text.
    """
    default: Callable[[str], str] = str
    if syntax:
        heading = unit.block.kind in ("heading", "title")
        default = _default(syntax, mdx=mdx, heading=heading)
    if _is_literal(unit, source, default):
        return None
    return Spelling(_spelled_pieces(unit, source), default)


@cache
def _default(syntax: str, *, mdx: bool, heading: bool) -> Callable[[str], str]:
    """Return how a dialect needs a text spelled; a source that has it otherwise keeps that.

    What is syntax only sometimes has no spelling of its own: each source's is kept.
    """
    if not syntax:
        return str
    brace = "&#123;" if heading else "\\{"

    def spelled(found: re.Match[str]) -> str:
        if found[0] in syntax:
            return "\0" + found[0]
        return brace if found[0] == "{" else "\\" + found[0]

    characters = rf"[{re.escape(syntax)}]"
    return partial(
        re.compile(f"{_NO_TEXT.pattern}|{characters}" if mdx else characters).sub, spelled
    )


def _is_literal(unit: MarkdownUnit, source: bytes, default: Callable[[str], str]) -> bool:
    """Return whether all text of a unit is on one line and spelled as it is."""
    before = inner_start(unit)
    for token in unit.tokens:
        if token.kind == "soft" or (
            token.kind == "text"
            and (
                token.start != before
                or source[token.start : token.end] != token.text.encode()
                or (default is not str and default(token.text) != token.text)
            )
        ):
            return False
        before = token.end
    return True


def _spelled_pieces(unit: MarkdownUnit, source: bytes) -> Iterator[tuple[str, str]]:
    """Yield the texts of a unit, decoded and as spelled."""
    before = inner_start(unit)
    tokens = unit.tokens
    for index, token in enumerate(tokens):
        if token.kind == "text":
            escape = source[before : token.start].lstrip(b" \t>") == b"\\"
            raw = source[token.start : token.end].decode()
            if escape and token.text:
                yield token.text[0], "\\" + raw[:1]
                yield token.text[1:], raw[1:]
            else:
                yield token.text, raw
        elif token.kind == "soft":
            following = tokens[index + 1].start
            if source[following - 1 : following] == b"\\" and tokens[index + 1].kind == "text":
                following -= 1
            yield " ", source[before:following].decode()
            before = following
            continue
        before = token.end


def short_links(unit: MarkdownUnit, source: bytes) -> ShortLinks:
    """Return the links of a unit whose text is their label."""
    if not any(token.kind == "close" and token.text for token in unit.tokens):
        return _NO_LINKS
    found: dict[str, dict[str, list[str]]] = {}
    opened: list[MarkdownToken] = []
    for token in unit.tokens:
        if token.kind == "open":
            opened.append(token)
        elif token.kind == "close":
            opening = opened.pop()
            raw = source[token.start : token.end].decode()
            if token.text or raw.startswith("]["):
                inside = source[opening.end : token.start].decode()
                found.setdefault(token.text or raw, {}).setdefault(inside, []).append(raw)
    return found


def is_label(unit: MarkdownUnit, source: bytes) -> bool:
    """Return whether a unit is the label of a wiki link."""
    before = source[max(0, unit.start - 8) : unit.start].rstrip(b" ")
    behind = source[unit.end : unit.end + 8].lstrip(b" ")
    return before.endswith(b"|") and behind.startswith(b"]]")


def context(unit: MarkdownUnit, source: bytes, known: str, *, mdx: bool) -> Context:
    """Return where a translation is written."""
    heading, cell = unit.block.kind in ("heading", "title"), unit.block.kind == "cell"
    known += "|" * cell
    bracketed = bool(unit.wrap[0]) or unit.block.kind == "title" or not unit.outermost
    before, after = "[", "]"
    if not unit.wrap[0]:
        before = source[max(unit.start - 4, 0) : unit.start].decode("utf-8", "ignore")[-1:]
        after = source[unit.end : unit.end + 4].decode("utf-8", "ignore")[:1]
    return Context(
        before or "\n",
        after or "\n",
        begins_line=unit.begins_line and not unit.wrap[0],
        heading=heading,
        mdx=mdx,
        cell=cell,
        bracketed=bracketed,
        label=is_label(unit, source),
        known=known,
    )
