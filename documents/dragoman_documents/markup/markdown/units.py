"""What is translated of a Markdown block: its tokens, with hidden syntax as codes and pairs."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman_documents.markup.markdown.events import MarkdownBlock, MarkdownToken
from dragoman_documents.markup.markdown.inline_html import with_pairs
from dragoman_documents.markup.markdown.masks import Mark, Masks
from dragoman_text.spans import has_letters

_ADDRESS: Final = re.compile(rb"(?:https?|ftp)://[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]+")
_AT_END: Final = b".,;:!?'*_~"
"""What does not belong to an address at its end; a `)` does only after a `(` in it."""
_BLANKS: Final = " \t"


class MarkdownUnit(NamedTuple):
    """Tokens that are translated together, at `[start:end)`."""

    start: int
    end: int
    tokens: Sequence[MarkdownToken]
    block: MarkdownBlock
    begins_line: bool
    """Whether its start could be read as the start of a list, heading or quote."""
    whole: bool
    """Whether it is all of a paragraph or heading."""
    outermost: bool = True
    """Whether it is not inside a pair, such as the text of a link alone."""
    wrap: tuple[str, str] = ("", "")
    """What is written around it: of a link by reference, which may need a label then."""
    inner: int = 0
    """Where its text begins inside of that."""


def units(block: MarkdownBlock, masks: Masks) -> Iterator[MarkdownUnit]:
    """Yield what is translated of a block, in order."""
    tokens = _with_marks(block.tokens, masks)
    if masks.source.find(b"<", tokens[0].start, tokens[-1].end) >= 0:
        tokens = with_pairs(tokens)
    return _lettered(tokens, block, masks.source)


def has_lines(block: MarkdownBlock) -> bool:
    """Return whether the text of a block may have several lines."""
    return block.kind not in ("cell", "title") and (block.kind != "heading" or block.underlined)


def _is_literal(token: MarkdownToken, source: bytes) -> bool:
    return source[token.start : token.end] == token.text.encode()


class _Code(NamedTuple):
    """An address, or a mark, at `[start:end)` among texts."""

    start: int
    end: int
    mark: Mark | None = None


def _with_marks(tokens: list[MarkdownToken], masks: Masks) -> list[MarkdownToken]:
    """Return the tokens with addresses and hidden syntax as codes and pairs."""
    start, end = tokens[0].start, tokens[-1].end
    if not masks.any_within(start, end) and masks.source.find(b"://", start, end) < 0:
        return tokens
    made: list[MarkdownToken] = []
    kinds: dict[int, Mark] = {}
    index = 0
    while index < len(tokens):
        last = index + 1
        if tokens[index].kind == "text":
            while last < len(tokens) and _adjoin(tokens[last - 1], tokens[last]):
                last += 1
            texts = tokens[index:last]
            codes = _codes_in(texts, masks)
            masks.left.extend(("attribute", each.start) for each in codes if _is_unread(each))
            made += _guarded(texts, codes, masks.source, kinds)
        else:
            made.append(_labelled_by_itself(tokens[index], tokens, index, masks.source))
        index = last
    return _joined(_paired(made, kinds), kinds, masks.source)


_IN_LABEL: Final = re.compile(r"(?<![ \t\r\n])[ \t]*[\r\n][ \t\r\n>]*")
"""A line break in a label, which counts as a blank there."""


def _labelled_by_itself(
    token: MarkdownToken, tokens: Sequence[MarkdownToken], index: int, source: bytes
) -> MarkdownToken:
    """Return the end of `[text][]` with its label, if that is defined in another file."""
    if token.kind != "close" or token.text or source[token.start : token.end] != b"][]":
        return token
    depth = 1
    while depth:
        index -= 1
        depth += (tokens[index].kind == "close") - (tokens[index].kind == "open")
    label = source[tokens[index].end : token.start].decode()
    return token._replace(text=f"][{_IN_LABEL.sub(' ', label)}]")


def _adjoin(token: MarkdownToken, other: MarkdownToken) -> bool:
    return other.kind == "text" and token.end == other.start


def _codes_in(texts: Sequence[MarkdownToken], masks: Masks) -> list[_Code]:
    """Return the marks and addresses between the ends of adjoining texts, without overlaps."""
    start, end, source = texts[0].start, texts[-1].end, masks.source
    found = [_Code(mark.start, mark.end, mark) for mark in masks.within(start, end)]
    if source.find(b"://", start, end) >= 0:
        inside = list(_addresses(source, start, end))
        found = [code for code in found if not _is_spelling(code, inside)]
        found = sorted([*found, *inside], key=lambda code: code.start)
    kept: list[_Code] = []
    for code in found:
        if not kept or code.start >= kept[-1].end:
            kept.append(code)
    return kept


def _is_unread(code: _Code) -> bool:
    return code.mark is not None and code.mark.kind == "unread"


def _is_spelling(code: _Code, addresses: Sequence[_Code]) -> bool:
    """Return whether a mark only spells a part of an address for the parser."""
    if code.mark is None or code.mark.kind != "hidden":
        return False
    index = bisect_right(addresses, code.start, key=_start_of) - 1
    return index >= 0 and code.start < addresses[index].end


def _start_of(code: _Code) -> int:
    return code.start


def _addresses(source: bytes, start: int, end: int) -> Iterator[_Code]:
    for match in _ADDRESS.finditer(source, start, end):
        last = _address_end(match[0])
        if not source.startswith(b"\\", match.start() - 1) and last > match[0].index(b"://") + 3:
            yield _Code(match.start(), match.start() + last)


def _address_end(raw: bytes) -> int:
    """Return where an address ends, as GitHub does: `)` belongs to it only after a `(` in it."""
    end = len(raw)
    closing = raw.count(b")") - raw.count(b"(")
    while end and (raw[end - 1] in _AT_END or (raw[end - 1] == ord(")") and closing > 0)):
        closing -= raw[end - 1] == ord(")")
        end -= 1
    return end


def _guarded(
    tokens: list[MarkdownToken], codes: Sequence[_Code], source: bytes, kinds: dict[int, Mark]
) -> Iterator[MarkdownToken]:
    """Yield adjoining texts with codes between them; note the marks by their places."""
    rest = deque(tokens)
    for code in codes:
        while rest and rest[0].end <= code.start:
            yield rest.popleft()
        if rest and rest[0].start < code.start:
            yield _cut(rest[0].start, code.start, source)
        if code.mark is not None and code.mark.kind == "hidden":
            yield _cut(code.start, code.end, source)
        else:
            if code.mark is not None:
                kinds[code.start] = code.mark
            yield MarkdownToken("single", code.start, code.end)
        while rest and rest[0].end <= code.end:
            rest.popleft()
        if rest and rest[0].start < code.end:
            rest[0] = _cut(code.end, rest[0].end, source)
    yield from rest


def _cut(start: int, end: int, source: bytes) -> MarkdownToken:
    """Return a part of a text without references."""
    return MarkdownToken("text", start, end, source[start:end].decode())


def _paired(tokens: list[MarkdownToken], kinds: dict[int, Mark]) -> list[MarkdownToken]:
    """Return the tokens with pairs of marks that nest with the others; the rest are codes."""
    opened: list[tuple[int, int]] = []
    made = list(tokens)
    for index, token in enumerate(tokens):
        mark = kinds.get(token.start) if token.kind == "single" else None
        if token.kind == "open":
            opened.append((index, -1))
        elif token.kind == "close":
            while opened.pop()[1] != -1:
                pass
        elif mark is not None and mark.kind == "open":
            opened.append((index, mark.start))
        elif mark is not None and mark.kind == "close" and opened and opened[-1][1] == mark.partner:
            begin = opened.pop()[0]
            if begin + 1 < index:
                made[begin] = made[begin]._replace(kind="open")
                made[index] = token._replace(kind="close")
    return made


def _joined(
    tokens: list[MarkdownToken], kinds: dict[int, Mark], source: bytes
) -> list[MarkdownToken]:
    """Return the tokens with attributes joined to what they belong to, such as `](a){.b}`."""
    made: list[MarkdownToken] = []
    for token in tokens:
        mark = kinds.get(token.start) if token.kind == "single" else None
        before = made[-1] if made else None
        if mark is not None and mark.kind == "line":
            token = token._replace(kind="line")  # noqa: PLW2901  it is joined as one
        if before is not None and _stay_lines(before, token):
            # with the blanks in front of a break, which the parser has in no token
            start = made[-2].end if len(made) > 1 else before.start
            made[-1] = MarkdownToken("line", start, token.end)
            continue
        if before is not None and before.end == token.start and before.kind in ("single", "close"):
            role = kinds.get(before.start)
            if mark is not None and mark.kind == "after":
                raw = source[token.start : token.end].decode()
                label = before.text and before.text + raw
                made[-1] = before._replace(end=token.end, text=label)
                continue
            if token.kind == "single" and role is not None and role.kind == "before":
                made[-1] = MarkdownToken("single", before.start, token.end)
                continue
        made.append(token)
    return made


def _stay_lines(token: MarkdownToken, other: MarkdownToken) -> bool:
    """Return whether one of two tokens is lines of other syntax, and one the break beside them."""
    kinds = {token.kind, other.kind}
    return "line" in kinds and kinds <= {"line", "soft", "hard"}


def _lettered(
    tokens: list[MarkdownToken], block: MarkdownBlock, source: bytes
) -> Iterator[MarkdownUnit]:
    """Yield the tokens as one unit if there are letters outside all pairs; else those in pairs.

    `**Note**` and `[Home](/) | [About](/about)` are texts without markup: easier to translate, and
    the same text elsewhere is translated once.
    """
    if _has_outer_letter(tokens):
        yield _unit(tokens, block, source, outermost=True, whole=block.paragraph)
        return
    lettered, closed = _levels(tokens)
    index = 0
    while index < len(tokens):
        if index in lettered:
            inside = tokens[index + 1 : closed[index]]
            unit = _unit(inside, block, source, outermost=False, whole=False)
            yield _labelled(unit, tokens[index], tokens[closed[index]], source)
            index = closed[index]
        index += 1


def _has_outer_letter(tokens: Sequence[MarkdownToken]) -> bool:
    """Return whether there are letters outside all pairs."""
    depth = 0
    for token in tokens:
        if token.kind == "text":
            if not depth and has_letters(token.text):
                return True
        elif token.kind == "open":
            depth += 1
        elif token.kind == "close":
            depth -= 1
    return False


def _levels(tokens: Sequence[MarkdownToken]) -> tuple[set[int], dict[int, int]]:
    """Return the pairs with letters of their own, and where each closes."""
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
    tokens: list[MarkdownToken],
    block: MarkdownBlock,
    source: bytes,
    *,
    outermost: bool,
    whole: bool,
) -> MarkdownUnit:
    """Return the unit of tokens that have letters, without blanks and breaks around it."""
    first, last = 0, len(tokens)
    while _is_blank(tokens[first]):
        first += 1
    while _is_blank(tokens[last - 1]):
        last -= 1
    kept = tokens[first:last]
    if kept[0].kind == "text" and kept[0].text[0] in _BLANKS:
        kept[0] = _stripped(kept[0], source, left=True)
    if kept[-1].kind == "text" and kept[-1].text[-1] in _BLANKS:
        kept[-1] = _stripped(kept[-1], source, left=False)
    start = kept[0].start
    if kept[0].kind == "text" and source[start - 1 : start] == b"\\":
        start -= 1  # the parser's range of an escaped character lacks the backslash
    return MarkdownUnit(
        start, kept[-1].end, kept, block, outermost and has_lines(block), whole, outermost
    )


def _labelled(
    unit: MarkdownUnit, opening: MarkdownToken, closing: MarkdownToken, source: bytes
) -> MarkdownUnit:
    """Return the unit with its link around it if that is by reference: `[text]`, `[text][label]`.

    The text of `[text]` is its label, which the translation is not: `[Text][text]`.
    """
    raw = source[closing.start : closing.end]
    if not closing.text and not raw.startswith(b"]["):
        return unit
    wrap = (source[opening.start : opening.end].decode(), closing.text or raw.decode())
    return unit._replace(start=opening.start, end=closing.end, wrap=wrap, inner=unit.start)


def _is_blank(token: MarkdownToken) -> bool:
    if token.kind == "text":
        return not token.text.strip(_BLANKS)
    return token.kind in ("soft", "hard", "line")


def _stripped(token: MarkdownToken, source: bytes, *, left: bool) -> MarkdownToken:
    """Return a text without the blanks at one of its ends, if it is spelled as it is."""
    stripped = token.text.lstrip(_BLANKS) if left else token.text.rstrip(_BLANKS)
    removed = len(token.text) - len(stripped)
    if not _is_literal(token, source):
        return token
    start, end = (token.start + removed, token.end) if left else (token.start, token.end - removed)
    return MarkdownToken("text", start, end, stripped)
