"""Templates and shortcodes: `{{ x }}`, `{% x %}`, `{{< x >}}`, `{{% x %}}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

_OPENING: Final = re.compile(rb"(?<!\\)(?:\{\{[<%]?|\{%)")
_ENDS: Final = {b"{{": b"}}", b"{%": b"%}", b"{{<": b">}}", b"{{%": b"%}}"}
_NAME: Final = re.compile(
    rb"\{\{?[<%]?-?[ \t\r\n]*(?P<end>/|end)?[ \t]*(?P<name>[A-Za-z][\w./\-]*)?"
)
_PARAGRAPH_END: Final = re.compile(rb"\n[ \t>]*\r?(?:\n|\Z)")
_LONGEST: Final = 4_000
"""Bytes of a tag."""
_POSITIONAL: Final = re.compile(rb"[\w%<][ \t\r\n]+(?:\"([^\"=]*)\"|'([^'=]*)')")


class Tag(NamedTuple):
    """A template at `[start:end)`, with the code between it and its closing one."""

    start: int
    end: int
    name: bytes
    code: bool = False


def tags(text: bytes, skipped: Sequence[tuple[int, int]], code: frozenset[str]) -> Iterator[Tag]:
    """Yield the templates outside of fenced code; those whose body is code with it."""
    rest = iter([*skipped, (len(text), len(text))])
    skip = next(rest)
    place, missing = 0, set[bytes]()
    while (opening := _OPENING.search(text, place)) is not None:
        start = opening.start()
        while start >= skip[1] and skip[0] < len(text):
            skip = next(rest)
        place = opening.end()
        if skip[0] <= start < skip[1]:
            place = skip[1]
            continue
        end = _end(text, start, opening[0])
        if end is None:
            continue
        name = _name(text, start)
        is_tag = opening[0] != b"{{"
        closing = _closing(text, start, end, name, code, missing) if is_tag else None
        yield Tag(start, closing or end, name, closing is not None)
        place = closing or end


def positional_text(text: bytes, tag: Tag) -> str:
    """Return the first quoted argument without a name."""
    match = _POSITIONAL.search(text, tag.start, tag.end)
    return (match[1] or match[2] or b"").decode("utf-8", "replace") if match else ""


def _end(text: bytes, start: int, opening: bytes) -> int | None:
    """Return the place behind a tag; None if it does not end in its paragraph."""
    closing = _ENDS[opening]
    end = text.find(closing, start + len(opening), start + _LONGEST)
    if end < 0 or _PARAGRAPH_END.search(text, start, end) is not None:
        return None
    return end + len(closing)


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
