"""What is translated of a Markdown block: its lines, without the syntax that CommonMark ignores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman_documents.markup.markdown.events import Block, Token
from dragoman_documents.markup.markdown.inline_html import with_pairs
from dragoman_text.spans import has_letters

# Container directives, admonitions, tabs, grid tables, tables without a separator, attribute lists,
# templates alone on a line, comments of Docusaurus and Obsidian, tables of contents.
_LINE: Final = re.compile(
    rb":::|!!!|\?\?\?|===|\+[-=+]|\||\{[:#.]|%%|\[\[?_?TOC"
    rb"|\{%[^%\r\n]*%\}[ \t]*(?=[\r\n]|\Z)|\{\{[^{}\r\n]*\}\}[ \t]*(?=[\r\n]|\Z)"
)
_SPECIAL: Final = b":!?=+|{%["
"""The first bytes of both."""
_MARKER: Final = re.compile(rb":[ \t]+|\[![A-Za-z]+\][+-]?[ \t]*")
"""The start of a definition, and of a callout."""
_URL: Final = rb"(?:https?|ftp)://[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]+(?<![.,;:!?)'*_~])"
_PROTECTED: Final = re.compile(rb"(?<!\\)\{\{[^{}\r\n]*\}\}|(?<!\\)\{%[^%\r\n]*%\}|" + _URL)
_BRACES: Final = rb"\{(?:[^{}]|\{[^{}]*\})*\}"
_PROTECTED_MDX: Final = re.compile(
    rb"(?<!\\)(?:" + _BRACES + rb"|</?[A-Za-z][^<>{}]*(?:" + _BRACES + rb"[^<>{}]*)*>|</?>)|" + _URL
)
_MODULE: Final = re.compile(rb"(?:import|export)[ \t{*]")
_BLANKS: Final = " \t"


class Unit(NamedTuple):
    """Tokens that are translated together, at `[start:end)`."""

    start: int
    end: int
    tokens: Sequence[Token]
    block: Block
    begins_line: bool
    """Whether its start could be read as the start of a list, heading or quote."""
    whole: bool
    """Whether it is all of a paragraph or heading."""
    outermost: bool = True
    """Whether it is not inside a pair, such as the text of a link alone."""
    wrap: tuple[str, str] = ("", "")
    """What is written around it: of a link by reference, which may need a label then."""


def units(block: Block, source: bytes, *, mdx: bool) -> Iterator[Unit]:
    """Yield what is translated of a block, in order."""
    if mdx and _MODULE.match(source, block.tokens[0].start):
        return
    tokens = with_pairs(block.tokens)
    groups = _groups(tokens, source) if _has_lines(block) else [tokens]
    pattern = _PROTECTED_MDX if mdx else _PROTECTED
    for group in groups:
        guarded = _guarded(group, source, pattern)
        yield from _lettered(guarded, block, source, alone=len(groups) == 1)


def _has_lines(block: Block) -> bool:
    return block.kind != "cell" and (block.kind != "heading" or block.underlined)


def _groups(tokens: list[Token], source: bytes) -> list[list[Token]]:
    """Return the lines that may be joined, without lines and markers of other syntax."""
    starts = [0, *(i + 1 for i, token in enumerate(tokens[:-1]) if token.kind == "soft")]
    if not any(_is_special(tokens[index], source) for index in starts):
        return [tokens]
    groups: list[list[Token]] = [[]]
    for line in _lines(tokens):
        first = line[0]
        if not _is_special(first, source):
            groups[-1] += line
        elif (marker := _MARKER.match(source, first.start)) is None:
            groups.append([])
        else:
            groups += [_after(line, marker.end(), source)]
    return [group for group in groups if group] or [[]]


def _is_special(token: Token, source: bytes) -> bool:
    start = token.start
    if source[start : start + 1] not in _SPECIAL or source[start - 1 : start] == b"\\":
        return False
    return bool(_LINE.match(source, start) or _MARKER.match(source, start))


def _lines(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each line with its break; a pair that spans lines keeps them together."""
    line: list[Token] = []
    depth = 0
    for token in tokens:
        line.append(token)
        depth += (token.kind == "open") - (token.kind == "close")
        if token.kind == "soft" and not depth:
            yield line
            line = []
    if line:
        yield line


def _after(tokens: list[Token], start: int, source: bytes) -> list[Token]:
    """Return the tokens behind a place."""
    kept = [token for token in tokens if token.end > start]
    if kept and kept[0].start < start:
        kept[0] = _cut(kept[0], start, kept[0].end, source)
    return kept


def _cut(token: Token, start: int, end: int, source: bytes) -> Token:
    """Return a part of a text without references."""
    return Token("text", start, end, source[start:end].decode())


def _is_literal(token: Token, source: bytes) -> bool:
    return source[token.start : token.end] == token.text.encode()


