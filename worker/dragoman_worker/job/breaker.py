"""Breaker: separates an engine that writes nonsense from jobs that no engine could translate.

It is here and not with the permits in `flow`, because it stands between a failed attempt and the
job's failure, and knows nothing of admission. Pure: the sample is asked by what is passed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from dragoman_worker.errors import Halt

AskSample = Callable[[], Awaitable[str | None]]
"""Asks the engine for a sample; returns what is wrong with its answer, or None."""
MOST_IN_A_ROW: Final = 50
"""Failed attempts in a row, over all jobs, after which the engine is suspected."""


class Nonsense(Halt):
    """The engine does not even answer its sample; the jobs in it are not to blame."""


async def no_sample() -> str | None:
    """Return None: for measurements, which do not halt."""
    return None


class Breaker:
    """Halts the worker instead of failing jobs once the engine's answers are worth nothing.

    Before an engine's failure becomes that of a job, and at the 50th failed attempt in a row, the
    engine is asked for a sample. If the answer is right, the failures are the jobs' own. All that
    fail meanwhile wait for the same answer, so a document of bad items costs a sample per round.
    """

    def __init__(self, ask_sample: AskSample, *, most_in_a_row: int = MOST_IN_A_ROW) -> None:
        self._ask_sample = ask_sample
        self._most = most_in_a_row
        self._in_a_row = 0
        self._asking: asyncio.Task[None] | None = None

    def answered(self) -> None:
        """Count an attempt with a usable answer."""
        self._in_a_row = 0

    async def failed(self) -> None:
        """Count a failed attempt; return when another one may follow. Raises Nonsense."""
        self._in_a_row += 1
        if self._in_a_row >= self._most:
            await self.confirm()

    async def confirm(self) -> None:
        """Return once the engine has answered its sample right. Raises Nonsense, and EngineDead."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="engine-sample")
            self._asking.add_done_callback(_retrieve)
        await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        try:
            fault = await self._ask_sample()
        finally:
            self._asking = None
        if fault is not None:
            raise Nonsense(
                f"the engine answers its test sentence {fault}, and {self._in_a_row} attempts in a "
                "row failed; their jobs are released, and the replica starts again"
            )
        self._in_a_row = 0


def _retrieve(task: asyncio.Task[None]) -> None:
    """Keep asyncio from logging a failure for which nobody waits any more."""
    if not task.cancelled():
        task.exception()
