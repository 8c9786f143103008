"""The worker and its collaborators, joined to the ports that reach the outside."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_worker.flow.admission import Admission, open_flow
from dragoman_worker.flow.intake import open_intake
from dragoman_worker.job.assessments import QualityRules
from dragoman_worker.job.breaker import AskSample, Breaker, no_sample
from dragoman_worker.job.executor import Executor
from dragoman_worker.job.in_flight import JobsInFlight
from dragoman_worker.job.lookups import Lookups
from dragoman_worker.job.opening import journaled
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.planner import Planner, build_planner
from dragoman_worker.job.preparation import Preparation
from dragoman_worker.job.reporter import Identity, Reporter
from dragoman_worker.job.translator import Translator, build_translator
from dragoman_worker.job.worker import Worker
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import (
    Consumer,
    DeadLetters,
    Engine,
    Glossaries,
    Judge,
    Memory,
    Results,
    Store,
)
from dragoman_worker.process.parent_link import ReplicaSlot
from dragoman_worker.prompts.table import ProfileChooser
from dragoman_worker.settings import WorkerSettings
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
                rules=QualityRules.given(settings.quality),
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
            outages=self._outages,
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
            intake=open_intake(settings, ports.engine.limits),
            outages=self._outages,
            grace_s=settings.shutdown.grace_s,
            metrics=self._metrics,
            tracer=self._tracer,
            log_jobs=settings.log.jobs,
        )
