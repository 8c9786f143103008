"""Logs of the parts of a box: their last lines, and a bound for their size."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 16 * 1024 * 1024


def last_lines(log: Path, count: int, since: int = 0) -> str:
    """Return the last `count` lines of a log, taken from its last 64 KiB and after `since`."""
    size = log.stat().st_size
    with log.open("rb") as file:
        # A log that is shorter than before has been emptied since.
        file.seek(max(since if since <= size else 0, size - 65_536))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-count:])


def bound_logs(folder: Path, most: int = _MOST_BYTES) -> None:
    """Empty each log of more than `most` bytes; what it had is kept as NAME.log.1, the last one.

    Its program appends to the same file, so lines that it writes meanwhile may be lost.
    """
    for log in folder.glob("*.log"):
        with suppress(OSError):
            if log.stat().st_size > most:
                _keep(log)
                os.truncate(log, 0)


def _keep(log: Path) -> None:
    older = log.with_name(f"{log.name}.1")
    try:
        older.touch(mode=0o600)
        shutil.copyfile(log, older)
    except OSError:  # no room is left: the log itself has to go
        with suppress(OSError):
            older.unlink(missing_ok=True)
