"""Progress bar of a long read, on stderr: records, rate and remaining time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman_producer.cli.terminal import bar_of

if TYPE_CHECKING:
    from rich.progress import TaskID


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
