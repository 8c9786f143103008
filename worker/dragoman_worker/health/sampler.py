"""Sampler of one replica's stats: sets the gauges that no event sets, once per second."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from dragoman_worker.engines.gpu import Gpus, GpuStats
from dragoman_worker.flow.permits import Permits
from dragoman_worker.health.bottleneck import STALLED_S, LoadWindow, Moment, bottleneck
from dragoman_worker.job.in_flight import JobsInFlight, Step
from dragoman_worker.kafka.consumer import KafkaConsumer
from dragoman_worker.log import take_dropped
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Engine, EngineStats

SAMPLE_EVERY_S: Final = 0.5
GAUGES_EVERY_S: Final = 1.0
_STORING: Final = frozenset({Step.CLAIM, Step.SETTLE})


class Sampler:
    """Sets the gauges of one replica and judges its bottleneck. Only reading the GPUs is slow."""

    def __init__(
        self,
        metrics: Metrics,
        consumer: KafkaConsumer,
        permits: Permits,
        in_flight: JobsInFlight,
        engine: Engine,
        *,
        most_items: int,
    ) -> None:
        """Sample these parts; `most_items` is the highest bound on the permits."""
        self._metrics = metrics
        self._consumer = consumer
        self._permits = permits
        self._in_flight = in_flight
        self._engine = engine
        self._window = LoadWindow(engine.limits, most_items=most_items, every_s=SAMPLE_EVERY_S)
        self._pace = Pace()
        self._loop = LoopClock()
        self._stalls = StallClock()
        self._preemptions = engine.stats().preemptions
        self._answered = permits.answered
        self._signs = 0
        self._silent_s = 0.0
        self._gpus: list[GpuStats] = []

    async def forever(self, ready: Callable[[], Mapping[str, bool]]) -> None:
        """Sample twice per second, and set the gauges after every second sample."""
        self._stalls.start()
        try:
            while True:
                for _ in range(round(GAUGES_EVERY_S / SAMPLE_EVERY_S)):
                    await self._loop.sleep(SAMPLE_EVERY_S)
                    self._sample()
                self._metrics.ready.set(all(ready().values()))
                self._set_gauges()
        finally:
            self._stalls.stop()

    def _set_gauges(self) -> None:
        self._set_loop_gauges()
        self._set_work_gauges()
        self._set_engine_gauges()
        load = self._window.load()
        self._metrics.limited_by(bottleneck(load), asdict(load))

    def standing(self) -> dict[str, Any]:
        """Return what a replica announces of its work: the rate while it had some, load, cause."""
        load = self._window.load() if self._window.is_filled else None
        busy = None if load is None else load.gpu_busy
        if load is not None and busy is None:
            busy = min(1.0, load.running / max(1.0, load.seqs))
        return {
            "jobs_per_s": round(self._pace.jobs_per_s, 3),
            "busy": None if busy is None else round(busy, 3),
            "cause": None if load is None else bottleneck(load).value,
        }

    async def gpus_forever(self, gpus: Gpus) -> None:
        """Read the GPUs once per second, off the event loop; return at once without GPUs."""
        try:
            found = await asyncio.to_thread(gpus.open)
            while found:
                self._gpus = await asyncio.to_thread(gpus.read)
                self._set_gpu_gauges()
                await asyncio.sleep(GAUGES_EVERY_S)
        finally:
            with suppress(Exception):  # the driver may be gone
                gpus.close()

    # --- the window -------------------------------------------------------------------------------

    def _sample(self) -> None:
        if self._window.add(self._moment()):
            self._metrics.feed_wait_seconds.inc(SAMPLE_EVERY_S)

    def _moment(self) -> Moment:
        stats, permits = self._engine.stats(), self._permits
        late_before = time.perf_counter() - STALLED_S
        steps: Counter[Step] = Counter()
        stalled = 0
        for step, since in self._in_flight.steps():
            steps[step] += 1
            stalled += step in _STORING and since < late_before
        for step in Step:
            self._metrics.jobs_in_step.labels(step.value).set(steps[step])
        preempted, finished = self._since_last_moment(stats)
        return Moment(
            no_broker=self._consumer.cut_off,
            queued=self._consumer.queued() + steps[Step.PERMIT] + steps[Step.CLAIM],
            storing=steps[Step.CLAIM] + steps[Step.SETTLE],
            stalled=stalled,
            in_flight=steps.total(),
            held=permits.held_items,
            items=permits.items,
            tokens=permits.tokens,
            tokens_hold_back=permits.tokens_hold_back,
            engine=stats,
            preempted=preempted,
            finished=finished,
            loop_busy=self._loop.busy,
            loop_late_s=self._loop.late_s,
            gpu_busy=_mean([gpu.busy for gpu in self._gpus]),
            quarantined=permits.quarantined,
            silent_s=self._engine_silent_s(stats),
        )

    def _since_last_moment(self, stats: EngineStats) -> tuple[int, int]:
        """Return the preemptions and the items that the engine answered since the last call."""
        preempted = stats.preemptions - self._preemptions
        finished = self._permits.answered - self._answered
        self._preemptions, self._answered = stats.preemptions, self._permits.answered
        if preempted > 0:
            self._metrics.preemptions.inc(preempted)
        if finished > 0:
            self._metrics.engine_items.inc(finished)
        return max(0, preempted), finished

    def _engine_silent_s(self, stats: EngineStats) -> float:
        """Return for how long the engine has had requests and given no sign of life."""
        signs = self._engine.signs_of_life()
        silent = signs == self._signs and stats.running + stats.waiting > 0
        self._signs, self._silent_s = signs, (self._silent_s + SAMPLE_EVERY_S if silent else 0.0)
        return self._silent_s

    # --- gauges -----------------------------------------------------------------------------------

    def _set_loop_gauges(self) -> None:
        metrics, stall = self._metrics, self._stalls.read()
        metrics.log_lines_dropped.inc(take_dropped())
        metrics.event_loop_lag_seconds.set(stall.late_s)
        metrics.event_loop_lag_cpu_seconds.set(stall.cpu_s)
        metrics.event_loop_busy.set(self._loop.busy)
        metrics.event_loop_tasks.set(len(asyncio.all_tasks()))

    def _set_work_gauges(self) -> None:
        metrics, permits = self._metrics, self._permits
        metrics.jobs_in_flight.set(len(self._in_flight))
        metrics.items_in_flight.set(permits.held_items)
        metrics.items_waiting.set(permits.waiting)
        metrics.commit_age_seconds.set(
            max(self._consumer.commit_age_s(), self._in_flight.unsettled_s())
        )
        lags = self._consumer.lags()
        if len(lags) > 1:
            self._set_class_gauges(lags)
        lag = sum(lags.values())
        tokens, seconds = self._pace.work(lag, metrics.jobs_done(), metrics.tokens_done())
        metrics.lag_jobs.set(lag)
        metrics.lag_tokens.set(tokens)
        metrics.lag_seconds.set(seconds)

    def _set_class_gauges(self, lags: Mapping[str, int]) -> None:
        metrics, in_flight = self._metrics, self._in_flight.by_topic()
        for topic, lag in lags.items():
            metrics.class_lag_jobs.labels(topic).set(lag)
            metrics.class_jobs_in_flight.labels(topic).set(in_flight[topic])
            metrics.class_items_waiting.labels(topic).set(self._permits.waiting_of(topic))

    def _set_engine_gauges(self) -> None:
        metrics, permits, stats = self._metrics, self._permits, self._engine.stats()
        metrics.engine_running.set(stats.running)
        metrics.engine_waiting.set(stats.waiting)
        metrics.kv_cache_usage.set(stats.kv_cache_usage or 0.0)
        metrics.admission_items.set(permits.items)
        metrics.admission_tokens.set(permits.tokens)
        metrics.admission_held_tokens.set(permits.held_tokens)

    def _set_gpu_gauges(self) -> None:
        metrics = self._metrics
        for gpu in self._gpus:
            metrics.gpu_busy.labels(gpu.name).set(gpu.busy)
            metrics.gpu_memory_used.labels(gpu.name).set(gpu.memory_used)
            metrics.gpu_memory_total.labels(gpu.name).set(gpu.memory_total)


class LoopClock:
    """Delay of the event loop and CPU of its thread, measured at each sleep."""

    def __init__(self) -> None:
        self.late_s = 0.0
        self.busy = 0.0
        """CPU of the loop's thread; 1 is one core."""

    async def sleep(self, seconds: float) -> None:
        """Sleep, and measure the delay and the CPU used meanwhile."""
        began, cpu = time.monotonic(), time.thread_time()
        await asyncio.sleep(seconds)
        took = time.monotonic() - began
        self.late_s = max(0.0, took - seconds)
        self.busy = (time.thread_time() - cpu) / took


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


