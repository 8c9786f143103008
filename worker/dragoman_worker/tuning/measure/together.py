"""Commands to several engine processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman_worker.deadline import Deadline
from dragoman_worker.tuning.measure.engine_process import EngineProcess

_LOOK_S: Final = 0.05


async def together(engines: Sequence[EngineProcess], do: Callable[[EngineProcess], Any]) -> Any:
    """Run `do` for all engines at once and return the answers in their order."""
    return await asyncio.gather(*(do(engine) for engine in engines))


async def least_done(engines: Sequence[EngineProcess]) -> int:
    """Return the job count of the engine that has completed the fewest."""
    answers = await together(engines, lambda engine: engine.ask("look"))
    return min(int(answer["jobs_done"]) for answer in answers)


async def until(engines: Sequence[EngineProcess], jobs: int, within_s: float) -> None:
    """Wait until each engine has completed that many jobs, or for `within_s` seconds."""
    deadline = Deadline.after(within_s)
    # Polled: the jobs are counted in other processes.
    while not deadline.passed and await least_done(engines) < jobs:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
