"""Terminal output of a box: every wait with its seconds, lines for people, and data."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from dragoman_connections.consoles import SafeConsole

_LINE_EVERY_S: Final = 10.0
"""Between two lines of a wait if stderr is not a terminal."""


class BoxScreen:
    """Waits, notes and errors on stderr, data on stdout; plain lines without a terminal."""

    def __init__(self, program: str, out: Console | None = None, err: Console | None = None):
        self._program = program
        self._out = out or SafeConsole()
        self._err = err or SafeConsole(stderr=True)

    @asynccontextmanager
    async def step(self, doing: str) -> AsyncIterator[None]:
        """Show a wait with the seconds so far; once it is over, print how long it took."""
        started = time.monotonic()
        counting = asyncio.create_task(self._count(doing, started), name="seconds")
        try:
            with Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=self._err,
                transient=True,
                disable=not self._err.is_terminal,
            ) as progress:
                progress.add_task(doing, total=None)
                yield
        finally:
            counting.cancel()
        took = f"  {time.monotonic() - started:.1f} s"
        with suppress(OSError):  # the terminal is closed
            self._err.print(Text.assemble(("✓ ", "green"), doing, (took, "dim")), soft_wrap=True)

    async def _count(self, doing: str, started: float) -> None:
        if self._err.is_terminal:
            return
        self.line(f"{doing} ...")
        while True:
            await asyncio.sleep(_LINE_EVERY_S)
            self.line(f"{doing} ... {time.monotonic() - started:.0f} s")

    def line(self, text: str = "") -> None:
        """Print a line on stderr, unwrapped and without markup."""
        with suppress(OSError):  # the terminal is closed
            self._err.print(text, markup=False, highlight=False, soft_wrap=True)

    def data(self, text: str) -> None:
        """Print a line on stdout, unwrapped, so that it can be copied and parsed."""
        self._out.print(text, markup=False, highlight=False, soft_wrap=True)

    def error(self, text: str) -> None:
        """Print an error in one line on stderr; `text` says what to do."""
        line = Text.assemble((f"{self._program}: ", "bold red"), " ".join(text.split()))
        with suppress(OSError):
            self._err.print(line, soft_wrap=True)