class Pace:
    """Jobs and tokens per second, smoothed over about a minute of work."""

    def __init__(self) -> None:
        self._jobs = self._tokens = 0.0
        self._at = time.monotonic()
        self._jobs_per_s = self._tokens_per_s = 0.0

    @property
    def jobs_per_s(self) -> float:
        """The rate while there was work; 0 before the first job."""
        return self._jobs_per_s

    def work(self, lag: int, jobs: float, tokens: float) -> tuple[float, float]:
        """Return the estimated tokens and seconds of `lag` jobs.

        `jobs` and `tokens` are the totals done until now. Before the first job is done, the
        estimate is 0 tokens and infinite seconds.
        """
        now = time.monotonic()
        elapsed = max(1e-3, now - self._at)
        weight = min(1.0, elapsed / 60.0) if self._jobs_per_s else 1.0
        if lag or jobs > self._jobs:  # an empty queue is no measurement of the rate
            self._jobs_per_s += weight * ((jobs - self._jobs) / elapsed - self._jobs_per_s)
            rate = (tokens - self._tokens) / elapsed
            self._tokens_per_s += weight * (rate - self._tokens_per_s)
        self._jobs, self._tokens, self._at = jobs, tokens, now
        if lag == 0:
            return 0.0, 0.0
        if self._jobs_per_s <= 0:
            return 0.0, float("inf")
        seconds = lag / self._jobs_per_s
        return seconds * self._tokens_per_s, seconds


TICK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Stall:
    """Longest delay of a timer, and most CPU of the loop's thread between two ticks.

    On an overloaded machine the delay grows with the work of other programs; the CPU time does not.
    """

    late_s: float = 0.0
    cpu_s: float = 0.0


class StallClock:
    """A 20 ms timer that keeps its longest delay; sampled delays would miss most stalls."""

    def __init__(self) -> None:
        self._longest = self._before = Stall()
        self._due = self._cpu = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Tick until `stop`."""
        self._due = time.monotonic() + TICK_S
        self._cpu = time.thread_time()
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()

    def read(self) -> Stall:
        """Return the longest stall since the last call but one: two calls report every stall."""
        before, self._before = self._before, self._longest
        self._longest = Stall()
        return _longest(before, self._before)

    def _tick(self) -> None:
        late_s = time.monotonic() - self._due
        cpu_s = time.thread_time() - self._cpu
        if late_s > self._longest.late_s or cpu_s > self._longest.cpu_s:
            self._longest = _longest(self._longest, Stall(late_s, cpu_s))
        self.start()


def _longest(one: Stall, other: Stall) -> Stall:
    return Stall(max(one.late_s, other.late_s), max(one.cpu_s, other.cpu_s))
