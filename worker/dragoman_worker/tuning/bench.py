"""Comparison of the ways of feeding an engine, with this model and the user's jobs.

The strategies run in turn in one engine, or in few that differ in their settings.
benchmarks/strategies has the full comparison, with Kafka, Redis and other servers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import counted
from dragoman_worker.engines.sizing import MEMORY, Share
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.harness import Harness, OutOfBudget, Point
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.results import Row, unusable
from dragoman_worker.tuning.tuner import PUBLISHED

BASE: Final = "all"
TUNED_OPTIONS: Final = ("max_num_seqs", "max_num_batched_tokens", MEMORY, "quantization")
"""Options that tuning sets; without them an engine has its default settings."""
STRATEGIES: Final[Mapping[str, str]] = {
    "one": "one request at a time",
    "static": "static batches of 16 or 50 ms",
    "published": "published: 25 in flight, 16 sequences",
    "default": "continuous, default settings",
    "given": "continuous, settings as given",
    "all": "all at once, without admission",
    "replicas": "replicas",
}
_MIN_AT_ONCE: Final = 16


@dataclass(slots=True)
class BenchResults:
    """Rows by strategy, and notes on what could not be measured."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    complete: bool = True


class Bench:
    """Measures the strategies round by round, in alternating order."""

    def __init__(
        self, harness: Harness, settings: WorkerSettings, share: Share, rounds: int
    ) -> None:
        self._harness = harness
        self._options = settings.engine.options
        self._share = share
        self._rounds = rounds
        self.results = BenchResults()

    async def run(self, wanted: Collection[str] | None) -> BenchResults:
        """Measure every wanted strategy `rounds` times. None means all that fit the settings.

        Raises EngineRefused if the engine does not start, and SettingsError for a named strategy
        that does not fit.
        """
        names, unfit = set(STRATEGIES if wanted is None else wanted), self._unfit()
        if wanted is not None:
            _check(names, unfit)
        limits = (await self._harness.survey(Point("survey", Drive())))["limits"]
        unfit |= _too_many(limits["max_num_seqs"])
        if wanted is not None:
            _check(names, unfit)
        groups = self._groups(names - unfit.keys())
        try:
            for group in groups:
                for number in range(self._rounds):
                    ordered = group if number % 2 == 0 else group[::-1]
                    await self._round(ordered, number)
        except OutOfBudget as error:
            self.results.complete = False
            self.results.notes.append(f"Stopped early: {error}.")
        return self.results

    def size(self, wanted: Collection[str] | None) -> tuple[int, int]:
        """Return the number of engines and of measurements that a run starts with."""
        names = set(STRATEGIES if wanted is None else wanted) - self._unfit().keys()
        groups = self._groups(names)
        return len(groups), self._rounds * sum(map(len, groups))

    def _unfit(self) -> dict[str, str]:
        """Return the strategies that do not fit the settings, each with the reason."""
        why = {}
        if not any(name in self._options for name in TUNED_OPTIONS):
            why["default"] = (
                f"the settings set none of {', '.join(TUNED_OPTIONS)} in engine.options, so they "
                "are the defaults: `given` measures them"
            )
        if self._share.count == 1:
            why["replicas"] = f"there is one engine ({self._share.reason}): raise engine.replicas"
        return why

    def _groups(self, names: set[str]) -> list[list[Point]]:
        """Group the points by engine; first in each is the point whose rate sizes `all`."""
        bare: dict[str, Any] = {name: None for name in TUNED_OPTIONS if name in self._options}
        shared = [Point("given", Drive()), Point("all", Drive("all"))]
        shared += [Point("published", PUBLISHED), Point("static", Drive("static", batch=16))]
        shared.append(Point("one", Drive(clients=1, items=1)))
        first = [p for p in shared if p.stage in names or (p.stage == "given" and BASE in names)]
        groups = [first]
        if "default" in names:
            groups.append([Point("default", Drive(), bare)])
        if "replicas" in names:
            count = self._share.count
            groups.append([Point("replicas", Drive(), engines=count)])
        return groups

    async def _round(self, group: Sequence[Point], number: int) -> None:
        for planned in group:
            drive = planned.drive
            if planned.stage == BASE:
                drive = Drive("all", jobs=await self._at_once(group))
            point = Point(
                planned.stage,
                drive,
                planned.options,
                engines=planned.engines,
                round=number,
            )
            row = await self._harness.measure(point)
            name = STRATEGIES[point.stage]
            if (why := unusable(row)) is not None:
                self.results.notes.append(f"{name}: {why}")
                continue
            if row["failed"]:
                what = f"{counted(row['failed'], 'job')} failed, the first with"
                self.results.notes.append(f"{name}: {what}: {row.get('first_error')}")
            if number == row["round"]:
                self.results.rows.setdefault(point.stage, []).append(row)

    async def _at_once(self, group: Sequence[Point]) -> int:
        """Return the number of jobs that the engine completes within the seconds of a point."""
        first = next(point for point in group if point.stage == "given")
        row = await self._harness.measure(first)
        if unusable(row) is not None:
            return _MIN_AT_ONCE
        jobs = float(row["jobs_per_s"] * row["seconds"])
        return max(_MIN_AT_ONCE, round(jobs))


