"""What has been measured already? A line a row, appended at once, and found again by its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError

Row = dict[str, Any]
NAME: Final = "rows.jsonl"


def key_of(what: Mapping[str, Any]) -> str:
    """Names what is to be measured: the same settings, jobs and seconds give the same key."""
    text = json.dumps(what, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Rows:
    """The rows of one folder. One that a kill cut off is dropped; the next starts a new line.

    A row with `passing` holds for the run that wrote it: the next one tries again.
    """

    def __init__(self, folder: Path) -> None:
        self.place = folder / NAME
        self._rows: dict[str, Row] = {}
        self._ends_well = True
        if self.place.exists():
            self._read()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def get(self, key: str) -> Row | None:
        """The row of that key, if it was measured."""
        return self._rows.get(key)

    def add(self, row: Row) -> None:
        """Keep it, on the disk first."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
        with self.place.open("a", encoding="utf-8") as file:
            file.write(line if self._ends_well else f"\n{line}")
        self._ends_well = True
        self._rows[row["key"]] = row

    def _read(self) -> None:
        try:
            text = self.place.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise SettingsError(f"--out {self.place}: {error.strerror}") from None
        self._ends_well = text.endswith("\n") or not text
        for line in text.split("\n"):
            try:
                row = json.loads(line)
                if not row.get("passing"):
                    self._rows[row["key"]] = row
            except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
                continue