def _guarded(tokens: list[Token], source: bytes, pattern: re.Pattern[bytes]) -> list[Token]:
    """Return the tokens with templates and addresses as single codes."""
    if not tokens or not _may_be_guarded(source, tokens[0].start, tokens[-1].end, pattern):
        return tokens
    guarded: list[Token] = []
    index = 0
    while index < len(tokens):
        last = index + 1
        if tokens[index].kind == "text":
            while last < len(tokens) and _adjoin(tokens[last - 1], tokens[last]):
                last += 1
            texts = tokens[index:last]
            if _may_be_guarded(source, texts[0].start, texts[-1].end, pattern):
                guarded += _guarded_texts(texts, source, pattern)
            else:
                guarded += texts
        else:
            guarded.append(tokens[index])
        index = last
    return guarded


def _may_be_guarded(source: bytes, start: int, end: int, pattern: re.Pattern[bytes]) -> bool:
    """Return whether the pattern is found; most texts lack what all its matches have."""
    likely = (
        source.find(b"<", start, end) >= 0
        or source.find(b"{", start, end) >= 0
        or source.find(b"://", start, end) >= 0
    )
    return likely and pattern.search(source, start, end) is not None


def _adjoin(token: Token, other: Token) -> bool:
    return other.kind == "text" and token.end == other.start


def _guarded_texts(
    tokens: list[Token], source: bytes, pattern: re.Pattern[bytes]
) -> Iterator[Token]:
    """Yield adjoining texts, and codes where the pattern matches their source."""
    place = tokens[0].start
    rest = iter(tokens)
    token = next(rest, None)
    for match in pattern.finditer(source, place, tokens[-1].end):
        while token is not None and token.end <= match.start():
            yield token
            token = next(rest, None)
        if token is None:
            return
        if token.start < match.start():
            yield _cut(token, token.start, match.start(), source)
        yield Token("single", match.start(), match.end())
        while token is not None and token.end <= match.end():
            token = next(rest, None)
        if token is not None and token.start < match.end():
            token = _cut(token, match.end(), token.end, source)
    while token is not None:
        yield token
        token = next(rest, None)


def _lettered(tokens: list[Token], block: Block, source: bytes, *, alone: bool) -> Iterator[Unit]:
    """Yield the tokens as one unit if there are letters outside all pairs; else those in pairs.

    `**Note**` and `[Home](/) | [About](/about)` are texts without markup: easier to translate, and
    the same text elsewhere is translated once.
    """
    lettered, closed = _levels(tokens)
    if -1 in lettered:
        whole = alone and block.paragraph
        yield _unit(tokens, block, source, outermost=True, whole=whole)
        return
    index = 0
    while index < len(tokens):
        if index in lettered:
            inside = tokens[index + 1 : closed[index]]
            unit = _unit(inside, block, source, outermost=False, whole=False)
            yield _labelled(unit, tokens[index], tokens[closed[index]], source)
            index = closed[index]
        index += 1


def _levels(tokens: Sequence[Token]) -> tuple[set[int], dict[int, int]]:
    """Return the pairs with letters of their own (-1: outside all pairs), and where each closes."""
    lettered: set[int] = set()
    closed: dict[int, int] = {}
    opened = [-1]
    for index, token in enumerate(tokens):
        if token.kind == "text":
            if opened[-1] not in lettered and has_letters(token.text):
                lettered.add(opened[-1])
        elif token.kind == "open":
            opened.append(index)
        elif token.kind == "close":
            closed[opened.pop()] = index
    return lettered, closed


def _unit(
    tokens: list[Token], block: Block, source: bytes, *, outermost: bool, whole: bool
) -> Unit:
    """Return the unit of tokens that have letters, without blanks and breaks around it."""
    first, last = 0, len(tokens)
    while _is_blank(tokens[first]):
        first += 1
    while _is_blank(tokens[last - 1]):
        last -= 1
    kept = tokens[first:last]
    kept[0] = _stripped(kept[0], source, left=True)
    kept[-1] = _stripped(kept[-1], source, left=False)
    start = kept[0].start
    if kept[0].kind == "text" and source[start - 1 : start] == b"\\":
        start -= 1  # the parser's range of an escaped character lacks the backslash
    return Unit(start, kept[-1].end, kept, block, outermost and _has_lines(block), whole, outermost)


def _labelled(unit: Unit, opening: Token, closing: Token, source: bytes) -> Unit:
    """Return the unit with its link around it if that is by reference: `[text]`, `[text][label]`.

    The text of `[text]` is its label, which the translation is not: `[Text][text]`.
    """
    raw = source[closing.start : closing.end]
    if not closing.text and not raw.startswith(b"]["):
        return unit
    wrap = (source[opening.start : opening.end].decode(), closing.text or raw.decode())
    return unit._replace(start=opening.start, end=closing.end, wrap=wrap)


def _is_blank(token: Token) -> bool:
    return token.kind in ("soft", "hard") or (
        token.kind == "text" and not token.text.strip(_BLANKS)
    )


def _stripped(token: Token, source: bytes, *, left: bool) -> Token:
    stripped = token.text.lstrip(_BLANKS) if left else token.text.rstrip(_BLANKS)
    removed = len(token.text) - len(stripped)
    if token.kind != "text" or not removed or not _is_literal(token, source):
        return token
    start, end = (token.start + removed, token.end) if left else (token.start, token.end - removed)
    return Token("text", start, end, stripped)
