"""A worker's core in memory, without infrastructure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from dragoman_schemas.results import EngineInfo
from dragoman_worker.flow import Flow
from dragoman_worker.flow.intake import Intake
from dragoman_worker.flow.permits import Permits
from dragoman_worker.flow.planning import Planning
from dragoman_worker.job.answering import Answers
from dragoman_worker.job.assessments import NOT_JUDGED, QualityRules
from dragoman_worker.job.breaker import AskSample, Breaker, no_sample
from dragoman_worker.job.executor import Executor
from dragoman_worker.job.generating import Generator
from dragoman_worker.job.in_flight import JobsInFlight
from dragoman_worker.job.lookups import Lookups
from dragoman_worker.job.opening import Openings
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.preparation import Preparation
from dragoman_worker.job.recall import Recall
from dragoman_worker.job.reporter import Identity, Reporter
from dragoman_worker.job.retry import RetryPolicy
from dragoman_worker.job.translator import Translator
from dragoman_worker.job.worker import Worker
from dragoman_worker.memory.in_flight import Coalesced
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Glossaries, Judge, Memory
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.tracing import Tracer
from support.fakes.local_jobs import JobState, LocalJobs
from support.fakes.local_kafka import MemoryConsumer, MemoryDeadLetters, MemoryResults
from support.fakes.scripted_engine import ScriptedEngine
from support.fakes.scripted_judge import ScriptedJudge
from support.processes.waiting import eventually

TIMEOUT_S = 10.0


def record(job_id: str = "a1", text: Any = "one two", **fields: Any) -> bytes:
    """Return the record value of a small job; `...` leaves a field out."""
    job = {"job_id": job_id, "text": text, "source_lang": "en", "target_lang": "de", **fields}
    return json.dumps({name: value for name, value in job.items() if value is not ...}).encode()


@dataclass
class Core:
    """The parts of a worker; a test may replace each before `build` and inspect it afterwards."""

    engine: ScriptedEngine = field(default_factory=ScriptedEngine)
    store: LocalJobs = field(default_factory=LocalJobs)
    consumer: MemoryConsumer = field(default_factory=lambda: MemoryConsumer(poll_s=0.01))
    dead_letters: MemoryDeadLetters = field(default_factory=MemoryDeadLetters)
    results: MemoryResults = field(default_factory=MemoryResults)
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    outages: Outages = field(default_factory=Outages)
    permits: Permits = field(default_factory=lambda: Permits(items=8, tokens=100_000))
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(attempts=3, initial_s=0))
    choose_profile: Callable[[str | None], Profile] = lambda _: PLAIN
    attempt_timeout_s: float = TIMEOUT_S
    max_tokens: int = 4_096
    plan_budget_s: float = TIMEOUT_S
    max_planned_tokens: int = 400_000
    tokenises: bool = False
    max_in_flight_jobs: int = 64
    max_in_flight_bytes: int = 1_000_000
    weights: dict[str, int] | None = None
    grace_s: float = TIMEOUT_S
    in_flight: JobsInFlight = field(default_factory=JobsInFlight)
    worker_id: str = "w1"
    judge: Judge = field(default_factory=ScriptedJudge)
    openings: Openings | None = None
    rules: QualityRules = NOT_JUDGED
    memory: Memory | None = None
    glossaries: Glossaries | None = None
    tracer: Tracer | None = None
    log_jobs: bool = False
    ask_sample: AskSample = no_sample
    _running: asyncio.Task[None] | None = None

    def build(self) -> tuple[Translator, Executor, Worker]:
        """Build translator, executor and worker on these parts."""
        planning = Planning(self.max_planned_tokens, tokenises=self.tokenises)
        flow = Flow(planning, self.permits)
        planner = self._planner()
        translator = self._translator(planner, flow)
        preparation = Preparation(
            planner=planner,
            translator=translator,
            lookups=Lookups(
                outages=self.outages,
                metrics=self.metrics,
                judge=self.judge,
                glossaries=self.glossaries,
                memory=self.memory,
                rules=self.rules,
            ),
            flow=flow,
            in_flight=self.in_flight,
            openings=self.openings,
        )
        executor = Executor(
            store=self.store,
            preparation=preparation,
            translator=translator,
            flow=flow,
            in_flight=self.in_flight,
            still_assigned=self.consumer.still_assigned,
            outages=self.outages,
            reporter=Reporter(
                Identity(self.worker_id, EngineInfo(name="scripted", version="1"), "scripted")
            ),
            metrics=self.metrics,
        )
        worker = self._worker(executor)
        self.engine.on_death(worker.halt)
        return translator, executor, worker

    def _translator(self, planner: Planner, flow: Flow) -> Translator:
        generator = Generator(
            engine=self.engine,
            flow=flow,
            retry=self.retry,
            attempt_timeout_s=self.attempt_timeout_s,
            breaker=Breaker(self.ask_sample),
            outages=self.outages,
            metrics=self.metrics,
        )
        recall = None
        if self.memory is not None:
            joined = self.metrics.memory_by_result["joined"].inc
            recall = Recall(self.memory, Coalesced(joined), engine="scripted")
        answers = Answers(
            planner=planner,
            generator=generator,
            flow=flow,
            rules=self.rules,
            judge=self.judge,
            recall=recall,
            metrics=self.metrics,
        )
        return Translator(planner=planner, generator=generator, answers=answers, flow=flow)

    def _planner(self) -> Planner:
        return Planner(
            engine=self.engine,
            choose_profile=self.choose_profile,
            max_tokens=self.max_tokens,
            budget_s=self.plan_budget_s,
        )

    def _worker(self, executor: Executor) -> Worker:
        return Worker(
            consumer=self.consumer,
            executor=executor,
            store=self.store,
            dead_letters=self.dead_letters,
            results=self.results,
            in_flight=self.in_flight,
            permits=self.permits,
            intake=Intake(
                self.weights, jobs=self.max_in_flight_jobs, size=self.max_in_flight_bytes
            ),
            outages=self.outages,
            grace_s=self.grace_s,
            metrics=self.metrics,
            tracer=self.tracer,
            log_jobs=self.log_jobs,
        )

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Worker]:
        """Run the worker inside the context and drain it at the end; its errors are raised here."""
        _, _, worker = self.build()
        task = self._running = asyncio.create_task(worker.run(), name="worker")
        try:
            yield worker
            worker.stop()
            await self.ended()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def restart(self) -> None:
        """Reset all but the store and the log, which is read from its committed offset."""
        self.in_flight = JobsInFlight()
        self.permits = Permits(items=8, tokens=100_000)
        self.consumer.assign()

    async def ended(self) -> None:
        """Wait until the worker has returned; raises what it raised."""
        if self._running is not None:
            await asyncio.wait_for(self._running, TIMEOUT_S)

    async def run_all(self) -> None:
        """Work until every record is completed, then drain."""
        async with self.working():
            await self.all_completed()

    async def all_completed(self) -> None:
        """Wait until everything in the log is committed."""
        await eventually(
            lambda: self.consumer.committed() == self.consumer.end() or self._has_ended(),
            timeout_s=TIMEOUT_S,
            what="every record completed",
        )

    def _has_ended(self) -> bool:
        return self._running is not None and self._running.done()

    async def inside(self, *sources: str) -> None:
        """Wait until these texts are in the engine, and no others."""
        await eventually(
            lambda: sorted(self.engine.inside) == sorted(sources),
            timeout_s=TIMEOUT_S,
            what=f"{sources} in the engine",
        )

    def state(self, job_id: str = "a1") -> JobState:
        """Return the state of a job, which must exist."""
        state = self.store.state(job_id)
        assert state is not None
        return state

    def texts(self, job_id: str = "a1") -> list[str | None]:
        """Return the translations of a terminal job."""
        result = self.state(job_id).result
        assert result is not None
        return [item.text for item in result.translations]
