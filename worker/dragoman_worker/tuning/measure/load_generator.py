"""Load generator: hands the sample's jobs to one engine in a loop and counts the results.

Planner, permits, admission and retries are those of the worker, without Kafka and Redis.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import resource
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry

from dragoman_schemas.jobs import TranslationJob
from dragoman_text.detection import Detection, LanguageDetector
from dragoman_worker.engines.gpu import Gpus
from dragoman_worker.errors import JobError
from dragoman_worker.flow import Flow
from dragoman_worker.flow.admission import Admission, Bounds, open_flow, steering
from dragoman_worker.job.breaker import Breaker, no_sample
from dragoman_worker.job.item_results import first_failure
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.planner import build_planner
from dragoman_worker.job.translator import Translator, build_translator
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Engine
from dragoman_worker.prompts.table import profile_chooser
from dragoman_worker.settings import WorkerSettings

SAMPLE_EVERY_S: Final = 0.1
_SURPLUS: Final = 1.1
"""Ratio of clients to permits: a planned job waits before a permit becomes free."""
_UNBOUNDED: Final = Bounds(items=10**12, tokens=10**12)


@dataclass(frozen=True, slots=True)
class Drive:
    """Way of handing jobs to the engine.

    `continuous`: each of `clients` always has one job in flight (None: enough clients for all
    permits), and up to `items` are in the engine (None: as the worker's admission allows).
    `static`: `batch` jobs at a time, the next batch after the last answer. `all`: `jobs` jobs at
    once, a single time.
    """

    how: Literal["continuous", "static", "all"] = "continuous"
    clients: int | None = None
    items: int | None = None
    batch: int = 0
    jobs: int = 0

    @property
    def in_flight(self) -> int:
        """Jobs that are in flight at once by the drive's own limits; 0: as many as are admitted."""
        return self.items or self.clients or self.batch


@dataclass(slots=True)
class Window:
    """Counts between `open` and `close` of a load generator. Latencies are in seconds."""

    seconds: float = 0.0
    jobs: int = 0
    items: int = 0
    failed: int = 0
    first_error: str | None = None
    prompt_tokens: int = 0
    output_tokens: int = 0
    latencies: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """Tokens per answer."""
    kv_usage_max: float | None = None
    running_max: int = 0
    waiting_max: int = 0
    preemptions: int = 0
    gpu_busy: float | None = None
    cpu_cores: float = 0.0
    decode_s: float | None = None


class LoadGenerator:
    """Load on one engine: `begin`, `open`, `close`, `end` in this order. Event loop only."""

    def __init__(
        self, engine: Engine, settings: WorkerSettings, jobs: Sequence[TranslationJob]
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._jobs = jobs
        choose_profile = profile_chooser(settings.engine)
        self._planner = build_planner(settings, engine, choose_profile)
        self._detections: dict[str, Sequence[Detection | None]] = {}
        """Languages of the items by job id, of the jobs that give none."""
        self._gpu = GpuBusy(engine.limits.devices)
        self._flow: Flow | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._window = Window()
        self._metrics = Metrics(CollectorRegistry())
        self._opened = self._ended = self._cpu = 0.0
        self._decoded = (0.0, 0.0)
        self._preempted = 0
        self.done = 0
        """Jobs completed since `begin`."""

    async def prepare(self) -> None:
        """Detect the languages that the jobs do not give, and start sampling the GPU.

        Beforehand, because a worker does it in another process.
        """
        await asyncio.to_thread(self._detect)
        self._gpu.start()

    def _detect(self) -> None:
        detector = LanguageDetector()
        for job in self._jobs:
            if job.source_lang is None:
                with suppress(JobError):  # of its profile: planning reports it
                    self._detections[job.job_id] = detector.detect_job(
                        [item.text for item in job.items],
                        self._planner.languages(job),
                        job.target_lang,
                    )

    def survey(self, most: int) -> dict[str, Any]:
        """Return items per job and tokens per request of the first `most` jobs."""
        planner, prompts, budgets, items = self._planner, [], [], []
        unplanned, first_error = 0, None
        for job in self._jobs[:most]:
            try:
                plan = planner.plan(job, self._detections.get(job.job_id))
            except JobError as error:
                unplanned, first_error = unplanned + 1, first_error or error.message
                continue
            items.append(len(plan.items))
            prompts += [len(unit.prompt_ids) for unit in plan.units]
            budgets += [unit.decoding.max_tokens for unit in plan.units]
        lengths = {"prompt_tokens": prompts, "output_budget": budgets, "items": items}
        return {**lengths, "unplanned": unplanned, "first_error": first_error}

    # --- a run ------------------------------------------------------------------------------------

    def begin(self, drive: Drive) -> None:
        """Start to hand over jobs, from the first of the sample."""
        limits = self._settings.limits.model_copy(
            update={"max_engine_items": drive.items or self._settings.limits.max_engine_items}
        )
        admission = Admission(limits, self._engine.limits)
        bounds = admission.bounds if drive.how == "continuous" else _UNBOUNDED
        self._flow = flow = open_flow(self._settings, self._engine.limits, bounds)
        self._metrics = Metrics(CollectorRegistry())
        self.done, translator = 0, self._translator(flow)
        jobs = itertools.cycle(self._jobs)
        if drive.how == "static":
            works = [self._batches(translator, jobs, drive.batch)]
        elif drive.how == "all":
            works = [self._one(translator, next(jobs)) for _ in range(drive.jobs)]
        else:
            clients = drive.clients or math.ceil(_SURPLUS * bounds.items) + 1
            works = [self._client(translator, jobs) for _ in range(clients)]
            works.append(steering(admission, flow.permits, self._engine))
        works.append(self._sample())
        self._tasks = [asyncio.create_task(work, name="load") for work in works]
        self.open()

    def open(self) -> None:
        """Start a new window of counts."""
        self._window = Window()
        self._opened = self._ended = time.perf_counter()
        self._gpu.reset()
        self._cpu = _cpu_s()
        self._decoded = self._decode_statistics()
        self._preempted = self._engine.stats().preemptions

    def close(self, *, to_the_last: bool = False) -> dict[str, Any]:
        """Return the window until now, or until the last answer if `to_the_last`."""
        window, now = self._window, time.perf_counter()
        window.seconds = max(1e-9, (self._ended if to_the_last else now) - self._opened)
        window.preemptions = self._engine.stats().preemptions - self._preempted
        window.gpu_busy = self._gpu.mean()
        window.cpu_cores = (_cpu_s() - self._cpu) / max(1e-9, now - self._opened)
        total, count = (
            now - before
            for now, before in zip(self._decode_statistics(), self._decoded, strict=True)
        )
        window.decode_s = total / count if count else None
        return asdict(window)

    async def end(self) -> None:
        """Cancel the jobs in flight and clear the prefix cache for the next run."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._flow is not None:
            self._flow.planning.close()
        if (forget := getattr(self._engine, "forget_prompts", None)) is not None:
            await forget()

    def failure(self) -> BaseException | None:
        """Return the exception of a client that failed, None if all run: the engine is dead."""
        ended = (t for t in self._tasks if t.done() and not t.cancelled())
        return next((error for task in ended if (error := task.exception())), None)

    # --- inside -----------------------------------------------------------------------------------

    async def _client(self, translator: Translator, jobs: Iterator[TranslationJob]) -> None:
        while True:
            await self._one(translator, next(jobs))

    async def _batches(
        self, translator: Translator, jobs: Iterator[TranslationJob], size: int
    ) -> None:
        """Count the latency of the whole batch for each job: answers wait for the last one."""
        while True:
            began = time.perf_counter()
            batch = [next(jobs) for _ in range(size)]
            plans = [plan for job in batch if (plan := self._planned(job))]
            await asyncio.gather(*(translator.run(plan) for plan in plans))
            for plan in plans:
                self._count(plan, time.perf_counter() - began)
            await asyncio.sleep(0)

    async def _one(self, translator: Translator, job: TranslationJob) -> None:
        plan = self._planned(job)
        if plan is None:
            await asyncio.sleep(0)
            return
        permit = await translator.acquire(plan)
        entered = time.perf_counter()
        try:
            await translator.run(plan, permit)
        finally:
            translator.dismiss(plan, permit)
        self._count(plan, time.perf_counter() - entered)

    def _planned(self, job: TranslationJob) -> Plan | None:
        try:
            return self._planner.open(job, detections=self._detections.get(job.job_id))
        except JobError as error:
            self._failed(error)
            self.done += 1
            return None

    def _count(self, plan: Plan, seconds: float) -> None:
        window = self._window
        self.done += 1
        self._ended = time.perf_counter()
        window.jobs += 1
        window.items += len(plan.items)
        if (error := first_failure(plan)) is not None:
            self._failed(error)
        window.prompt_tokens += sum(unit.prompt_tokens for unit in plan.units)
        answers = [unit.completion_tokens for unit in plan.units]
        window.answers += answers
        window.output_tokens += sum(answers)
        window.latencies.append(seconds)

    def _failed(self, error: JobError) -> None:
        self._window.failed += 1
        self._window.first_error = self._window.first_error or error.message

    async def _sample(self) -> None:
        while True:
            stats, window = self._engine.stats(), self._window
            if stats.kv_cache_usage is not None:
                window.kv_usage_max = max(window.kv_usage_max or 0.0, stats.kv_cache_usage)
            window.running_max = max(window.running_max, stats.running)
            window.waiting_max = max(window.waiting_max, stats.waiting)
            await asyncio.sleep(SAMPLE_EVERY_S)

    def _decode_statistics(self) -> tuple[float, float]:
        name, registry = "dragoman_decode_seconds_per_token", self._metrics.registry
        parts = (registry.get_sample_value(f"{name}_{part}") for part in ("sum", "count"))
        total, count = (part or 0.0 for part in parts)
        return total, count

    def _translator(self, flow: Flow) -> Translator:
        return build_translator(
            self._settings,
            self._engine,
            self._planner,
            flow=flow,
            breaker=Breaker(no_sample),
            metrics=self._metrics,
        )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


_EVERY_S: Final = 0.1


class GpuBusy:
    """Share of time in which some kernel ran; it does not show that the GPU was full."""

    def __init__(self, devices: int) -> None:
        self._gpus = Gpus(devices)
        self._samples: list[float] = []

    def start(self) -> None:
        """Start sampling; the thread runs until the process exits."""
        threading.Thread(target=self._sample, name="gpu-busy", daemon=True).start()

    def reset(self) -> None:
        """Discard all samples so far."""
        self._samples = []

    def mean(self) -> float | None:
        """Return the mean over all GPUs of the engine in percent, None without samples."""
        samples = list(self._samples)
        return round(100 * fmean(samples), 1) if samples else None

    def _sample(self) -> None:
        if not self._gpus.open():
            return
        pause = threading.Event()
        while stats := self._gpus.read():
            self._samples.append(fmean(reading.busy for reading in stats))
            pause.wait(_EVERY_S)
