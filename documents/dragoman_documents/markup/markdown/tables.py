"""Tables that CommonMark does not know, and lines of verse."""

from __future__ import annotations

import re
from typing import Final

from dragoman_documents.markup.markdown.lines import Lines, behind_line
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.sites import Site
from dragoman_documents.values import is_text

_CODE: Final = re.compile(rb"`[^`\r\n]*`")
_SEPARATOR: Final = re.compile(rb"[ \t>]*[|:\-+= \t]*-[|:\-+= \t]*\r?\Z")
_CELLS: Final = re.compile(rb"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*+\|?")
_HIDDEN: Final = re.compile(rb"\{\{[^{}]*\}\}|\{%[^{}]*%\}|\[\[[^\[\]]*\]\]")
"""Templates and wiki links, whose bars separate no cells."""
_ROWS: Final = re.compile(rb"(?:[ \t>]*[|+][^\n]*(?:\n|\Z))+")
_LINE: Final = re.compile(
    rb"^(?P<quotes>[ \t>]*)(?P<item>(?:(?:[-*+:]|[0-9]{1,9}[.)])[ \t]+)*)"
    rb"(?P<line>[^\n]*?)[ \t]*\r?$",
    re.MULTILINE,
)
_CODE_INDENT: Final = 4
_Line = re.Match[bytes]
_TEXT: Final = re.compile(
    rb"[ \t>]*(?![-*+][ \t]|[0-9]{1,9}[.)][ \t]|[>#=:]|<[A-Za-z/!?]|\|[ \t]*[^ \t\r\n]"
    rb"|[-*_]{3}|`{3}|~{3})[^\s]"
)
"""A line that may be the text of a paragraph, and begins no other block."""
_PARAGRAPH: Final = re.compile(rb"(?:[ \t>]*[^ \t>\r\n][^\n]*(?:\n|\Z))+")