def _check(names: set[str], unfit: Mapping[str, str]) -> None:
    if not names:
        raise SettingsError(f"--strategies: none is named; give some of {', '.join(STRATEGIES)}")
    for name in sorted(names & unfit.keys()):
        raise SettingsError(f"--strategies: {name} cannot be measured here: {unfit[name]}")


def _too_many(most: int) -> dict[str, str]:
    """Return the strategies that need more sequences than the engine runs, with the reason."""
    needed = PUBLISHED.items or 0
    if needed <= most:
        return {}
    why = f"it runs {needed} sequences, the engine {most}: raise engine.options.max_num_seqs"
    return {"published": why}


def table(results: BenchResults) -> list[dict[str, Any]]:
    """Return one line per strategy, slowest first: medians, and ratios to `all`."""
    base = {row["round"]: row["jobs_per_s"] for row in results.rows.get(BASE, ())}
    lines = [_line(name, rows, base) for name, rows in results.rows.items()]
    return sorted(lines, key=lambda line: line["jobs_per_s"])


def _line(name: str, rows: Sequence[Row], base: Mapping[int, float]) -> dict[str, Any]:
    rates = [row["jobs_per_s"] for row in rows]
    paired = [r["jobs_per_s"] / base[r["round"]] for r in rows if base.get(r["round"])]
    latencies = [row["latency_ms"] or {} for row in rows]
    return {
        "strategy": name,
        "description": _description(name, rows),
        "runs": len(rows),
        "jobs_per_s": median(rates),
        "spread": [min(rates), max(rates)],
        "ratio": round(median(rates) / median(base.values()), 4) if paired else None,
        "ratio_spread": [round(min(paired), 4), round(max(paired), 4)] if paired else None,
        "output_tokens_per_s": median(row["output_tokens_per_s"] for row in rows),
        "latency_ms": {
            rank: median(found)
            for rank in ("p50", "p99")
            if (found := [ranks[rank] for ranks in latencies if rank in ranks])
        },
        "gpu_busy": _median([row["gpu_busy"] for row in rows]),
        "kv_usage_max": _median([row["kv_usage_max"] for row in rows]),
        "options": rows[0]["options"],
    }


def _description(name: str, rows: Sequence[Row]) -> str:
    if name == "replicas":
        return f"{rows[0]['replicas']} {STRATEGIES[name]}"
    untuned = not any(option in rows[0]["options"] for option in TUNED_OPTIONS)
    plain = name == "given" and untuned
    return STRATEGIES["default" if plain else name]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
