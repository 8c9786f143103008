"""File of measured rows: one JSON line per row, appended at once and found by its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError

Row = dict[str, Any]
NAME: Final = "rows.jsonl"


def key_of(measurement: Mapping[str, Any]) -> str:
    """Return the key of a measurement: equal settings, jobs and seconds give equal keys."""
    text = json.dumps(measurement, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Rows:
    """Rows of one folder. A line that a kill cut off is dropped; the next row starts a new line.

    A row with `passing` is valid only for the run that wrote it: the next run tries again.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._rows: dict[str, Row] = {}
        self._last_line_complete = True
        if self.path.exists():
            self._read()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def get(self, key: str) -> Row | None:
        """Return the row of a key, None if it was not measured."""
        return self._rows.get(key)

    def add(self, row: Row) -> None:
        """Append a row to the file, then keep it in memory."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line if self._last_line_complete else f"\n{line}")
        self._last_line_complete = True
        self._rows[row["key"]] = row

    def _read(self) -> None:
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise SettingsError(f"--out {self.path}: {error.strerror}") from None
        self._last_line_complete = text.endswith("\n") or not text
        for line in text.split("\n"):
            try:
                row = json.loads(line)
                if not row.get("passing"):
                    self._rows[row["key"]] = row
            except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
                continue


def unusable(row: Row) -> str | None:
    """Return why a row says nothing about its point, None if it does."""
    if "refused" in row:
        return str(row["refused"])
    if row["failed"] and not row["output_tokens_per_s"]:
        return f"no job succeeded: {row.get('first_error')}"
    return None if row["jobs"] else "no job finished; raise --seconds-per-point"
