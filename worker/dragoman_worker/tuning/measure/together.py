"""How are several engines asked as if they were one?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman_worker.deadline import Deadline
from dragoman_worker.tuning.measure.engine_process import EngineProcess

_LOOK_S: Final = 0.05


async def together(engines: Sequence[EngineProcess], do: Callable[[EngineProcess], Any]) -> Any:
    """The answers of all, in their order."""
    return await asyncio.gather(*(do(engine) for engine in engines))


async def least_done(engines: Sequence[EngineProcess]) -> int:
    """Jobs of the engine that has done the fewest."""
    told = await together(engines, lambda engine: engine.ask("look"))
    return min(int(answer["jobs_done"]) for answer in told)


async def until(engines: Sequence[EngineProcess], jobs: int, within_s: float) -> None:
    """Until each engine has done so many jobs, or the time is up."""
    deadline = Deadline.after(within_s)
    # It is another process that counts: it is asked.
    while not deadline.passed and await least_done(engines) < jobs:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