class Tables(Lines):
    """Hides tables without a separator and those of Pandoc; lines of verse are items."""

    def __init__(self, masks: Masks, site: Site) -> None:
        super().__init__(masks, site)
        self._looked_at = 0

    def _bar(self, match: re.Match[bytes]) -> int | None:
        """Leave tables to the parser, hide rows without a separator; lines of verse are items."""
        start = match.start()
        rows = _ROWS.match(self._text, match.start("bar"))
        assert rows is not None  # noqa: S101  the line matched
        lines = [line.strip(b" \t>\r") for line in rows[0].split(b"\n") if line.strip()]
        above = self._text[self._text.rfind(b"\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
        is_item = match["prefix"].strip(b" \t>")
        goes_on = not is_item and (b"|" in above or _SEPARATOR.match(above))
        if b"|" in lines:
            self._hide_bars_alone(rows.end())
        if _SEPARATOR.match(lines[0]) and (behind := self._below_text(start, match.end())):
            return behind
        below = self._text[rows.end() : behind_line(self._text, rows.end())].rstrip(b"\n")
        if goes_on or any(map(_SEPARATOR.match, [*lines, below])):
            self._hide_bars(start, rows.end())
            return rows.end()
        if not self._begins_paragraph(match):
            return rows.end()
        if all(line.endswith(b"|") and len(line) > 1 for line in lines):
            self._table(rows.start(), rows.end())
        elif all(line[1:2] in (b" ", b"") and b"|" not in line[1:] for line in lines) and (
            not self._text[rows.end() : behind_line(self._text, rows.end())].strip(b" \t>\r\n")
        ):
            self._verses(rows.start(), rows.end())
        return rows.end()

    def _hide_bars(self, start: int, end: int) -> None:
        """Hide bars in inline code from the parser where they separate no cells."""
        if self._site.dialect == "python-markdown":
            for code in _CODE.finditer(self._text, start, end):
                if b"|" in code[0]:
                    self._masks.spell(*code.span(), code[0].replace(b"|", b"x"))

    def _hide_bars_alone(self, end: int) -> None:
        """Hide lines of one bar behind a table, which are no rows: they would become some.

        Each line is looked at once, also those in front of the first such line.
        """
        first: _Line | None = None
        above: _Line | None = None
        in_table = False
        for line in _LINE.finditer(self._text, self._looked_at, end):
            if not line["line"]:
                first, in_table = None, False
            elif in_table and line["line"] == b"|":
                self._masks.line(*line.span("line"))
            elif above and first and _is_table(above, line, first):
                in_table = True
            elif first is None or line["item"]:
                first = line
            above = line
        self._looked_at = end

    def _verses(self, start: int, end: int) -> None:
        self._masks.spell(start, start + 1, b"-")
        for each in re.compile(rb"^[ \t>]*\|", re.MULTILINE).finditer(self._text, start + 1, end):
            self._masks.spell(each.end() - 1, each.end(), b"-")

    def _grid(self, match: re.Match[bytes]) -> int | None:
        rows = _ROWS.match(self._text, match.start("grid"))
        assert rows is not None  # noqa: S101  the line matched
        self._table(match.start("grid"), rows.end())
        return rows.end()

    def _separator(self, match: re.Match[bytes]) -> int | None:
        """Hide a table whose separator begins without a bar where the parser sees none."""
        return self._below_text(match.start(), match.end())

    def _below_text(self, start: int, end: int) -> int | None:
        """Hide a table right below a line of text whose head begins without a bar.

        `[start:end)` is the line of its separator. GitHub ends the paragraph there, our parser
        does not.
        """
        head_start = self._text.rfind(b"\n", 0, max(0, start - 1)) + 1
        above_start = self._text.rfind(b"\n", 0, max(0, head_start - 1)) + 1
        lines = list(_LINE.finditer(self._text, above_start, end))
        if len(lines) != 3 or not _is_table(lines[1], lines[2]):
            return None
        text, head, _ = lines
        quoted = text["quotes"].count(b">") == head["quotes"].count(b">")
        if head["line"].startswith(b"|") or not (quoted and _TEXT.match(text[0])):
            return None
        rows = _PARAGRAPH.match(self._text, behind_line(self._text, end))
        behind = rows.end() if rows else end
        self._table(head_start, behind)
        return behind

    def _dashes(self, match: re.Match[bytes]) -> int | None:
        """Hide a simple table of Pandoc: its columns are where its blanks are."""
        behind = behind_line(self._text, match.end())
        rows = _PARAGRAPH.match(self._text, behind)
        head = self._text.rfind(b"\n", 0, max(0, match.start() - 1)) + 1
        has_head = match.start() and self._text[head : match.start()].strip()
        start = head if has_head else match.start()
        end = rows.end() if rows else match.end()
        self._table(start, end)
        return end

    def _table(self, start: int, end: int) -> None:
        if is_text(self._text[start:end].decode("utf-8", "replace")):
            self._left("table", start)
        self._masks.region(start, end)


def begin_table(head: bytes, separator: bytes) -> bool:
    """Return whether two lines without blanks around them are the head of a table."""
    if b"{" in head or b"[[" in head:
        head = _HIDDEN.sub(b"", head)
    return (
        b"|" in head
        and _CELLS.fullmatch(separator) is not None
        and _columns(head) == _columns(separator)
    )


def _is_table(head: _Line, separator: _Line, first: _Line | None = None) -> bool:
    """Return whether two lines begin a table.

    `first`: the line that begins their paragraph or item, if they could only continue that.
    """
    cells = separator[0].strip(b" \t>\r")  # of which the first may look like the mark of an item
    return (
        begin_table(head["line"], cells)
        and separator["quotes"].count(b">") == head["quotes"].count(b">")
        and len(separator["quotes"]) < _column(head) + _CODE_INDENT
        and _is_inside(head, separator)
        and (first is None or first is head or _is_inside(first, head))
    )


def _is_inside(first: _Line, line: _Line) -> bool:
    """Return whether a line is in the quotes and the item of a list of one above it."""
    same = line["quotes"].count(b">") >= first["quotes"].count(b">")
    return same and (not first["item"] or len(line["quotes"]) >= _column(first))


def _column(line: _Line) -> int:
    """Return where the text of a line begins."""
    return len(line["quotes"]) + len(line["item"])


def _columns(row: bytes) -> int:
    """Return the number of cells of a row of a table."""
    return row.removeprefix(b"|").removesuffix(b"|").replace(b"\\|", b"").count(b"|") + 1
