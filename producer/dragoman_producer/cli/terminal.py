"""How do the commands speak: data on stdout, one line an error on stderr, and an exit status?"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

ALL_WELL: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
PARTLY: Final = 3
INTERRUPTED: Final = 130


def say(line: str) -> None:
    """One line for the person, on stderr."""
    print(" ".join(line.split()), file=sys.stderr, flush=True)  # noqa: T201 - this is the terminal


def put(line: str) -> None:
    """One line of data, on stdout."""
    print(line, flush=sys.stdout.isatty())  # noqa: T201 - this is the terminal


def put_json(fields: dict[str, Any]) -> None:
    """One object of data, on one line of stdout."""
    put(json.dumps(fields, ensure_ascii=False, separators=(", ", ": ")))


def run(work: Coroutine[Any, Any, int], interrupted: Callable[[], str] = lambda: "") -> None:
    """Run a command's work and end with its status; no error of ours becomes a traceback."""
    from dragoman_connections.settings import SettingsError
    from dragoman_producer.errors import DragomanError, WrongStore  # --help need not wait for it

    try:
        status = asyncio.run(work)
    except (SettingsError, WrongStore) as error:
        say(f"dragoman: {error}")
        status = WRONG_USAGE
    except DragomanError as error:
        say(f"dragoman: {error}")
        status = FAILED
    except KeyboardInterrupt:
        say(f"dragoman: interrupted{interrupted()}")
        status = INTERRUPTED
    except BrokenPipeError:
        flushed()
        status = FAILED
    raise typer.Exit(status)


def flushed() -> bool:
    """Whether stdout took all that was printed; if not, nothing more is printed, not even at exit.

    A reader that has gone is no error to report; a full disk is.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            say(f"dragoman: standard output: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A bar with rate and time left where a person watches stderr; call it once a job."""
    if not sys.stderr.isatty() or total == 1:
        yield lambda: None
        return
    bar = bar_of("jobs")
    task = bar.add_task(title, total=total)
    with bar:
        yield lambda: bar.advance(task)


def bar_of(what: str) -> Progress:
    """A bar on stderr with the rate in `what` a second and the time left."""
    from rich.console import Console  # only where a bar is shown
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} {what}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    return Progress(
        *columns, console=Console(stderr=True), redirect_stdout=sys.stdout.isatty(), transient=True
    )
