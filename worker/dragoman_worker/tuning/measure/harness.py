"""How is one point measured? The engine it needs is started, warmed, counted for a while, kept.

What was measured before is taken from its row; what cannot be measured is a row that says why.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dragoman_connections.secrets import without_secrets
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.engine_process import EngineProcess, Ready, Refused
from dragoman_worker.tuning.measure.environment import environment
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.results import Row, Rows, key_of
from dragoman_worker.tuning.measure.sample import Sample
from dragoman_worker.tuning.measure.statistics import spread, statistics_of
from dragoman_worker.tuning.measure.together import least_done, together, until

_LEAST_JOBS: Final = 8
"""A window with fewer is prolonged, to three times its seconds at most."""
_MOST: Final = 3
_ALL_S: Final = 3_600.0
_TURNS: Final = 2


class OutOfBudget(Exception):
    """What was asked for might not end in time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of a point: warming until every place was left twice, at least `warm_s`; counting."""

    seconds: float
    warm_s: float = 1.0
    budget_s: float = float("inf")

    @property
    def most_s(self) -> float:
        """A point takes no longer: warming and counting are each prolonged where jobs are long."""
        return self.warm_s + 2 * _MOST * self.seconds


@dataclass(frozen=True, slots=True)
class Point:
    """What to measure: how jobs are handed to so many engines with these options."""

    stage: str
    drive: Drive
    options: Mapping[str, Any] = field(default_factory=dict)
    """On top of the settings' own `engine.options`; None takes one away."""
    engines: int = 1
    of: int = 1
    """Engines resident, of which `engines` are driven: the memory is shared among all of them."""
    round: int = 0


