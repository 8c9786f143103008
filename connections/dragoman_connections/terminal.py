"""Output of all commands, and the phrases that they share.

What other programs wrote never controls the terminal that shows it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any, Final, Literal, TextIO

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""C0 except tab and line feed, DEL, C1, and the controls that reorder bidirectional text."""
_LEFT_BY_JSON: Final = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_HALVES: Final = re.compile("[\ud800-\udfff]")


def escaped(text: str) -> str:
    r"""Return the text with control characters written as escapes, such as `\x1b`."""
    return _CONTROLS.sub(_escape, text)


def shown(text: str, stream: TextIO) -> str:
    """Return the text as the stream gets it: escaped for a terminal, otherwise exact."""
    return escaped(text) if stream.isatty() else text


def print_to(stream: TextIO | None, text: str, *, flush: bool = False) -> None:
    """Print a line or lines; nothing to a stream that the caller has closed, which is None.

    A stderr that cannot be written (a full disk, no reader) costs its lines, not the command.
    """
    if stream is None:
        return
    try:
        print(shown(text, stream), file=stream, flush=flush)
    except OSError:
        if stream is not sys.stderr:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # with what is in its buffer


def json_line(value: Any) -> str:
    """Return JSON on one line, readable in every script, in which control characters are escapes.

    A program may read it from a pipe and show it as it is.
    """
    return safe_json(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def safe_json(spelled: str) -> str:
    """Return JSON in which control characters are escapes, and halves of characters text.

    Strict readers refuse half a surrogate pair, as in the name of a file that is not UTF-8.
    """
    halved = _HALVES.sub(lambda match: f"\\\\u{ord(match[0]):04x}", spelled)
    return _LEFT_BY_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", halved)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


Extra = Literal["documents", "echo", "serve", "worker", "plots", "box", "msk", "otel", "parquet"]


def how_to_install(extra: Extra) -> str:
    """Return the command that installs one extra, the same in every message and page.

    Nothing is on a package index yet, so the advice works in a clone of the repository.
    """
    return f"in a clone of the repository, `pip install '.[{extra}]'`"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 file`, `2,000 files`. `plural` is by default noun + s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
