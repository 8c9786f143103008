"""Composition root of one replica: builds its adapters and hands them to the core as ports."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry

from dragoman_connections.redis_access.calls import Servers
from dragoman_connections.settings import KafkaSettings
from dragoman_text.gates import GATES
from dragoman_worker.deadline import Deadline
from dragoman_worker.engines.gpu import Gpus
from dragoman_worker.engines.sample import ask_sample_in_time, is_judged
from dragoman_worker.engines.starting import start_engine
from dragoman_worker.flow.admission import steering
from dragoman_worker.health.certificates import certificate_files, expiry_forever
from dragoman_worker.health.liveness import liveness_checks, run_watchdog
from dragoman_worker.health.readiness import Readiness, StartPhase, report_settled
from dragoman_worker.health.sampler import Sampler
from dragoman_worker.health.watchdog import LoopGuard, Watchdog
from dragoman_worker.job.core import Core, Ports
from dragoman_worker.job.outages import Outages
from dragoman_worker.job.worker import Worker
from dragoman_worker.kafka.connection import KafkaAvailability
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.kafka.publisher import KafkaDeadLetters, KafkaPublisher, KafkaResults
from dragoman_worker.kafka.topic_watch import TopicWatch
from dragoman_worker.kafka.topics import topics_ready
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Engine
from dragoman_worker.process.event_loop import seldom_collected
from dragoman_worker.process.http import HttpServer, replica_pages
from dragoman_worker.process.parent_link import ReplicaSlot
from dragoman_worker.process.signals import stop_signals, supervised_signals
from dragoman_worker.prompts import names
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.table import profile_chooser
from dragoman_worker.quality.judge import ProcessJudge
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.stores.announcements import Announcements
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.glossaries import RedisGlossaries
from dragoman_worker.stores.redis import RedisStore
from dragoman_worker.stores.redis_memory import RedisMemory
from dragoman_worker.tracing import open_tracer

_SAMPLE_S: Final = 60.0
"""Least time for an engine's answer to its sample, which may wait behind a full engine."""


