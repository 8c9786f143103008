"""Tables that CommonMark does not know, and lines of verse."""

from __future__ import annotations

import re
from typing import Final

from dragoman_documents.markup.markdown.lines import Lines, behind_line
from dragoman_documents.values import is_text

_CODE: Final = re.compile(rb"`[^`\r\n]*`")
_SEPARATOR: Final = re.compile(rb"[ \t>]*[|:\-+= \t]*-[|:\-+= \t]*\r?\Z")
_ROWS: Final = re.compile(rb"(?:[ \t>]*[|+][^\n]*(?:\n|\Z))+")
_LINE: Final = re.compile(rb"^[ \t>]*(?P<line>[^\n]*?)[ \t]*\r?$", re.MULTILINE)
_TEXT: Final = re.compile(rb"[ \t>]*[^\s>#=|:\-*+`~<0-9]")
"""A line that may be the text of a paragraph, and begins no other block."""
_PARAGRAPH: Final = re.compile(rb"(?:[ \t>]*[^ \t>\r\n][^\n]*(?:\n|\Z))+")


class Tables(Lines):
    """Hides tables without a separator and those of Pandoc; lines of verse are items."""

    def _bar(self, match: re.Match[bytes]) -> int | None:
        """Leave tables to the parser, hide rows without a separator; lines of verse are items."""
        start = match.start()
        rows = _ROWS.match(self._text, match.start("bar"))
        assert rows is not None  # noqa: S101  the line matched
        lines = [line.strip(b" \t>\r") for line in rows[0].split(b"\n") if line.strip()]
        above = self._text[self._text.rfind(b"\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
        if b"|" in above or _SEPARATOR.match(above) or any(map(_SEPARATOR.match, lines)):
            self._hide_bars(start, rows.end())
            self._hide_bars_alone(start, rows.end())
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

    def _hide_bars_alone(self, start: int, end: int) -> None:
        """Hide lines of one bar behind a table, which are no rows: they would become some."""
        for _ in range(2):  # the head and the separator may begin without a bar
            start = self._text.rfind(b"\n", 0, max(0, start - 1)) + 1
        head, in_table = b"", False
        for line in _LINE.finditer(self._text, start, end):
            cells = line["line"]
            if in_table and cells == b"|":
                self._masks.line(*line.span("line"))
            elif b"|" in head and _SEPARATOR.match(cells) and _columns(head) == _columns(cells):
                in_table = True
            head = cells

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
        """Hide a table without bars in front of its rows right below a line of text.

        GitHub ends the paragraph there, our parser does not.
        """
        head_start = self._text.rfind(b"\n", 0, max(0, match.start() - 1)) + 1
        above_start = self._text.rfind(b"\n", 0, max(0, head_start - 1)) + 1
        head = self._text[head_start : max(0, match.start() - 1)].strip(b" \t>\r")
        above = self._text[above_start : max(0, head_start - 1)]
        is_head = b"|" in head and _columns(head) == _columns(match["separator"].strip())
        if not is_head or head.startswith(b"|") or not _TEXT.match(above):
            return None
        rows = _PARAGRAPH.match(self._text, behind_line(self._text, match.end()))
        end = rows.end() if rows else match.end()
        self._table(head_start, end)
        return end

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


def _columns(row: bytes) -> int:
    """Return the number of cells of a row of a table."""
    return row.removeprefix(b"|").removesuffix(b"|").replace(b"\\|", b"").count(b"|") + 1
