"""Tuner: finds a worker's settings by the published method, with the user's own jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dragoman_worker.engines.sizing import MEMORY
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning import knee
from dragoman_worker.tuning.measure.harness import Harness, OutOfBudget, Point
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.results import Row, unusable
from dragoman_worker.tuning.measure.sample import JobSample
from dragoman_worker.tuning.measure.statistics import Arrivals
from dragoman_worker.tuning.stages import (
    AFTER_SWEEP,
    Baseline,
    Decision,
    better,
    obstacle,
    run_stage,
)

PUBLISHED: Final = Drive(clients=25, items=16)
"""25 in flight, 16 sequences: the published optimum of VoicePing for one production GPU."""


class NothingMeasured(Exception):
    """No point could be measured; the message gives the reason and the setting."""


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Parsed options of `tune`. Empty `sequences`: 1, 2, 4, ... up to the engine's maximum."""

    sequences: tuple[int, ...] = ()
    most_sequences: int | None = None
    stages: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()


@dataclass(slots=True)
class Findings:
    """All results of tuning; those not reached are empty."""

    survey: Row
    given_engines: int = 1
    """Engines per GPU that `run` starts with the given settings."""
    sweep: list[Row] = field(default_factory=list)
    choice: knee.ChosenPoint | None = None
    comparison: dict[str, Row] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    arrivals: Arrivals | None = None
    as_run: Row | None = None
    """The sweep's choice in one engine of its own, under the worker's admission."""
    confirmed: bool = True
    """Whether what the stages took gained something when it was measured again."""
    keeps_given: bool = False
    """The given settings did as well as the chosen ones when verified: nothing is changed."""
    complete: bool = True

    @property
    def answer_tokens(self) -> dict[str, float] | None:
        """Tokens per answer, from the point with the most jobs."""
        seen = [row for row in self.sweep if row["answer_tokens"]]
        most = max(seen, key=lambda row: int(row["jobs"]), default=None)
        return most["answer_tokens"] if most else None

    @property
    def options(self) -> dict[str, Any]:
        """The chosen engine options."""
        chosen: dict[str, Any] = {}
        if self.keeps_given:
            return chosen
        if self.choice is not None:
            chosen["max_num_seqs"] = self.choice.sequences
        for decision in self.decisions if self.confirmed else ():
            chosen |= decision.options
        if self.replicas > 1:
            chosen.pop(MEMORY, None)  # the supervisor divides it
        return chosen

    @property
    def replicas(self) -> int:
        """Number of engines per GPU that `run` starts with the choice."""
        if self.keeps_given:
            return self.given_engines
        decided = next((d.replicas for d in self.decisions if d.replicas), self.given_engines)
        return decided if self.confirmed else 1

    @property
    def chose_replicas(self) -> bool:
        """Whether a stage measured the best number of engines; otherwise the given one stays."""
        return not self.keeps_given and any(decision.replicas for decision in self.decisions)


