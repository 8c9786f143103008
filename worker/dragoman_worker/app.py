"""How is a worker put together? The only file that joins adapters to the core."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any, Final, TypedDict

from prometheus_client import CollectorRegistry

from dragoman_connections.settings import SettingsError
from dragoman_worker.deadline import Deadline
from dragoman_worker.engines import open_engine
from dragoman_worker.engines.gpu import Gpus
from dragoman_worker.errors import UnknownProfile
from dragoman_worker.flow.admission import Admission, most_planned_tokens, steering
from dragoman_worker.flow.intake import Intake
from dragoman_worker.flow.permits import Permits
from dragoman_worker.flow.planned_tokens import PlannedTokens
from dragoman_worker.flow.slices import Slices
from dragoman_worker.health.liveness import liveness_checks, run_watchdog
from dragoman_worker.health.sampler import Sampler
from dragoman_worker.health.watchdog import LoopGuard, Watchdog
from dragoman_worker.job.executor import Executor
from dragoman_worker.job.in_flight import JobsInFlight
from dragoman_worker.job.opening import journaled
from dragoman_worker.job.outages import DEAD_LETTERS, RESULTS, STORE, Outages
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.reporter import Identity, Reporter
from dragoman_worker.job.retry import RetryPolicy
from dragoman_worker.job.translator import Translator
from dragoman_worker.job.worker import Worker, WorkerState
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.kafka.contact import Contact
from dragoman_worker.kafka.publisher import KafkaDeadLetters, KafkaPublisher, KafkaResults
from dragoman_worker.kafka.topic_watch import TopicWatch
from dragoman_worker.kafka.topics import topics_ready
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Engine, EngineLimits
from dragoman_worker.process.gc_tuning import seldom_collected
from dragoman_worker.process.http import HttpServer, replica_pages
from dragoman_worker.process.parent_link import ReplicaSlot
from dragoman_worker.process.signals import stop_signals, supervised_signals
from dragoman_worker.prompts import get_profile, names
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.quality.language import LanguageDetector
from dragoman_worker.settings import LimitsSettings, WorkerSettings
from dragoman_worker.stores.redis import RedisStore

_LOOK_FOR_SETTLED_S: Final = 0.5


class _TopicsWritten(TypedDict):
    dead_letters: KafkaDeadLetters
    results: KafkaResults | None


class App:
    """One replica: an engine, a consumer, a store, and the worker between them."""

    def __init__(self, settings: WorkerSettings, slot: ReplicaSlot | None = None) -> None:
        """`seat` is its place at a supervisor; without one it serves `http.port` itself."""
        self._settings = settings
        self._slot = slot
        self._log = logger()
        self._metrics = Metrics(CollectorRegistry())
        self._reached: set[str] = set()
        self._outages = Outages()
        self._detector = LanguageDetector()
        self._engine_ready = False
        self._phase = "Redis"
        self._worker: Worker | None = None
        self._contact: Contact | None = None
        self._topics = TopicWatch(settings.kafka)
        self._guard = LoopGuard()
        self._watchdog: Watchdog | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Start in order, work until a signal, stop in reverse. Raises SettingsError and Halt."""
        async with AsyncExitStack() as stack:
            signals = supervised_signals if self._slot else stop_signals
            stack.enter_context(signals(self._stop, self._abort))
            await self._serve(stack)
            starting = asyncio.create_task(self._start(stack), name="start")
            stopping = asyncio.create_task(self._stopping.wait(), name="stop-while-starting")
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not starting.done():
                self._log.info("stopped_while_starting")
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
                return
            worker = starting.result()
            self._log.info("working")
            self._phase = ""
            if self._slot:
                self._slot.parent_link.ready()
                _beside(stack, worker, "settled", self._report_settled(self._slot))
            try:
                with seldom_collected():
                    await worker.run()
            finally:
                self._log.info("stopping")

    async def _report_settled(self, slot: ReplicaSlot) -> None:
        """Until a job has reached its end here, the supervisor does not count us as recovered."""
        while True:
            await asyncio.sleep(_LOOK_FOR_SETTLED_S)
            if self._metrics.jobs_ended():
                break
        slot.parent_link.settled()

    async def _serve(self, stack: AsyncExitStack) -> None:
        slot, place = self._slot, self._settings.http
        pages = replica_pages(
            str(slot.number if slot else 0),
            started=lambda: {self._phase: False} if self._phase else {},
            live=self._live,
            ready=self._ready,
            metrics=self._metrics.registry,
        )
        http = HttpServer(slot.socket if slot else place, pages)
        stack.push_async_callback(http.close)
        port = await http.start()
        if not slot:
            self._log.info("http_listening", host=place.host, port=port)

    # --- composition ------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack) -> Worker:
        settings = self._settings
        self._check_profile()
        stack.callback(self._guard.stop)
        within = Deadline.after(settings.connect_timeout_s)
        store = RedisStore(
            settings.redis,
            poison_after=settings.retry.poison_after,
            want_results=settings.kafka.results_topic is not None,
        )
        stack.push_async_callback(store.close)
        await store.start(within)
        self._reached.add("Redis")
        self._phase = "Kafka"
        # First: it names every missing right, where a producer would name none.
        await topics_ready(settings.kafka, within)
        publisher = KafkaPublisher(settings.kafka, client_id=settings.worker_id)
        stack.push_async_callback(publisher.close)
        await publisher.start(within)
        self._reached.add("Kafka")
        self._phase = "language model"
        # Two seconds, which the first job would hold the loop for if they came after the start.
        await asyncio.to_thread(self._detector.load)
        await asyncio.to_thread(names.load)

        self._phase = "engine"
        engine = open_engine(settings.engine, log_level=settings.log.level)
        stack.push_async_callback(engine.close)
        started = time.monotonic()
        self._log.info("engine_starting", kind=settings.engine.kind, model=settings.engine.model)
        await engine.start()
        self._engine_ready = True
        self._phase = "consumer group"
        limits = engine.limits
        self._log.info(
            "engine_ready",
            seconds=round(time.monotonic() - started, 1),
            max_num_seqs=limits.max_num_seqs,
            max_num_batched_tokens=limits.max_num_batched_tokens,
            max_model_len=limits.max_model_len,
            kv_cache_tokens=limits.kv_cache_tokens,
        )
        return await self._join(stack, engine, store, publisher)

    async def _join(
        self, stack: AsyncExitStack, engine: Engine, store: RedisStore, publisher: KafkaPublisher
    ) -> Worker:
        settings = self._settings
        consumer = KafkaConsumer(
            settings.kafka,
            partition_span=settings.limits.partition_span,
            client_id=settings.worker_id,
            metrics=self._metrics,
            joined=self._slot.parent_link.joined if self._slot else None,
        )
        weights = settings.kafka.topic_weights
        admission = Admission(settings.limits, engine.limits)
        permits = Permits(**asdict(admission.bounds), weights=weights)
        in_flight, outages, slices = JobsInFlight(), self._outages, Slices()
        planned = PlannedTokens(most_planned_tokens(settings.limits, engine.limits))
        stack.callback(slices.close)
        executor = Executor(
            store=store,
            translator=self._translator(engine, permits, slices, planned),
            slices=slices,
            planned=planned,
            permits=permits,
            in_flight=in_flight,
            still_assigned=consumer.still_assigned,
            outages=outages,
            reporter=Reporter(Identity(settings.worker_id, engine.info, engine.model)),
            metrics=self._metrics,
            openings=journaled(self._slot, poison_after=settings.retry.poison_after),
        )
        worker = Worker(
            consumer=consumer,
            executor=executor,
            store=store,
            in_flight=in_flight,
            permits=permits,
            intake=Intake(
                weights,
                jobs=_max_in_flight_jobs(settings.limits, engine.limits),
                size=settings.limits.max_in_flight_bytes,
            ),
            outages=outages,
            grace_s=settings.shutdown.grace_s,
            metrics=self._metrics,
            **self._topics_written(publisher),
        )
        engine.on_death(worker.halt)
        stack.push_async_callback(consumer.close)
        await consumer.start(Deadline.after(settings.connect_timeout_s))
        self._contact = Contact(settings.kafka.bootstrap_servers, consumer.answered)
        _beside(stack, worker, "contact", self._contact.watch())
        _beside(stack, worker, "topics", self._topics.watch())
        most = admission.most_items
        reading = Sampler(self._metrics, consumer, permits, in_flight, engine, most_items=most)
        _beside(stack, worker, "readings", reading.forever(self._ready))
        _beside(stack, worker, "gpus", reading.gpus_forever(Gpus(engine.limits.devices)))
        _beside(stack, worker, "admission", steering(admission, permits, engine))
        limit = settings.retry.attempt_timeout_s
        checks = liveness_checks(
            worker, consumer, permits, in_flight, outages, attempt_timeout_s=limit
        )
        self._watchdog = run_watchdog(stack, self._guard, checks, worker, self._metrics)
        self._worker = worker
        return worker

    def _translator(
        self, engine: Engine, permits: Permits, slices: Slices, planned: PlannedTokens
    ) -> Translator:
        settings = self._settings
        planner = Planner(
            engine=engine,
            choose_profile=self._choose_profile,
            max_tokens=settings.limits.max_tokens,
            exact_lengths=settings.engine.exact_lengths,
            detector=self._detector,
            budget_s=settings.limits.plan_budget_s,
        )
        retry = RetryPolicy(
            attempts=settings.retry.attempts,
            initial_s=settings.retry.initial_s,
            max_s=settings.retry.max_s,
        )
        return Translator(
            planner=planner,
            engine=engine,
            permits=permits,
            planned=planned,
            slices=slices,
            retry=retry,
            attempt_timeout_s=settings.retry.attempt_timeout_s,
            metrics=self._metrics,
        )

    def _topics_written(self, publisher: KafkaPublisher) -> _TopicsWritten:
        kafka = self._settings.kafka
        letters = KafkaDeadLetters(
            publisher,
            topic=kafka.dead_letter_topic,
            group_id=kafka.group_id,
            worker_id=self._settings.worker_id,
        )
        results = kafka.results_topic
        return {
            "dead_letters": letters,
            "results": None if results is None else KafkaResults(publisher, topic=results),
        }

    def _check_profile(self) -> None:
        try:
            get_profile(self._settings.engine.profile)
        except UnknownProfile as error:
            raise SettingsError(f"engine.{error}") from None

    def _choose_profile(self, wanted: str | None) -> Profile:
        profile = get_profile(wanted or self._settings.engine.profile)
        return PLAIN if self._settings.engine.kind == "echo" else profile

    # --- signals, checks, readings ----------------------------------------------------------------

    def _stop(self) -> None:
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    def _abort(self) -> None:
        if self._worker is not None:
            self._worker.abort()

    def _live(self) -> Mapping[str, bool]:
        return self._watchdog.checks() if self._watchdog is not None else {}

    def _ready(self) -> Mapping[str, bool]:
        return {
            "Redis": "Redis" in self._reached and not self._outages.of(STORE),
            "Kafka": "Kafka" in self._reached
            and not (self._contact and self._contact.away)
            and (bool(self._topics.refused) or not self._outages.of(DEAD_LETTERS, RESULTS)),
            **{f"topic {name}: {why}": False for name, why in self._topics.refused.items()},
            "engine": self._engine_ready,
            "consumer group": self._worker is not None,
            "not draining": not self._stopping.is_set()
            and (self._worker is None or self._worker.state is WorkerState.WORKING),
        }


def _beside(
    stack: AsyncExitStack, worker: Worker, name: str, work: Coroutine[Any, Any, None]
) -> None:
    """Run until `stack` is left; what breaks it ends the worker too."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(worker.side_task_ended)
    stack.callback(task.cancel)


def _max_in_flight_jobs(limits: LimitsSettings, engine: EngineLimits) -> int:
    """Enough deliveries that the engine never waits for Kafka while the next ones are decoded."""
    return limits.max_in_flight_jobs or max(
        64, round(3 * limits.engine_oversubscription * engine.max_num_seqs)
    )
