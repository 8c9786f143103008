"""How far is a long reading, how fast is it, and how long will it still take? Told on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meter() -> Iterator[Callable[[str, int, int], None]]:
    """A bar a title where a person watches stderr, else nothing; call it (title, done, total)."""
    if not sys.stderr.isatty():
        yield lambda _title, _done, _total: None
        return
    from rich.console import Console  # only where a bar is shown
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} records/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, redirect_stdout=sys.stdout.isatty(), transient=True
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def update(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bar.add_task(title)
            bar.update(tasks[title], completed=done, total=total)

        yield update