class Tuner:
    """Runs the sweep, the comparison, the stages and the verification."""

    def __init__(
        self,
        harness: Harness,
        settings: WorkerSettings,
        sample: JobSample,
        options: TuneOptions,
        *,
        engines: int,
    ) -> None:
        """`engines` are those that `run` starts per GPU with the given settings."""
        self._engines = engines
        self._harness = harness
        self._settings = settings
        self._sample = sample
        self._options = options
        most = options.most_sequences
        self._base: Mapping[str, Any] = {"max_num_seqs": most} if most else {}

    async def run(self) -> Findings:
        """Run all stages. Raises NothingMeasured, and EngineRefused if no engine starts at all."""
        harness = self._harness
        survey = await harness.survey(Point("survey", Drive(), self._base))
        found = Findings(survey, self._engines, arrivals=self._sample.arrivals)
        if survey["items_per_job"] is not None:
            await self._sweep(found)
        if not found.sweep:
            raise NothingMeasured(_reason(found))
        found.choice = knee.choose([knee.measured(row) for row in found.sweep])
        await self._compare(found)
        await self._stages(found)
        await self._verify(found)
        found.notes += notes(found, self._base, self._settings.limits.max_engine_items)
        found.notes += self._caveats(found)
        return found

    async def _sweep(self, found: Findings) -> None:
        for sequences in self._candidates(found):
            point = Point("sequences", Drive(items=sequences), self._base)
            try:
                row = await self._harness.measure(point)
            except OutOfBudget as error:
                found.complete = False
                found.notes.append(f"The sweep stopped before {sequences} sequences: {error}.")
                return
            if (why := unusable(row)) is not None:
                found.notes.append(f"{sequences} sequences: {why}")
                if "refused" in row:
                    return
                continue
            found.sweep.append(row)
            if knee.has_degraded([knee.measured(row) for row in found.sweep]):
                return

    def _candidates(self, found: Findings) -> Sequence[int]:
        most = found.survey["limits"]["max_num_seqs"]
        if (limit := self._settings.limits.max_engine_items or most) < most:
            found.notes.append(
                f"limits.max_engine_items lets {limit} items into the engine, which runs {most} "
                "sequences: no larger number was tried."
            )
        most, engine = min(most, limit), most
        if self._options.sequences:
            found.notes += [
                f"--sequences {count} was left out: the engine runs {engine} at most; "
                f"--max-sequences {count} starts an engine for that many."
                for count in self._options.sequences
                if count > engine
            ]
            return [count for count in self._options.sequences if count <= most]
        doubled = [2**power for power in range(most.bit_length()) if 2**power <= most]
        return doubled if doubled[-1] == most else [*doubled, most]

    async def _compare(self, found: Findings) -> None:
        """Measure the published setting, and the given ones with as many engines as `run` has."""
        if (PUBLISHED.items or 0) <= found.survey["limits"]["max_num_seqs"]:
            await self._add(found, "published", Point("published", PUBLISHED, self._base))
        await self._add(found, "default", Point("default", Drive(), engines=self._engines))

    async def _stages(self, found: Findings) -> None:
        assert found.choice is not None  # noqa: S101  `run` chose
        row = next(r for r in found.sweep if r["drive"]["items"] == found.choice.sequences)
        base = Baseline(
            self._settings.engine,
            found.choice.sequences,
            row,
            allow=self._options.allow,
            named=self._options.named,
            options=found.options,
            reserve_s=self._harness.reserve_s if self._verifies else 0.0,
        )
        for name in AFTER_SWEEP:
            if name not in self._options.stages:
                continue
            decision, base = await self._decide(name, base, found)
            found.decisions.append(decision)
            found.complete = found.complete and decision.complete
            if decision.taken is not None:
                # The next stage is compared with the taken row.
                options = {**base.options, **decision.options}
                base = replace(base, options=options, row=decision.taken)

    async def _decide(
        self, name: str, base: Baseline, found: Findings
    ) -> tuple[Decision, Baseline]:
        """Run a stage; the first that measures has its baseline measured before it."""
        if (why := obstacle(name, base)) is not None:
            return Decision(name, f"left out: {why}"), base
        if found.as_run is None:
            try:
                row = await self._choice_as_run(found)
            except OutOfBudget as error:
                return Decision(name, f"left out: {error}", complete=False), base
            if (why := unusable(row)) is not None:
                return Decision(name, f"left out: its baseline was not measured: {why}"), base
            found.as_run = row
            base = replace(base, row=row)
        return await run_stage(name, self._harness, base), base

    async def _choice_as_run(self, found: Findings) -> Row:
        """Measure the sweep's choice in an engine of its own, under the worker's admission.

        Only there do requests wait in the engine and enter it in groups. Raises OutOfBudget.
        """
        if self._runs_as_given(found, engines=1):
            return found.comparison["default"]
        return await self._harness.measure(Point("choice", Drive(), found.options))

    def _runs_as_given(self, found: Findings, engines: int) -> bool:
        """Return whether the choice is what the given settings run, which is measured."""
        same = found.options == {"max_num_seqs": found.survey["limits"]["max_num_seqs"]}
        measured = engines == self._engines and "default" in found.comparison
        return same and measured and not self._base

    async def _verify(self, found: Findings) -> None:
        """Measure the chosen settings once more, in engines of their own."""
        if self._runs_as_given(found, found.replicas):
            found.comparison["chosen"] = found.comparison["default"]
            return
        if self._verifies:
            await self._measure_choice(found)
        if not found.keeps_given:
            self._keep_unless_better(found)

    async def _measure_choice(self, found: Findings) -> None:
        again = any(decision.options for decision in found.decisions)
        if again:  # what a stage took was partly luck, also that of its engine's start
            await self._harness.release()
        point = Point("verify", Drive(), found.options, engines=found.replicas, round=int(again))
        row = await self._add(found, "chosen", point)
        if row is None:
            return
        if (why := unusable(row)) is not None:
            found.keeps_given = True
            found.notes.append(f"The file keeps the given settings: the chosen ones failed: {why}")
        elif again:
            self._confirm(found, row)

    def _keep_unless_better(self, found: Findings) -> None:
        """Keep the given settings unless the chosen ones were measured beside them and do better.

        Without a verification the sweep's own row, of one engine, is what was measured of it.
        """
        chosen = found.comparison.get("chosen")
        if chosen is None and not self._verifies and self._engines == 1:
            chosen = self._swept(found)
        given = found.comparison.get("default")
        if chosen is None or given is None:
            which = "chosen" if chosen is None else "given"
            reason: str | None = (
                f"The {which} settings were not measured as a worker runs them. The file keeps the"
                " given settings."
            )
        else:
            reason = knee.why_keep(given, chosen)
        found.keeps_given = reason is not None
        found.notes += [reason] if reason else []

    def _swept(self, found: Findings) -> Row | None:
        choice = found.choice
        rows = (row for row in found.sweep if choice and row["drive"]["items"] == choice.sequences)
        return next(rows, None)

    def _confirm(self, found: Findings, row: Row) -> None:
        """Drop what the stages took if it gains too little when it is measured again."""
        base = found.as_run
        same_engines = found.chose_replicas or found.replicas == 1
        if base is None or not same_engines or better([row], base) is not None:
            return
        found.confirmed = False
        found.comparison["chosen"] = base
        found.notes.append(
            f"Measured again, what the stages took writes {row['output_tokens_per_s']:,.0f} "
            f"tokens/s, and the chosen sequences without it {base['output_tokens_per_s']:,.0f}: "
            "it is left out."
        )

    def _caveats(self, found: Findings) -> list[str]:
        """Return notes on rows and settings that could be misread."""
        texts = []
        alone = self._engines > 1 and "chosen" not in found.comparison
        if alone and not found.chose_replicas and not found.keeps_given:
            texts.append(
                f"{found.options.get('max_num_seqs')} sequences were measured in one engine: the "
                f"file keeps engine.replicas, with which `run` starts {self._engines} per GPU."
            )
        if self._harness.reused:
            texts.append(
                f"{len(self._harness.reused)} points were measured by an earlier run and read from "
                f"{self._harness.rows.path.name}; another --out measures them again."
            )
        return texts

    @property
    def _verifies(self) -> bool:
        return "verify" in self._options.stages

    async def _add(self, found: Findings, name: str, point: Point) -> Row | None:
        """Measure a row of the comparison; return it, None if there was no time."""
        try:
            row = await self._harness.measure(point)
        except OutOfBudget as error:
            found.complete = False
            found.notes.append(f"{name.capitalize()} was not measured: {error}.")
            return None
        if (why := unusable(row)) is not None:
            found.notes.append(f"{name.capitalize()} was not measured: {why}")
        else:
            found.comparison[name] = row
        return row


