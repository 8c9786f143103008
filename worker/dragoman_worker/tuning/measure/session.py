"""One run of `tune` or `bench`: its sample, folder, progress display and cleanup."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rich.markup import escape
from rich.status import Status

from dragoman_connections.consoles import SafeConsole
from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import json_line, print_to
from dragoman_worker.deadline import Deadline
from dragoman_worker.prompts.table import profile_chooser
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.harness import Harness, PointSeconds, options_text
from dragoman_worker.tuning.measure.results import Row
from dragoman_worker.tuning.measure.sample import JobSample, from_file, from_topic


class CannotMeasure(Exception):
    """Nothing can be measured; the message gives the reason and the setting if known."""


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Parsed options that `tune` and `bench` share."""

    settings: WorkerSettings
    jobs: Path | None
    sample: int
    out: Path
    pace: PointSeconds
    as_json: bool


class MeasureScreen:
    """Progress on stderr: one changing line in a terminal, otherwise one line per event."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = SafeConsole(stderr=True, quiet=quiet, highlight=False)
        self._status: Status | None = None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def progress(self, text: str) -> None:
        """Show the current activity."""
        line = f"[{time.monotonic() - self._began:5.0f} s] {text}"
        if self._status is not None:
            self._status.update(escape(line))
        else:
            self._console.print(line, markup=False)

    def row(self, row: Row) -> None:
        """Print a measured row."""
        self._console.print(f"  {summary(row)}", markup=False)


def summary(row: Row) -> str:
    """Return a row as one line of text."""
    drive = row["drive"]
    held = drive["items"] or drive["batch"] or drive["jobs"] or _changed(row) or "as given"
    what = f"{row['stage']} ({held})"
    if "refused" in row:
        return f"{what}: refused: {row['refused']}"
    p99 = (row["latency_ms"] or {}).get("p99", 0.0)
    return (
        f"{what}: {row['jobs_per_s']:.4g} jobs/s, {row['output_tokens_per_s']:,.0f} tokens/s, "
        f"p99 {p99:,.0f} ms"
    )


def _changed(row: Row) -> str:
    """Return the options that differ from the settings, and the number of several engines."""
    changed = {name: row["options"].get(name) for name in row["changed"]}
    engines = [f"{row['replicas']} engines"] if row["replicas"] > 1 else []
    return ", ".join([*engines, *([options_text(changed)] if changed else [])])


async def read_sample(request: MeasureRequest) -> JobSample:
    """Return the jobs to measure with. Raises SettingsError, Unreachable and Halt."""
    if request.jobs is not None:
        return await asyncio.to_thread(from_file, request.jobs, request.sample)
    within = Deadline.after(request.settings.connect_timeout_s)
    return await from_topic(request.settings, request.sample, within)


@asynccontextmanager
async def harness_for(
    request: MeasureRequest, sample: JobSample, screen: MeasureScreen
) -> AsyncIterator[Harness]:
    """Open a harness; its engines are stopped on every exit. Raises SettingsError."""
    profile_chooser(request.settings.engine)  # an unknown profile is an error before any start
    folder = _folder(request.out)
    on_row = _print_row if request.as_json else screen.row
    harness = Harness(
        request.settings, sample, folder, request.pace, progress=screen.progress, on_row=on_row
    )
    try:
        yield harness
        await harness.release()
    finally:
        await harness.abandon()


def run_until_stopped(work: Callable[[], Awaitable[int]]) -> int:
    """Run `work` and return its status. Ctrl-C and SIGTERM cancel it: KeyboardInterrupt."""

    async def main() -> int:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def write_json(path: Path, data: Any) -> None:
    """Replace a JSON file atomically. Raises OSError naming it."""
    part = path.with_suffix(".part")
    try:
        part.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".write").touch()
        (path / ".write").unlink()
    except OSError as error:
        raise SettingsError(f"--out {path}: {_folder_problem(path, error)}") from None
    return path


def _folder_problem(path: Path, error: OSError) -> str:
    if path.exists() and not path.is_dir():
        return "there is a file of that name; give a folder"
    return f"it cannot be written to ({error.strerror}); give another folder"


def _print_row(row: Row) -> None:
    print_to(sys.stdout, json_line(row), flush=True)
