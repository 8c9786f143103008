"""The timeline of a storm: JSON lines in a file and a readable text."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any


class Timeline:
    """A thread-safe log; times are seconds since `begin`."""

    def __init__(self, file: Path, *, loud: bool = False) -> None:
        self.file = file
        self._loud = loud
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._lines: list[dict[str, Any]] = []
        file.write_text("", encoding="utf-8")

    def begin(self) -> None:
        """Set second 0 to now."""
        self._began = time.monotonic()

    @property
    def now_s(self) -> float:
        """Return the seconds since `begin`."""
        return time.monotonic() - self._began

    def note(self, what: str, **fields: Any) -> None:
        """Write one line; `at_s` is now unless it is given."""
        line = {"what": what, "at_s": round(self.now_s, 3), **fields}
        with self._lock:
            self._lines.append(line)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        if self._loud:
            sys.stdout.write(_for_people(line) + "\n")
            sys.stdout.flush()

    def lines(self, what: str | None = None) -> list[dict[str, Any]]:
        """Return all lines so far, or those of one kind."""
        with self._lock:
            return [line for line in self._lines if what is None or line["what"] == what]

    def as_text(self) -> str:
        """Return the whole timeline as text."""
        return "\n".join(_for_people(line) for line in self.lines())


def _for_people(line: dict[str, Any]) -> str:
    rest = {name: value for name, value in line.items() if name not in {"what", "at_s"}}
    words = " ".join(f"{name}={value}" for name, value in rest.items() if value not in (None, ""))
    return f"{line['at_s']:8.2f}  {line['what']:8} {words}"
