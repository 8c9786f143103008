"""Templates and shortcodes of Markdown and HTML: `{{ x }}`, `{% x %}`, `{{< x >}}`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

_OPENING: Final = re.compile(rb"\{(?:\{[<%]?|%)")
_ENDS: Final = {b"{{": b"}}", b"{%": b"%}", b"{{<": b">}}", b"{{%": b"%}}"}
_NAME: Final = re.compile(
    rb"\{\{?[<%]?-?[ \t\r\n]*(?P<end>/|end)?[ \t]*(?P<name>[A-Za-z][\w./\-]*)?"
)
_PARAGRAPH_END: Final = re.compile(rb"\n[ \t>]*\r?(?:\n|\Z)")
_LONGEST: Final = 4_000
"""Bytes of a tag."""
_POSITIONAL: Final = re.compile(rb"[\w%<][ \t\r\n]+(?:\"([^\"=]*)\"|'([^'=]*)')")


_CONTROL: Final = re.compile(
    r"\{%|\{#|\{\{-?\s*(?:[#/!]|(?:block|define|else|end|if|range|template|with)\b)"
)
_CODE_IN_HTML: Final = frozenset({"comment", "raw", "verbatim"})
_Range = tuple[int, int]


class TemplateTag(NamedTuple):
    """A template at `[start:end)`, with the code between it and its closing one."""

    start: int
    end: int
    name: bytes
    code: bool = False


def tags(
    text: bytes,
    skipped: Sequence[_Range],
    code: frozenset[str],
    *,
    paragraphs: bool = True,
) -> Iterator[TemplateTag]:
    """Yield the templates outside of fenced code; those whose body is code with it.

    With `paragraphs` each ends in the paragraph in which it begins.
    """
    rest = iter([*skipped, (len(text), len(text))])
    skip = next(rest)
    place, missing = 0, set[bytes]()
    while (opening := _OPENING.search(text, place)) is not None:
        start = opening.start()
        if text.endswith(b"\\", 0, start):
            place = start + 1
            continue
        while start >= skip[1] and skip[0] < len(text):
            skip = next(rest)
        place = opening.end()
        if skip[0] <= start < skip[1]:
            place = skip[1]
            continue
        end = _end(text, start, opening[0], paragraphs=paragraphs)
        if end is None:
            continue
        name = _name(text, start)
        is_tag = opening[0] != b"{{"
        closing = _closing(text, start, end, name, code, missing) if is_tag else None
        if closing is not None and _is_inside(skipped, closing):
            closing = None  # fenced code goes on behind it
        yield TemplateTag(start, closing or end, name, closing is not None)
        place = closing or end


def _is_inside(ranges: Sequence[_Range], place: int) -> bool:
    """Return whether a place is inside one of sorted ranges."""
    index = bisect_right(ranges, (place, place)) - 1
    return index >= 0 and place < ranges[index][1]


def positional_text(text: bytes, tag: TemplateTag) -> str:
    """Return the first quoted argument without a name."""
    match = _POSITIONAL.search(text, tag.start, tag.end)
    return (match[1] or match[2] or b"").decode("utf-8", "replace") if match else ""


def _end(text: bytes, start: int, opening: bytes, *, paragraphs: bool) -> int | None:
    """Return the place behind a tag; None if it does not end, or not in its paragraph."""
    closing = _ENDS[opening]
    end = text.find(closing, start + len(opening), start + _LONGEST)
    if end < 0:
        return None
    behind = end + len(closing)
    ends_before = paragraphs and _PARAGRAPH_END.search(text, start, behind) is not None
    return None if ends_before else behind


def _name(text: bytes, start: int) -> bytes:
    """Return the name of a tag that opens something; empty for others."""
    match = _NAME.match(text, start)
    return b"" if match is None or match["end"] else match["name"] or b""


def _closing(  # noqa: PLR0917
    text: bytes, start: int, end: int, name: bytes, code: frozenset[str], missing: set[bytes]
) -> int | None:
    """Return the place behind the tag that closes one of code; None if it is none.

    One that does not begin its line, as in a sentence about it, ends in the same line.
    """
    if not name or name in missing or name.decode("utf-8", "replace") not in code:
        return None
    line = text.rfind(b"\n", max(0, start - 200), start) + 1 or max(0, start - 200)
    begins = not text[line:start].strip(b" \t>-*+0123456789.)")
    limit = len(text)
    if not begins:
        limit = text.find(b"\n", end)
        limit = len(text) if limit < 0 else limit
    closing = _pattern(name).search(text, end, limit)
    if closing is None:
        if begins:
            missing.add(name)
        return None
    return closing.end()


@cache
def _pattern(name: bytes) -> re.Pattern[bytes]:
    escaped = re.escape(name)
    return re.compile(
        rb"\{\{[<%]-?[ \t]*/[ \t]*" + escaped + rb"[ \t]*-?[>%]\}\}"
        rb"|\{%-?[ \t]*end" + escaped + rb"[ \t]*-?%\}"
    )


def ranges(text: str) -> list[_Range]:
    """Return where a page of HTML has templates, in their order: also `{# x #}` and `{{{ x }}}`."""
    found = list(_comments(text))
    if "{{" not in text and "{%" not in text:
        return found
    raw, place, count = text.encode("utf-8", "surrogatepass"), 0, 0
    for tag in tags(raw, (), _CODE_IN_HTML, paragraphs=False):
        start = count + len(raw[place : tag.start].decode("utf-8", "surrogatepass"))
        end = start + len(raw[tag.start : tag.end].decode("utf-8", "surrogatepass"))
        place, count = tag.end, end
        end += text.startswith("{{{", start) and text.startswith("}", end)
        found.append((start, end))
    return _apart(sorted(found))


def _comments(text: str) -> Iterator[_Range]:
    """Yield the comments `{# x #}`."""
    start = text.find("{#")
    end = -1
    while start >= 0:
        if end < start + 2 and (end := text.find("#}", start + 2)) < 0:
            return
        is_one = end - start < _LONGEST
        if is_one:
            yield start, end + 2
        start = text.find("{#", end + 2 if is_one else start + 2)


def _apart(found: Sequence[_Range]) -> list[_Range]:
    """Return the ranges that are not within others before them."""
    apart: list[_Range] = []
    for start, end in found:
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return apart


def parted(found: Sequence[_Range], start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the parts of a range of a text, and whether each is one of the templates."""
    index = max(0, bisect_right(found, (start, start)) - 1)
    while start < end:
        while index < len(found) and found[index][1] <= start:
            index += 1
        first, behind = found[index] if index < len(found) else (end, end)
        stop = min(end, behind if first <= start else first)
        yield start, stop, first <= start
        start = stop


def is_template(code: str) -> bool:
    """Return whether markup is a template."""
    return code.startswith(("{{", "{%", "{#"))


def is_control(code: str) -> bool:
    """Return whether markup is a template that shows nothing: `{% if x %}`, `{{#if x}}`."""
    return _CONTROL.match(code) is not None
