"""File of measured rows: one JSON line per row, appended at once and found by its key.

The key covers the settings and the `environment`: whatever else a measurement depends on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.machine import this_machine
from dragoman_worker.settings import EngineSettings

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


_DRIVER: Final = Path("/proc/driver/nvidia/gpus")


def environment(engine: EngineSettings) -> dict[str, Any]:
    """Return the facts known without starting the engine; unknown ones are None or empty."""
    return {
        "version": _version("vllm" if engine.kind == "vllm" else "dragoman"),
        "machine": asdict(this_machine()),
        "gpus": _gpu_names(),
        "model": _files(Path(engine.model or "").expanduser()) if engine.model else [],
        # Files that the settings name: of prompts, and of the echo engine's answers.
        "texts": [_digest(path) for path in (engine.profile_file, engine.echo.table) if path],
    }


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.expanduser().read_bytes()).hexdigest()
    except OSError:
        return None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _gpu_names() -> Sequence[str]:
    """Return the GPU models as the driver names them; NVML's memory size does not identify one."""
    try:
        pages = [path.read_text() for path in sorted(_DRIVER.glob("*/information"))]
    except OSError:
        return []
    return [line for text in pages for line in text.splitlines() if line.startswith("Model:")]


def _files(folder: Path) -> Sequence[tuple[str, int, int]]:
    """Return name, bytes and modification time of each file; reading them would take minutes."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        found = [(path.name, path.stat()) for path in files]
    except OSError:
        return []
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]
