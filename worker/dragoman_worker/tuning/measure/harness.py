"""Harness: starts the engines of a point, warms them, counts for a while and keeps the row.

A point that was measured before is read from its row. A point that cannot be measured becomes a
row with the reason.
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
from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.sizing import first_places
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.engine_pool import (
    EnginePool,
    least_done,
    starts_in_turn,
    together,
    until,
)
from dragoman_worker.tuning.measure.engine_process import EngineProcess, EngineRefused, Ready
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.results import Row, Rows, environment, key_of
from dragoman_worker.tuning.measure.sample import JobSample
from dragoman_worker.tuning.measure.statistics import spread, statistics_of

_MIN_JOBS: Final = 8
"""A window with fewer jobs is prolonged, up to three times its seconds."""
_MAX_PROLONGED: Final = 3
_ALL_AT_ONCE_S: Final = 3_600.0
_TURNS: Final = 2


class OutOfBudget(Exception):
    """A measurement might exceed the time budget."""


@dataclass(frozen=True, slots=True)
class PointSeconds:
    """Seconds per point: counting, minimum warm-up, and the budget of the whole run."""

    seconds: float
    warm_s: float = 1.0
    budget_s: float = float("inf")

    @property
    def most_s(self) -> float:
        """Upper bound of one point: warming and counting are each prolonged where jobs are long."""
        return self.warm_s + 2 * _MAX_PROLONGED * self.seconds


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: how jobs are handed to how many engines with which options."""

    stage: str
    drive: Drive
    options: Mapping[str, Any] = field(default_factory=dict)
    """Added to the `engine.options` of the settings; None removes an option."""
    engines: int = 1
    """Engines that share the GPU and get jobs."""
    round: int = 0


