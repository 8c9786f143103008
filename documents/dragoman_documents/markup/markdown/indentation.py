"""Indentation in MDX, where none makes code: lines that the parser takes for code move left.

A line moves by its break, which goes to the right over as many blanks, so that all bytes keep their
places: `\\n    text` becomes `    \\ntext`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dragoman_documents.markup.markdown.events import IndentedCode, MarkdownBlock, Parsed, parsed
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.markdown.tables import begin_table

_CODE_INDENT: Final = 4
_DEEP: Final = re.compile(rb"\n {4,}\S")
_LINES: Final = re.compile(
    rb"(?P<break>\A|\r?\n)(?P<line>(?P<indent> *)"
    rb"(?:(?P<tag>#[ #]*(?=\r?\n|\Z))|(?P<block>[-*+>][ ]|[0-9]{1,9}[.)][ ]|`{3}|~{3}|#))?"
    rb"[^\r\n]*)"
)
_STARTS: Final = re.compile(
    rb"(?P<fence>`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})|[-*+>][ \t]|[0-9]{1,9}[.)][ \t]|#{1,6}[ \t]"
)
"""What begins a block behind a line of text."""
_INTERRUPTING: Final = re.compile(
    rb"\n(?P<indent>[ \t]+)(?=[-*+][ \t]+[^ \t\r\n]|1[.)][ \t]+[^ \t\r\n]|>|#{1,6}[ \t]|`{3}|~{3})"
)
"""A line that begins a block behind a line of text."""
_ADJOINING: Final = re.compile(rb"[ \t]*\r?\n?[ \t>]*")
"""What is between lines of two blocks of which the second could continue the first."""
_TAG: Final = (b"<", b"{")
_MOST_PASSES: Final = 8


def outdent(text: bytearray, code: Sequence[tuple[int, int]]) -> None:
    """Move the lines behind tags to the left; `code` are the ranges of fenced code.

    Lines keep their indentation relative to the first one behind a tag; those that continue a
    paragraph stay, because blanks before a break would show.
    """
    if _DEEP.search(text) is None:
        return
    fenced = iter([*sorted(code), (len(text), len(text))])
    fence = next(fenced)
    base, awaited, is_free, in_table, head = 0, False, True, False, b""
    for line in list(_LINES.finditer(bytes(text))):
        start, width = line.start("line"), len(line["indent"])
        while start >= fence[1] and fence[0] < len(text):
            fence = next(fenced)
        cells = line["line"].strip()
        if not cells:
            is_free, in_table, head = True, False, b""
            continue
        if line["tag"] is not None:
            shift = width if awaited or base else 0
            text[line.start("break") : start + shift] = b" " * shift + line["break"]
            awaited = is_free = True
            in_table, head = False, b""
            continue
        if awaited:
            base, awaited = (width if width >= _CODE_INDENT else 0), False
        shift = min(base, width)
        in_table = in_table or begin_table(head, cells)
        moves = is_free or in_table or fence[0] < start < fence[1] or line["block"] is not None
        if shift and moves:
            text[line.start("break") : start + shift] = b" " * shift + line["break"]
        is_free, head = False, cells if is_free else b""


def parsed_without_code(masks: Masks) -> Sequence[Parsed]:
    """Return the blocks of a document in which no indentation makes code or continues lines.

    Parses again as long as there is some, for it may hide more.
    """
    found = parsed(bytes(masks.text))
    for _ in range(_MOST_PASSES):
        if not _move_all(masks, found):
            break
        found = parsed(bytes(masks.text))
    return found


def _move_all(masks: Masks, found: Sequence[Parsed]) -> bool:
    """Move the lines of all blocks that no moved one might continue now; return whether any did."""
    behind = -1
    for each in found:
        first, last = (
            (each.tokens[0], each.tokens[-1]) if isinstance(each, MarkdownBlock) else (each, each)
        )
        adjoins = behind >= 0 and _ADJOINING.fullmatch(masks.text, behind, first.start)
        if not adjoins and _moved(masks, each):
            behind = last.end
    return behind >= 0


def _moved(masks: Masks, found: Parsed) -> bool:
    """Move the lines of a block that only its indentation makes one; return whether any moved."""
    if isinstance(found, IndentedCode):
        _move_code(masks.text, found.start, found.end)
        return True
    if not isinstance(found, MarkdownBlock):
        return False
    starts = [*_tags_in(masks, found), *_blocks_in(masks.text, found)]
    for start in starts:
        line = _line_start(masks.text, start)
        _move(masks.text, line, _place(masks.text, line, _CODE_INDENT - 1), start)
    return bool(starts)


def _tags_in(masks: Masks, block: MarkdownBlock) -> Iterator[int]:
    """Yield the places of lines of tags that are indented so far that they continue a paragraph."""
    for mark in masks.within(block.tokens[0].start, block.tokens[-1].end):
        if mark.kind == "line" and masks.source.startswith(_TAG, mark.start):
            line = _line_start(masks.text, mark.start)
            deep = _column(masks.text, line, mark.start) >= _CODE_INDENT
            if deep and not masks.text[line : mark.start].strip():
                yield mark.start


def _blocks_in(text: bytearray, block: MarkdownBlock) -> Iterator[int]:
    """Yield the places of lines that begin a block and are indented as far."""
    for line in _INTERRUPTING.finditer(text, block.tokens[0].start, block.tokens[-1].end):
        if _column(text, line.start("indent"), line.end("indent")) >= _CODE_INDENT:
            yield line.end("indent")


def _move_code(text: bytearray, start: int, end: int) -> None:
    """Move the lines of indented code to the left, as far as its first one."""
    line = _line_start(text, start)
    column = _column(text, line, start) - _CODE_INDENT
    shift = _behind_blanks(text, start) - _place(text, line, column)
    is_free, in_table, head, fence = True, False, b"", b""
    while line < end:
        behind = text.find(b"\n", line) + 1 or len(text)
        first = _place(text, line, column)
        last = min(_behind_blanks(text, first), first + shift)
        cells = bytes(text[last:behind]).strip()
        if not cells:
            is_free, in_table, head = True, False, b""
            line = behind
            continue
        begins = _STARTS.match(text, last)
        in_table = in_table or begin_table(head, cells)
        if is_free or in_table or fence or begins is not None:
            _move(text, line, first, last)
        if begins is not None and begins["fence"] is not None:
            fence = _fence(fence, begins["fence"])
        is_free, head = False, cells if is_free else b""
        line = behind


def _fence(opened: bytes, run: bytes) -> bytes:
    """Return the fence that is open behind a line that begins with one."""
    if not opened:
        return bytes(run)
    closes = run[:1] == opened[:1] and len(run) >= len(opened)
    return b"" if closes else opened


def _move(text: bytearray, line: int, first: int, last: int) -> None:
    """Move the break before a line, and what comes behind it, over blanks to its right."""
    if not line:
        text[first:last] = (b" " * (last - first - 1) + b"\n") if last > first else b""
        return
    start = line - (2 if text[line - 2 : line] == b"\r\n" else 1)
    text[start:last] = b" " * (last - first) + text[start:first]


def _line_start(text: bytearray, place: int) -> int:
    return text.rfind(b"\n", 0, place) + 1


def _column(text: bytearray, line: int, place: int) -> int:
    """Return the column of a place: a tab goes on to the next multiple of four."""
    return len(text[line:place].expandtabs(_CODE_INDENT))


def _place(text: bytearray, line: int, column: int) -> int:
    """Return the first place of a line in or behind a column, or where the line ends."""
    place, at = line, 0
    while at < column and place < len(text) and text[place] not in b"\r\n":
        at += _CODE_INDENT - at % _CODE_INDENT if text[place] == ord("\t") else 1
        place += 1
    return place


def _behind_blanks(text: bytearray, place: int) -> int:
    while place < len(text) and text[place] in b" \t":
        place += 1
    return place