def _reason(found: Findings) -> str:
    """Return why no point was measured."""
    unfit = found.survey["unplanned"]
    reasons = [f"{unfit} jobs cannot be run: {found.survey['first_error']}"] if unfit else []
    return "; ".join([*reasons, *found.notes]) or "there is nothing to measure"


def notes(found: Findings, base: Mapping[str, Any], limit: int | None = None) -> list[str]:
    """Return notes on how to read the results. `limit` is the most items in the engine."""
    texts: list[str] = []
    choice = found.choice
    growing = choice is not None and not choice.degraded and choice.sequences == _last(found)
    if growing and choice is not None and choice.sequences != limit:
        fits = choice.sequences < found.survey["limits"]["max_num_seqs"]
        texts.append(
            f"Throughput was still growing at {choice.sequences} sequences, the highest tried: "
            f"give {'--sequences' if fits else '--max-sequences'} {2 * choice.sequences}."
        )
    if found.arrivals is not None and choice is not None:
        texts.append(_concurrency(found, found.arrivals))
    if any(row["passes"] > 1.5 for row in found.sweep):
        texts.append(
            "The sample was run more than once within a point, so the prefix cache served prompts: "
            "give more jobs (--sample, --jobs)."
        )
    failed = sum(row["failed"] for row in found.sweep)
    if failed:
        texts.append(f"{failed} jobs of the sweep failed.")
    if base.get("max_num_seqs") and choice is not None:
        texts.append(f"The sweep's engine was started for {base['max_num_seqs']} sequences.")
    return texts


def _concurrency(found: Findings, rates: Arrivals) -> str:
    fits = [row for row in found.sweep if row["jobs_per_s"] >= rates.jobs_per_s]
    if not fits:
        return (
            f"Jobs arrive at {rates.jobs_per_s:.3g}/s (busiest {rates.busiest_per_s:.3g}/s), more "
            "than this engine completes at any number of sequences: the queue grows."
        )
    row = fits[0]
    mean, busiest = rates.concurrency((row["latency_ms"] or {"p50": 0.0})["p50"] / 1000)
    return (
        f"Real concurrency: jobs arrive at {rates.jobs_per_s:.3g}/s (busiest "
        f"{rates.busiest_per_s:.3g}/s), which keeps about {mean:.3g} (busiest {busiest:.3g}) in "
        f"the engine; {row['drive']['items']} sequences suffice, with a p99 of "
        f"{(row['latency_ms'] or {}).get('p99', 0.0):,.0f} ms. More sequences help with a backlog."
    )


def _last(found: Findings) -> int:
    return max(int(row["drive"]["items"]) for row in found.sweep)