class Harness:
    """Measures points one after another; keeps the engines until a point needs others."""

    def __init__(
        self,
        settings: WorkerSettings,
        sample: JobSample,
        folder: Path,
        pace: PointSeconds,
        *,
        progress: Callable[[str], None],
        on_row: Callable[[Row], None] = lambda _: None,
    ) -> None:
        """`progress` is called with the current activity, `on_row` with every new row."""
        self._on_row = on_row
        self._settings = settings
        self._pace = pace
        self._progress = progress
        self._digest = sample.digest
        self._count = len(sample.jobs)
        self._jobs = folder / "sample.jsonl"
        sample.write(self._jobs)
        self._environment = environment(settings.engine)
        self.rows = Rows(folder)
        self._before = {row["key"] for row in self.rows}
        self.reused: set[str] = set()
        """Keys of the points that were read from an earlier run's rows."""
        self._began = time.monotonic()
        self._pool = EnginePool(self._jobs, folder / "engine.log", progress)

    @property
    def left_s(self) -> float:
        """Seconds left of the budget."""
        return self._pace.budget_s - (time.monotonic() - self._began)

    @property
    def start_s(self) -> float:
        """Seconds that the last start of engines took, warm-up included."""
        return self._pool.start_s

    @property
    def reserve_s(self) -> float:
        """Upper bound in seconds of one more point in a newly started engine."""
        return self._pool.start_s + self._pace.most_s

    async def measure(self, point: Point, *, reserve_s: float = 0.0) -> Row:
        """Return the row of a point; measure it unless a row exists.

        Raises OutOfBudget if less than `reserve_s` of the budget might remain.
        """
        key = self._key(point)
        if (known := self.rows.get(key)) is not None:
            if key in self._before:
                self.reused.add(key)
                self._progress(
                    f"{point.stage}: {_drive_text(point)}: measured before, at {known['at']}"
                )
            return known
        try:
            row = await self._measure(point, reserve_s)
        except EngineRefused as refused:
            await self._pool.kill()
            row = _refusal(refused)
        row = {"key": key, **self._point_fields(point), **row}
        row["at"] = _now()
        self.rows.add(row)
        self._on_row(row)
        return row

    async def survey(self, point: Point, most: int = 2_000) -> Row:
        """Return the sample's lengths in tokens, and the engine's limits. Raises EngineRefused."""
        key = key_of({"survey": self._inputs(point), "sample": self._digest})
        if (known := self.rows.get(key)) is not None and "refused" not in known:
            return known
        try:
            engine = (await self._with_engines(point, 0.0))[0]
        except EngineRefused as refused:
            reason = {**_refusal(refused), "passing": True, "at": _now()}
            self.rows.add({"key": key, **self._point_fields(point), **reason})
            raise
        answer = await engine.ask("survey", most=most)
        row: Row = {
            "key": key,
            "stage": "survey",
            "jobs": self._count,
            "unplanned": answer["unplanned"],
            "first_error": answer["first_error"],
            "prompt_tokens": spread(answer["prompt_tokens"], 0),
            "output_budget": spread(answer["output_budget"], 0),
            "items_per_job": spread(answer["items"], 0),
            **_engine_facts(engine.ready),
        }
        self.rows.add(row)
        return row

    async def release(self) -> None:
        """Stop the engines."""
        await self._pool.stop()

    async def abandon(self) -> None:
        """Kill the engines and delete the sample, which contains users' texts."""
        await self._pool.kill()
        self._jobs.unlink(missing_ok=True)

    # --- engines ----------------------------------------------------------------------------------

    async def _with_engines(self, point: Point, reserve_s: float) -> list[EngineProcess]:
        """Return the engines of a point; start them unless they run already."""
        key = key_of({"settings": self._inputs(point), "engines": point.engines})
        if self._pool.holds(key):
            return self._pool.engines
        settings = self._engine_settings(point)
        try:
            places = first_places(settings.engine, point.engines)
        except SettingsError as unfit:
            raise EngineRefused(str(unfit), lasting=True) from None
        starts_s = self._pool.start_s * len(starts_in_turn(places))
        needed_s = starts_s + self._pace.most_s + reserve_s
        self._check_budget(needed_s, "starting the engine and measuring a point")
        await self._pool.replace(key, settings, places, options_text(point.options))
        return self._pool.engines

    def _engine_settings(self, point: Point) -> WorkerSettings:
        engine = self._settings.engine
        options = {k: v for k, v in {**engine.options, **point.options}.items() if v is not None}
        engine = engine.model_copy(update={"options": options, "replicas": 1})
        return self._settings.model_copy(update={"engine": engine})

    def _inputs(self, point: Point) -> Row:
        """Return all inputs that results of the point's engine depend on."""
        wanted = {"engine", "limits", "retry"}
        settings = self._engine_settings(point).model_dump(mode="json", include=wanted)
        return {**without_secrets(settings), "environment": self._environment}

    # --- a point ----------------------------------------------------------------------------------

    async def _measure(self, point: Point, reserve_s: float) -> Row:
        engines = await self._with_engines(point, reserve_s)
        self._check_budget(self._pace.most_s + reserve_s, "measuring a point")
        self._progress(f"{point.stage}: {_drive_text(point)}")
        await together(engines, lambda engine: engine.begin(point.drive))
        to_the_last = point.drive.how == "all"
        if to_the_last:
            await until(engines, point.drive.jobs, _ALL_AT_ONCE_S)
        else:
            await self._warm(engines, point.drive)
            await together(engines, lambda engine: engine.ask("open"))
            await self._count_for(engines)
        answers = await together(engines, lambda e: e.ask("close", to_the_last=to_the_last))
        await together(engines, lambda engine: engine.ask("end"))
        statistics = statistics_of([answer["window"] for answer in answers], self._count)
        return {
            **statistics,
            "start_s": engines[0].ready.start_s,
            **_engine_facts(engines[0].ready),
        }

    async def _warm(self, engines: Sequence[EngineProcess], drive: Drive) -> None:
        """Wait until twice as many jobs are completed as are in flight.

        After one turn the completions are spread evenly. But an engine compiles kernels for new
        shapes: on an H200 that took a fifth of the seconds counted after a single turn.
        """
        in_flight = drive.in_flight or engines[0].ready.limits["max_num_seqs"]
        await asyncio.sleep(self._pace.warm_s)
        await until(engines, _TURNS * in_flight, self._pace.seconds * _MAX_PROLONGED)

    async def _count_for(self, engines: Sequence[EngineProcess]) -> None:
        before = await least_done(engines)
        await asyncio.sleep(self._pace.seconds)
        await until(engines, before + _MIN_JOBS, self._pace.seconds * (_MAX_PROLONGED - 1))

    def _check_budget(self, needed_s: float, what: str) -> None:
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
                "settings": self._inputs(point),
                "point": {**asdict(point), "stage": None},
                "seconds": (self._pace.seconds, self._pace.warm_s),
                "sample": self._digest,
            }
        )

    def _point_fields(self, point: Point) -> Row:
        given = {**self._settings.engine.options, **point.options}
        return {
            "stage": point.stage,
            "drive": asdict(point.drive),
            "options": without_secrets({k: v for k, v in given.items() if v is not None}),
            "changed": sorted(point.options),
            "replicas": point.engines,
            "round": point.round,
        }


def _refusal(refused: EngineRefused) -> Row:
    return {"refused": str(refused), "setting": refused.setting, "passing": not refused.lasting}


def _engine_facts(ready: Ready) -> Row:
    return {"limits": dict(ready.limits), "engine": dict(ready.engine), "model": ready.model}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def options_text(options: Mapping[str, Any]) -> str:
    """Return what differs from the settings; None is an option that is left out."""
    changed = [
        f"without {name}" if value is None else f"{name}={value}" for name, value in options.items()
    ]
    return ", ".join(changed) or "options as in the settings"


def _drive_text(point: Point) -> str:
    drive = point.drive
    if drive.how == "all":
        return f"{drive.jobs} jobs at once"
    if drive.how == "static":
        return f"batches of {drive.batch}"
    held = f"{drive.items} sequences" if drive.items else "the worker's own admission"
    shared = f" in each of {point.engines} engines" if point.engines > 1 else ""
    return held + shared
