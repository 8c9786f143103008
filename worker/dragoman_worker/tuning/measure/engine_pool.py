"""Engine processes of one point: started and stopped together, and commanded at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman_worker.deadline import Deadline
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.engine_process import EngineProcess, EngineRefused

_POLL_EVERY_S: Final = 0.05


class EnginePool:
    """Equal engines that are kept until a point needs others. `key` identifies their inputs."""

    def __init__(self, jobs: Path, log: Path, progress: Callable[[str], None]) -> None:
        self._jobs = jobs
        self._log = log
        self._progress = progress
        self._key = ""
        self.engines: list[EngineProcess] = []
        self.start_s = 0.0
        """Seconds that the last start took, warm-up included: of one engine, or side by side."""

    def holds(self, key: str) -> bool:
        """Return whether the engines of `key` run."""
        return self._key == key

    async def replace(
        self, key: str, settings: WorkerSettings, places: Sequence[Place], options: str
    ) -> None:
        """Stop the present engines and start others, one in each place.

        They start side by side, except for engines that measure the GPU's free memory: each of
        those waits for the one before. `options` is shown as progress. Raises EngineRefused;
        then no engine runs.
        """
        await self.stop()
        began = time.monotonic()
        turns = starts_in_turn(places)
        try:
            for number, turn in enumerate(turns, 1):
                which = "the engine" if len(places) == 1 else f"{len(places)} engines"
                if len(turns) > 1:
                    which = f"the engine {number} of {len(turns)}"
                self._progress(f"starting {which}: {options}")
                await self._start(settings, turn)
        except BaseException:
            await self.kill()
            raise
        self._key, self.start_s = key, (time.monotonic() - began) / len(turns)

    async def _start(self, settings: WorkerSettings, places: Sequence[Place]) -> None:
        """Start engines side by side, and each that was refused then once more, alone.

        An engine that starts beside others may read what they half wrote: the index of compiled
        functions. `run` starts such an engine again too.
        """
        for place, refused in await self._start_beside(settings, places):
            self._progress(f"starting one engine again, without others: {refused}")
            self.engines.append(await EngineProcess.start(settings, place, self._jobs, self._log))

    async def _start_beside(
        self, settings: WorkerSettings, places: Sequence[Place]
    ) -> list[tuple[Place, EngineRefused]]:
        """Start engines side by side; return the places refused for what may pass.

        A refusal that lasts, or that of a single engine, cancels the starts of the others.
        """

        async def start(place: Place) -> EngineProcess | tuple[Place, EngineRefused]:
            try:
                return await EngineProcess.start(settings, place, self._jobs, self._log)
            except EngineRefused as refused:
                if refused.lasting or len(places) == 1:
                    raise
                return place, refused

        starts = [asyncio.create_task(start(place)) for place in places]
        try:
            await asyncio.gather(*starts)
        finally:
            for task in starts:
                task.cancel()
            ended = await asyncio.gather(*starts, return_exceptions=True)
            self.engines += [engine for engine in ended if isinstance(engine, EngineProcess)]
        return [each for each in ended if isinstance(each, tuple)]

    async def stop(self) -> None:
        """Let the engines exit by themselves, within a bound."""
        await asyncio.gather(*(engine.close() for engine in self._emptied()))

    async def kill(self) -> None:
        """Kill the engines at once."""
        await asyncio.gather(*(engine.kill() for engine in self._emptied()))

    def _emptied(self) -> list[EngineProcess]:
        engines, self.engines, self._key = self.engines, [], ""
        return engines


def starts_in_turn(places: Sequence[Place]) -> Sequence[Sequence[Place]]:
    """Return the places in groups that may start side by side."""
    if any(place.measures_memory for place in places):
        return [[place] for place in places]
    return [places]


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
        await asyncio.sleep(_POLL_EVERY_S)