class Harness:
    """Measures points one after another and keeps the engines of the last one."""

    def __init__(
        self,
        settings: WorkerSettings,
        sample: Sample,
        folder: Path,
        pace: Pace,
        *,
        say: Callable[[str], None],
        keep: Callable[[Row], None] = lambda _: None,
    ) -> None:
        """`say` is told what is done now, `keep` every row that was not there before."""
        self._keep = keep
        self._settings = settings
        self._folder = folder
        self._pace = pace
        self._say = say
        self._digest = sample.digest
        self._count = len(sample.jobs)
        self._jobs = folder / "sample.jsonl"
        sample.write(self._jobs)
        self._around = environment(settings.engine)
        self.rows = Rows(folder)
        self._before = {row["key"] for row in self.rows}
        self.reused: set[str] = set()
        """Keys of the points that an earlier run measured."""
        self._began = time.monotonic()
        self._engines: list[EngineProcess] = []
        self._engines_key = ""
        self._start_s = 0.0

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self._pace.budget_s - (time.monotonic() - self._began)

    @property
    def start_s(self) -> float:
        """What the last start of an engine took, with all that belongs to it."""
        return self._start_s

    @property
    def reserve_s(self) -> float:
        """What one more point in an engine of its own may take."""
        return self._start_s + self._pace.most_s

    async def measure(self, point: Point, *, reserve_s: float = 0.0) -> Row:
        """The point's row, measured if it was not. Raises OutOfBudget, leaving `reserve_s`."""
        key = self._key(point)
        if (known := self.rows.get(key)) is not None:
            if key in self._before:
                self.reused.add(key)
                self._say(f"{point.stage}: {_driven(point)}: measured before, at {known['at']}")
            return known
        try:
            row = await self._measure(point, reserve_s)
        except Refused as refused:
            await self._bury()
            row = _refusal(refused)
        row = {"key": key, **self._named(point), **row}
        row["at"] = _now()
        self.rows.add(row)
        self._keep(row)
        return row

    async def survey(self, point: Point, most: int = 2_000) -> Row:
        """Lengths of the sample by the engine's own tokenizer; its limits. Raises Refused."""
        key = key_of({"survey": self._told_to(point), "sample": self._digest})
        if (known := self.rows.get(key)) is not None and "refused" not in known:
            return known
        try:
            engine = (await self._with_engines(point, 0.0))[0]
        except Refused as refused:
            why = {**_refusal(refused), "passing": True, "at": _now()}
            self.rows.add({"key": key, **self._named(point), **why})
            raise
        told = await engine.ask("survey", most=most)
        row: Row = {
            "key": key,
            "stage": "survey",
            "jobs": self._count,
            "unplanned": told["unplanned"],
            "first_error": told["first_error"],
            "prompt_tokens": spread(told["prompt_tokens"], 0),
            "output_budget": spread(told["output_budget"], 0),
            "items_a_job": spread(told["items"], 0),
            **_said(engine.ready),
        }
        self.rows.add(row)
        return row

    async def release(self) -> None:
        """End the engines."""
        engines, self._engines, self._engines_key = self._engines, [], ""
        await asyncio.gather(*(engine.close() for engine in engines))

    async def abandon(self) -> None:
        """End the engines at once, and forget the users' texts."""
        await self._bury()
        self._jobs.unlink(missing_ok=True)

    async def _bury(self) -> None:
        engines, self._engines, self._engines_key = self._engines, [], ""
        await asyncio.gather(*(engine.kill() for engine in engines))

    # --- engines ----------------------------------------------------------------------------------

    async def _with_engines(self, point: Point, reserve_s: float) -> list[EngineProcess]:
        """The engines that the point needs, started one after another if they are not there."""
        settings = self._engine_settings(point)
        key = key_of({"settings": self._told_to(point), "of": point.of})
        if key == self._engines_key:
            return self._engines
        needed_s = self._start_s * point.of + self._pace.most_s + reserve_s
        self._in_time(needed_s, "starting the engine and measuring a point")
        await self.release()
        begun = time.monotonic()
        try:
            for number in range(point.of):
                which = f" {number + 1} of {point.of}" if point.of > 1 else ""
                self._say(f"starting the engine{which}: {_shown(point.options)}")
                log = self._folder / "engine.log"
                self._engines.append(await EngineProcess.start(settings, self._jobs, log))
        except Refused:
            await self._bury()
            raise
        self._engines_key, self._start_s = key, (time.monotonic() - begun) / point.of
        return self._engines

    def _engine_settings(self, point: Point) -> WorkerSettings:
        engine = self._settings.engine
        options = {k: v for k, v in {**engine.options, **point.options}.items() if v is not None}
        engine = engine.model_copy(update={"options": options, "replicas": 1})
        return self._settings.model_copy(update={"engine": engine})

    def _told_to(self, point: Point) -> Row:
        """What an engine's figures depend on."""
        wanted = {"engine", "limits", "retry"}
        settings = self._engine_settings(point).model_dump(mode="json", include=wanted)
        return {**without_secrets(settings), "around": self._around}

    # --- a point ----------------------------------------------------------------------------------

    async def _measure(self, point: Point, reserve_s: float) -> Row:
        engines = (await self._with_engines(point, reserve_s))[: point.engines]
        self._in_time(self._pace.most_s + reserve_s, "measuring a point")
        self._say(f"{point.stage}: {_driven(point)}")
        await together(engines, lambda engine: engine.begin(point.drive))
        to_the_last = point.drive.how == "all"
        if to_the_last:
            await until(engines, point.drive.jobs, _ALL_S)
        else:
            await self._warm(engines, point.drive)
            await together(engines, lambda engine: engine.ask("open"))
            await self._count_for(engines)
        told = await together(engines, lambda e: e.ask("close", to_the_last=to_the_last))
        await together(engines, lambda engine: engine.ask("end"))
        figures = statistics_of([answer["window"] for answer in told], self._count)
        return {**figures, "start_s": engines[0].ready.start_s, **_said(engines[0].ready)}

    async def _warm(self, engines: Sequence[EngineProcess], drive: Drive) -> None:
        """Until twice as many jobs were done as are under way.

        Once, and their ends are spread evenly; but an engine compiles kernels for shapes that it
        meets first, and on an H200 that took a fifth of the seconds counted after one turn.
        """
        places = drive.items or drive.clients or engines[0].ready.limits["max_num_seqs"]
        await asyncio.sleep(self._pace.warm_s)
        await until(engines, _TURNS * places, self._pace.seconds * _MOST)

    async def _count_for(self, engines: Sequence[EngineProcess]) -> None:
        before = await least_done(engines)
        await asyncio.sleep(self._pace.seconds)
        await until(engines, before + _LEAST_JOBS, self._pace.seconds * (_MOST - 1))

    def _in_time(self, needed_s: float, what: str) -> None:
        left_s, budget_s = self.left_s, self._pace.budget_s
        if needed_s > left_s:
            raise OutOfBudget(
                f"{what} may take {needed_s:.0f} s, {max(0.0, left_s):.0f} are left of --budget-s "
                f"{budget_s:g}; give more than {math.ceil(budget_s - left_s + needed_s)}"
            )

    # --- rows -------------------------------------------------------------------------------------

    def _key(self, point: Point) -> str:
        return key_of(
            {
                "settings": self._told_to(point),
                "point": {**asdict(point), "stage": None},
                "seconds": (self._pace.seconds, self._pace.warm_s),
                "sample": self._digest,
            }
        )

    def _named(self, point: Point) -> Row:
        given = {**self._settings.engine.options, **point.options}
        return {
            "stage": point.stage,
            "drive": asdict(point.drive),
            "options": without_secrets({k: v for k, v in given.items() if v is not None}),
            "replicas": point.engines,
            "round": point.round,
        }


def _refusal(refused: Refused) -> Row:
    return {"refused": str(refused), "knob": refused.knob, "passing": not refused.lasting}


def _said(ready: Ready) -> Row:
    return {"limits": dict(ready.limits), "engine": dict(ready.engine), "model": ready.model}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _shown(options: Mapping[str, Any]) -> str:
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    return ", ".join(given) or "as the settings say"


def _driven(point: Point) -> str:
    drive = point.drive
    if drive.how == "all":
        return f"{drive.jobs} jobs at once"
    if drive.how == "static":
        return f"batches of {drive.batch}"
    held = f"{drive.items} sequences" if drive.items else "the worker's own admission"
    shared = f" in each of {point.engines} engines" if point.engines > 1 else ""
    return held + shared
