"""Somebody else's words as one line of a message of ours."""

from __future__ import annotations

from typing import Final

_MAX_LINE_CHARS: Final = 500


def one_line(text: str, *, max_chars: int = _MAX_LINE_CHARS) -> str:
    """Return `text` without line breaks, cut to `max_chars` characters."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 3]}..."
