"""Output of the commands: data on stdout, one line per error on stderr, an exit status."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import typer

from dragoman_connections.terminal import counted, json_line, print_to

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SUCCESS: Final = 0
FAILURE: Final = 1
USAGE_ERROR: Final = 2
PARTIAL: Final = 3
INTERRUPTED: Final = 130
LINE_EVERY_S: Final = 10.0
"""Between lines of progress where stderr is no terminal."""
_COUNTED_BETWEEN: Final = 16
_BESIDE_BAR: Final = 54
"""Columns of a terminal for title, counts, rate and time next to a bar, for two million jobs."""
_JOINERS: Final = "\u200c\u200d"


def print_note(line: str) -> None:
    """Print one line for the user on stderr."""
    print_to(sys.stderr, " ".join(line.split()), flush=True)


def print_aside(line: str) -> None:
    """Print one line of a listing on stderr, with its blanks."""
    print_to(sys.stderr, line, flush=True)


def print_line(line: str) -> None:
    """Print one line of data on stdout. Raises OSError that names it."""
    try:
        print_to(sys.stdout, line, flush=sys.stdout.isatty())
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def print_json(fields: dict[str, Any]) -> None:
    """Print one JSON object on one line of stdout."""
    print_line(json_line(fields))


def plain(content: object) -> str:
    """Return content on one line without control characters: other programs wrote it.

    Zero-width joiners stay: they are part of words and of emoji.
    """
    line = " ".join(str(content).split())
    return "".join(
        sign if sign.isprintable() or sign in _JOINERS else "\N{REPLACEMENT CHARACTER}"
        for sign in line
    )


def place(file: object, line: int, earlier: tuple[object, int] | None = None) -> str:
    """Return a line of a file as text, and the earlier line that it repeats, with another file."""
    shown = f"{plain(file)}, line {line:,}"
    if earlier is None:
        return shown
    other = "" if earlier[0] == file else f"{plain(earlier[0])}, "
    return f"{shown} ({other}line {earlier[1]:,})"


def run(work: Coroutine[Any, Any, int], interrupted: Callable[[], str] = lambda: "") -> None:
    """Run a command's work and exit with its status; known errors are printed in one line."""
    try:
        status = _status_of(work)
    except KeyboardInterrupt:
        print_note(f"dragoman: interrupted{interrupted()}")
        status = INTERRUPTED
    except BrokenPipeError:
        flushed()
        status = FAILURE
    finally:
        work.close()  # Ctrl-C may come before it begins, and Python reports what never began
    raise typer.Exit(status)


def _status_of(work: Coroutine[Any, Any, int]) -> int:
    from dragoman_connections.settings import SettingsError
    from dragoman_producer.errors import DragomanError, WrongBroker, WrongStore  # keeps --help fast

    try:
        return asyncio.run(work)
    except (SettingsError, WrongBroker, WrongStore) as error:
        print_note(f"dragoman: {error}")
        return USAGE_ERROR
    except DragomanError as error:
        print_note(f"dragoman: {error}")
        return FAILURE


@contextmanager
def reported_interrupt() -> Iterator[None]:
    """Report Ctrl-C before `run`, such as while input is read, as `run` reports it."""
    try:
        yield
    except KeyboardInterrupt:
        print_note("dragoman: interrupted")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a blocking read inside a coroutine, which asyncio ends at its next await."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # ignored, as under nohup
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def flushed() -> bool:
    """Flush stdout; return False if that failed, and discard all further output.

    A closed pipe is not reported as an error; a full disk is.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print_note(f"dragoman: standard output: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[], None]]:
    """Show a bar with rate and remaining time, or lines where stderr is no terminal.

    Call the function once per job.
    """
    if total == 1:
        yield lambda: None
        return
    if not sys.stderr.isatty():
        yield ProgressLines(title, total).advance
        return
    bar = bar_of("jobs")
    task = bar.add_task(title, total=total)
    with bar:
        yield lambda: bar.advance(task)


class ProgressLines:
    """Lines of progress for a file or a log, at most one every LINE_EVERY_S."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._began = self._shown_at = time.monotonic()

    def advance(self) -> None:
        """Count a job; print a line if it is time for one."""
        self._done += 1
        if self._done % _COUNTED_BETWEEN:
            return
        now = time.monotonic()
        if now - self._shown_at >= LINE_EVERY_S:
            self._shown_at = now
            print_note(self.line(now - self._began))

    def line(self, seconds: float) -> str:
        """Return the line: how many, the rate, and the remaining time."""
        rate = self._done / seconds if seconds > 0 else 0.0
        if self._total is None or not rate:
            return f"{self._title} {counted(self._done, 'job')}, {rate:,.0f}/s"
        left = duration(max(0, self._total - self._done) / rate)
        return f"{self._title} {self._done:,} of {self._total:,} jobs, {rate:,.0f}/s, {left} left"


def duration(seconds: float) -> str:
    """Return seconds as 1:02:03 or 2:03."""
    whole = int(max(0.0, seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def bar_of(what: str) -> Progress:
    """Return a bar on stderr with the rate in `what` per second and the remaining time."""
    from rich.progress import (  # loaded only if a bar is shown
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    from dragoman_connections.consoles import SafeConsole

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} {what}/s")

    console = SafeConsole(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),  # file names may have brackets
        BarColumn(bar_width=max(4, min(40, console.width - _BESIDE_BAR))),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    return Progress(
        *columns,
        console=console,
        redirect_stdout=sys.stdout.isatty(),
        transient=True,
    )


@contextmanager
def meter() -> Iterator[Callable[[str, int, int], None]]:
    """Show one bar per title if stderr is a terminal; call the function (title, done, total)."""
    if not sys.stderr.isatty():
        yield lambda _title, _done, _total: None
        return
    with bar_of("records") as bar:
        tasks: dict[str, TaskID] = {}

        def update(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bar.add_task(title)
            bar.update(tasks[title], completed=done, total=total)

        yield update
