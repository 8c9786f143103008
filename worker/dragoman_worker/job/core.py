"""The worker and its collaborators, joined to the ports that reach the outside."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman_text.masks import style_named
from dragoman_worker.flow import Flow
from dragoman_worker.flow.admission import Admission, open_flow
from dragoman_worker.flow.intake import Intake
from dragoman_worker.job.answering import Answers
from dragoman_worker.job.assessments import NOT_JUDGED, QualityRules
from dragoman_worker.job.breaker import AskSample, Breaker, no_sample
from dragoman_worker.job.executor import Executor
from dragoman_worker.job.generating import Generator
from dragoman_worker.job.in_flight import JobsInFlight
from dragoman_worker.job.lookups import Lookups
from dragoman_worker.job.opening import journaled
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
from dragoman_worker.ports import (
    Consumer,
    DeadLetters,
    Engine,
    EngineLimits,
    Glossaries,
    Judge,
    Memory,
    Results,
    Store,
)
from dragoman_worker.process.parent_link import ReplicaSlot
from dragoman_worker.prompts.table import ProfileChooser
from dragoman_worker.settings import LimitsSettings, WorkerSettings
from dragoman_worker.tracing import Tracer


@dataclass(frozen=True, slots=True)
class Ports:
    """Connections of one replica to the outside. `engine` is started: its limits are known."""

    engine: Engine
    consumer: Consumer
    store: Store
    dead_letters: DeadLetters
    results: Results | None
    judge: Judge
    memory: Memory | None = None
    """None if the memory is switched off: nothing is recalled, remembered or shared."""
    glossaries: Glossaries | None = None


class Core:
    """One replica without its adapters. The constructor does no I/O and starts no task."""

    def __init__(
        self,
        settings: WorkerSettings,
        ports: Ports,
        *,
        choose_profile: ProfileChooser,
        outages: Outages,
        metrics: Metrics,
        slot: ReplicaSlot | None = None,
        tracer: Tracer | None = None,
        ask_sample: AskSample = no_sample,
    ) -> None:
        limits, engine = settings.limits, ports.engine
        self.admission = Admission(limits, engine.limits)
        self.flow = open_flow(settings, engine.limits, self.admission.bounds)
        self.in_flight = JobsInFlight()
        self._settings = settings
        self._ports = ports
        self._outages = outages
        self._metrics = metrics
        self._tracer = tracer
        self._breaker = Breaker(ask_sample)
        planner = build_planner(settings, engine, choose_profile, budget_s=limits.plan_budget_s)
        translator = self._translator(planner)
        preparation = Preparation(
            planner=planner,
            translator=translator,
            lookups=Lookups(
                outages=outages,
                metrics=metrics,
                judge=ports.judge,
                glossaries=ports.glossaries,
                memory=ports.memory,
                rules=rules_of(settings),
            ),
            flow=self.flow,
            in_flight=self.in_flight,
            openings=journaled(slot, poison_after=settings.retry.poison_after),
        )
        self.worker = self._worker(self._executor(preparation, translator))

    def _translator(self, planner: Planner) -> Translator:
        return build_translator(
            self._settings,
            self._ports.engine,
            planner,
            flow=self.flow,
            breaker=self._breaker,
            metrics=self._metrics,
            judge=self._ports.judge,
            memory=self._ports.memory,
        )

    def _executor(self, preparation: Preparation, translator: Translator) -> Executor:
        engine = self._ports.engine
        return Executor(
            store=self._ports.store,
            preparation=preparation,
            translator=translator,
            flow=self.flow,
            in_flight=self.in_flight,
            still_assigned=self._ports.consumer.still_assigned,
            outages=self._outages,
            reporter=Reporter(Identity(self._settings.worker_id, engine.info, engine.model)),
            metrics=self._metrics,
        )

    def _worker(self, executor: Executor) -> Worker:
        settings, ports = self._settings, self._ports
        return Worker(
            consumer=ports.consumer,
            executor=executor,
            store=ports.store,
            dead_letters=ports.dead_letters,
            results=ports.results,
            in_flight=self.in_flight,
            permits=self.flow.permits,
            intake=Intake(
                settings.kafka.topic_weights,
                jobs=_max_in_flight_jobs(settings.limits, ports.engine.limits),
                size=settings.limits.max_in_flight_bytes,
            ),
            outages=self._outages,
            grace_s=settings.shutdown.grace_s,
            metrics=self._metrics,
            tracer=self._tracer,
            log_jobs=settings.log.jobs,
        )


def build_planner(
    settings: WorkerSettings,
    engine: Engine,
    choose_profile: ProfileChooser,
    *,
    budget_s: float = math.inf,
) -> Planner:
    """Return a planner for the engine; `budget_s` bounds the planning of one job."""
    return Planner(
        engine=engine,
        choose_profile=choose_profile,
        max_tokens=settings.limits.max_tokens,
        budget_s=budget_s,
    )


def build_translator(
    settings: WorkerSettings,
    engine: Engine,
    planner: Planner,
    *,
    flow: Flow,
    breaker: Breaker,
    metrics: Metrics,
    judge: Judge | None = None,
    memory: Memory | None = None,
) -> Translator:
    """Return a translator with the retries, the rules and the time limit that the settings give.

    Without a judge no answer is judged; without a memory none is recalled or shared.
    """
    retry = settings.retry
    generator = Generator(
        engine=engine,
        flow=flow,
        retry=RetryPolicy(attempts=retry.attempts, initial_s=retry.initial_s, max_s=retry.max_s),
        attempt_timeout_s=retry.attempt_timeout_s,
        breaker=breaker,
        metrics=metrics,
    )
    answers = Answers(
        planner=planner,
        generator=generator,
        flow=flow,
        rules=rules_of(settings) if judge is not None else NOT_JUDGED,
        judge=judge,
        recall=_recall(memory, engine, metrics),
        metrics=metrics,
    )
    return Translator(planner=planner, generator=generator, answers=answers, flow=flow)


def rules_of(settings: WorkerSettings) -> QualityRules:
    """Return the rules that the settings give to jobs which ask for none."""
    quality = settings.quality
    return QualityRules(
        quality.level,
        quality.max_attempts,
        quality.on_fail,
        token_style=style_named(quality.token_style),
    )


def _recall(memory: Memory | None, engine: Engine, metrics: Metrics) -> Recall | None:
    if memory is None:
        return None
    joined = Coalesced(metrics.memory_by_result["joined"].inc)
    return Recall(memory, joined, engine=engine.identity)


def _max_in_flight_jobs(limits: LimitsSettings, engine: EngineLimits) -> int:
    """Return enough that the engine never waits for Kafka while the next deliveries decode."""
    return limits.max_in_flight_jobs or max(
        64, round(3 * limits.engine_oversubscription * engine.max_num_seqs)
    )