class App:
    """Lifecycle of one replica: its connections, its engine, its worker and its pages."""

    def __init__(self, settings: WorkerSettings, slot: ReplicaSlot | None = None) -> None:
        """`slot` is the replica's place at a supervisor; without one it serves `http.port`."""
        self._settings = settings
        self._slot = slot
        self._log = logger()
        self._metrics = Metrics(CollectorRegistry())
        self._metrics.start_gates(gate.name for gate in GATES)
        self._outages = Outages()
        self._judge = ProcessJudge(timeout_s=settings.quality.timeout_s, metrics=self._metrics)
        self._topics = TopicWatch(settings.kafka)
        self._stopping = asyncio.Event()
        self._readiness = Readiness(self._outages, self._topics, self._stopping)
        self._guard = LoopGuard()
        self._watchdog: Watchdog | None = None
        self._worker: Worker | None = None

    async def run(self) -> None:
        """Start in order, work until a signal, stop in reverse. Raises SettingsError and Halt."""
        async with AsyncExitStack() as stack:
            signals = supervised_signals if self._slot else stop_signals
            stack.enter_context(signals(self._stop, self._abort))
            await self._serve(stack)
            worker = await self._start_unless_stopped(stack)
            if worker is None:
                return
            self._log.info("working")
            if self._slot:
                self._slot.parent_link.ready()
                _beside(stack, worker, "settled", report_settled(self._slot, self._metrics))
            try:
                with seldom_collected():
                    await worker.run()
            finally:
                self._log.info("stopping")

    async def _serve(self, stack: AsyncExitStack) -> None:
        slot, place = self._slot, self._settings.http
        pages = replica_pages(
            str(slot.number if slot else 0),
            started=self._readiness.startup_checks,
            live=self._live,
            ready=self._readiness.ready_checks,
            metrics=self._metrics.registry,
        )
        http = HttpServer(slot.socket if slot else place, pages)
        stack.push_async_callback(http.close)
        port = await http.start()
        if not slot:
            self._log.info("http_listening", host=place.host, port=port)

    async def _start_unless_stopped(self, stack: AsyncExitStack) -> Worker | None:
        starting = asyncio.create_task(self._start(stack), name="start")
        stopping = asyncio.create_task(self._stopping.wait(), name="stop-while-starting")
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if starting.done():
            return starting.result()
        self._log.info("stopped_while_starting")
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return None

    async def _start(self, stack: AsyncExitStack) -> Worker:
        settings = self._settings
        choose_profile = profile_chooser(settings.engine)
        stack.callback(self._guard.stop)
        tracer = open_tracer(settings)
        stack.push_async_callback(tracer.close)
        within = Deadline.after(settings.connect_timeout_s)
        redis = await stack.enter_async_context(redis_servers(settings.redis))
        store = await _open_store(stack, settings, redis, within)
        self._readiness.store_opened(lambda: store.answers)
        self._readiness.enter(StartPhase.KAFKA)
        publisher = await _open_publisher(stack, settings, within)
        self._readiness.enter(StartPhase.LANGUAGE_MODEL)
        stack.push_async_callback(self._judge.close)
        if _always_judges(settings):
            self._judge.start()  # it is ready before the engine
        # Done later, it would block the event loop at the first job.
        await asyncio.to_thread(names.load)
        self._readiness.enter(StartPhase.ENGINE)
        engine = await start_engine(stack, settings)
        if _always_judges(settings):
            await self._judge.ready()
        self._readiness.enter(StartPhase.CONSUMER_GROUP)
        consumer = _consumer(settings, self._metrics, in_box=store.in_box)
        core = Core(
            settings,
            Ports(
                engine=engine,
                consumer=consumer,
                store=store,
                dead_letters=_dead_letters(publisher, settings),
                results=_results(publisher, settings.kafka),
                judge=self._judge,
                memory=await _open_memory(stack, settings, redis, self._metrics),
                glossaries=_open_glossaries(stack, settings, redis),
            ),
            choose_profile=choose_profile,
            outages=self._outages,
            metrics=self._metrics,
            slot=self._slot,
            tracer=tracer,
            ask_sample=partial(
                ask_sample_in_time,
                engine,
                choose_profile(None),
                judged=is_judged(settings.engine),
                timeout_s=max(_SAMPLE_S, settings.retry.attempt_timeout_s),
            ),
        )
        sampler = await self._join(stack, core, engine, consumer)
        said = self._said(engine, choose_profile(None))
        announcements = Announcements(settings.redis, redis, self._replica_id())
        announcing = announcements.forever(lambda: {**said, **sampler.standing()})
        _beside(stack, core.worker, "announcements", announcing)
        return core.worker

    def _replica_id(self) -> str:
        number = "" if self._slot is None else f".{self._slot.number}"
        return f"{self._settings.worker_id}{number}"

    def _said(self, engine: Engine, profile: Profile) -> dict[str, Any]:
        """Return what a replica announces that does not change."""
        languages = profile.languages
        return {
            "profile": None if self._settings.engine.kind == "echo" else profile.name,
            "model": engine.model,
            "memory": self._settings.memory_enabled,
            "languages": None if languages is None else sorted(languages),
            "formality": "formality" in profile.takes,
            "engine": {"name": engine.info.name, "version": engine.info.version},
            "topics": list(self._settings.kafka.topic_names),
        }

    async def _join(
        self, stack: AsyncExitStack, core: Core, engine: Engine, consumer: KafkaConsumer
    ) -> Sampler:
        """Join the consumer group, then start the tasks that run beside the worker."""
        settings, worker = self._settings, core.worker
        stack.callback(core.flow.planning.close)
        engine.on_death(worker.halt)
        stack.push_async_callback(consumer.close)
        await consumer.start(Deadline.after(settings.connect_timeout_s))
        kafka = KafkaAvailability(settings.kafka.bootstrap_servers, consumer.answered)
        _beside(stack, worker, "kafka availability", kafka.watch())
        _beside(stack, worker, "topics", self._topics.watch())
        sampler = self._sample(stack, core, engine, consumer)
        _beside(stack, worker, "admission", steering(core.admission, core.flow.permits, engine))
        checks = liveness_checks(
            worker,
            consumer,
            core.flow.permits,
            core.in_flight,
            self._outages,
            engine=engine,
            attempt_timeout_s=settings.retry.attempt_timeout_s,
            engine_silent_s=settings.supervisor.stuck_after_s,
        )
        self._watchdog = run_watchdog(stack, self._guard, checks, worker, self._metrics)
        self._worker = worker
        self._readiness.started(worker, kafka)
        if self._stopping.is_set():  # by a signal after the last await of the start
            worker.stop()
        return sampler

    def _sample(
        self, stack: AsyncExitStack, core: Core, engine: Engine, consumer: KafkaConsumer
    ) -> Sampler:
        most, jobs = core.admission.most_items, core.in_flight
        sampler = Sampler(self._metrics, consumer, core.flow.permits, jobs, engine, most_items=most)
        ready, gpus = self._readiness.ready_checks, Gpus(engine.limits.devices)
        _beside(stack, core.worker, "sampler", sampler.forever(ready))
        _beside(stack, core.worker, "gpus", sampler.gpus_forever(gpus))
        files = certificate_files(self._settings)
        _beside(stack, core.worker, "certificates", expiry_forever(files, self._metrics))
        return sampler

    def _stop(self) -> None:
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    def _abort(self) -> None:
        if self._worker is not None:
            self._worker.abort()

    def _live(self) -> Mapping[str, bool]:
        return self._watchdog.checks() if self._watchdog is not None else {}


