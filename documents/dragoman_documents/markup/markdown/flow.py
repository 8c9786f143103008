"""What MDX takes as a whole before its lines are blocks: modules, tags and expressions.

Lines inside of them begin no block: a template string may hold fences and blank lines.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from dragoman_documents.markup.markdown import jsx

_LINES: Final = re.compile(
    rb"^(?:(?P<module>(?:import|export)(?=[ \t{*]))|(?P<indent>[ \t]*)(?=<[A-Za-z_$/>]|\{)"
    rb"|(?P<prefix>[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)"
    rb"(?P<fence>`{3,}(?=[^`\r\n]*\r?$)|~{3,}))",
    re.MULTILINE,
)
_SHAPE: Final = re.compile(
    rb"import[ \t]*(?:[\"'{]|\*[ \t]+as\b|[\w$]+[ \t]*(?:,|[ \t]from\b))"
    rb"|export[ \t]*(?:[{*]|(?:const|let|var|function|class|async|default)\b)"
)
"""A module for sure, which may stand below another line than a blank one."""
_ABOVE: Final = re.compile(
    rb"[ \t]*(?:\r?\Z|\#{1,6}[ \t]|<.*>[ \t]*\r?\Z|\{.*\}[ \t]*\r?\Z|.*(?:/>|\*/\})[ \t]*\r?\Z"
    rb"|(?:`{3,}|~{3,}|-{3,}|\*{3,}|_{3,})[ \t]*\r?\Z)"
)
"""A line that no text goes on behind."""
_PARAGRAPH_END: Final = re.compile(rb"\n[ \t]*\r?(?=\n|\Z)")
_NEXT: Final = re.compile(rb"[ \t]*(?=<[A-Za-z_$/>]|\{)")


class Region(NamedTuple):
    """A module, or a tag or an expression of several lines, at `[start:end)`."""

    start: int
    end: int
    is_module: bool


def regions(text: bytes, behind: int) -> Iterator[Region]:
    """Yield the modules outside of code, and the tags and expressions at the start of a line."""
    place, ends = behind, jsx.Ends(text)
    while (line := _LINES.search(text, place)) is not None:
        place = line.end()
        if line["fence"] is not None:
            place = _fence_end(text, line)
        elif line["module"] is None:
            place = yield from _spans(text, line.end(), ends)
        elif _begins(text, behind, line.start()):
            place = ends.module(line.start()) or _paragraph_end(text, line.start())
            yield Region(line.start(), place, is_module=True)


def _spans(text: bytes, place: int, ends: jsx.Ends) -> Generator[Region, None, int]:
    """Yield the tags and expressions of several lines from a place on; return what is behind."""
    while (end := ends.span(place)) is not None:
        if text.find(b"\n", place, end) >= 0:
            yield Region(place, end, is_module=False)
        following = _NEXT.match(text, end)
        if following is None:
            return end
        place = following.end()
    return place + 1


def _begins(text: bytes, behind: int, start: int) -> bool:
    """Return whether a module may begin at a line: it continues no paragraph."""
    if start == behind:
        return True
    above = text[max(behind, text.rfind(b"\n", 0, start - 1) + 1) : start - 1]
    return not above.strip() or bool(_ABOVE.match(above) and _SHAPE.match(text, start))


def _paragraph_end(text: bytes, start: int) -> int:
    found = _PARAGRAPH_END.search(text, start)
    return found.start() if found else len(text)


def _fence_end(text: bytes, line: re.Match[bytes]) -> int:
    """Return the end of the code that a fence begins."""
    run = line["fence"]
    closing = re.compile(
        rb"^[ \t>]{0,%d}%s{%d,}[ \t]*\r?$" % (len(line["prefix"]) + 3, run[:1], len(run)),
        re.MULTILINE,
    ).search(text, line.end())
    return closing.end() if closing else len(text)