def _always_judges(settings: WorkerSettings) -> bool:
    """Whether most jobs need the judge: not those of an echo engine without quality gates.

    Its first job without a source language waits for the judge to start. A start takes 0.9 s of CPU
    and the process 100 MB, which a worker whose jobs name their languages would spend for nothing.
    """
    return settings.engine.kind != "echo" or settings.quality.level != "off"


async def _open_store(
    stack: AsyncExitStack, settings: WorkerSettings, servers: Servers, within: Deadline
) -> RedisStore:
    store = RedisStore(
        settings.redis,
        servers,
        poison_after=settings.retry.poison_after,
        want_results=settings.kafka.results_topic is not None,
    )
    stack.push_async_callback(store.close)
    await store.start(within)
    return store


def _open_glossaries(
    stack: AsyncExitStack, settings: WorkerSettings, servers: Servers
) -> RedisGlossaries:
    glossaries = RedisGlossaries(settings.redis, servers, refresh_s=settings.glossary.refresh_s)
    stack.push_async_callback(glossaries.close)
    return glossaries


async def _open_memory(
    stack: AsyncExitStack, settings: WorkerSettings, servers: Servers, metrics: Metrics
) -> RedisMemory | None:
    """Return the memory, also if Redis does not serve it; None if it is switched off."""
    if not settings.memory_enabled:
        return None
    memory = RedisMemory(settings.redis, servers, settings.memory, metrics)
    stack.push_async_callback(memory.close)
    await memory.start()
    return memory


async def _open_publisher(
    stack: AsyncExitStack, settings: WorkerSettings, within: Deadline
) -> KafkaPublisher:
    # First: it names every missing right, where a producer would name none.
    await topics_ready(settings.kafka, within)
    publisher = KafkaPublisher(settings.kafka, client_id=settings.worker_id)
    stack.push_async_callback(publisher.close)
    await publisher.start(within)
    return publisher


def _consumer(settings: WorkerSettings, metrics: Metrics, *, in_box: bool) -> KafkaConsumer:
    return KafkaConsumer(
        settings.kafka,
        partition_span=settings.limits.partition_span,
        client_id=settings.worker_id,
        metrics=metrics,
        in_box=in_box,
    )


def _dead_letters(publisher: KafkaPublisher, settings: WorkerSettings) -> KafkaDeadLetters:
    return KafkaDeadLetters(
        publisher,
        topic=settings.kafka.dead_letter_topic,
        group_id=settings.kafka.group_id,
        worker_id=settings.worker_id,
    )


def _results(publisher: KafkaPublisher, kafka: KafkaSettings) -> KafkaResults | None:
    topic = kafka.results_topic
    return None if topic is None else KafkaResults(publisher, topic=topic)


def _beside(
    stack: AsyncExitStack, worker: Worker, name: str, work: Coroutine[Any, Any, None]
) -> None:
    """Run a task until `stack` is left; an exception in it halts the worker too."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(worker.side_task_ended)
    stack.callback(task.cancel)
