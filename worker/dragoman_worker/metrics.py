"""What does the worker measure? Every metric in one table; names are part of the contract."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman_schemas.results import QualityVerdict, TerminalStatus

_JOB_BUCKETS: Final = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800)
_TOKEN_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.5, 1)
_PHASES: Final = ("queue", "decode", "permit", "claim", "engine", "settle", "total")


class Times:
    """One histogram's counts. For the event loop alone: without a lock, a fifth of the cost."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def told(self) -> tuple[list[tuple[str, float]], float]:
        """Cumulative counts by upper bound, and the sum, as Prometheus wants them."""
        names = (*(str(float(bound)) for bound in self._bounds), "+Inf")
        below = accumulate(map(float, self._counts))
        return list(zip(names, below, strict=True)), self._sum


class TimesFamily(Collector):
    """A histogram of seconds with one label or none, and the values it has known before."""

    def __init__(
        self,
        name: str,
        documentation: str,
        bounds: Sequence[float],
        registry: CollectorRegistry,
        *,
        label: str | None = None,
        values: Iterable[str] = ("",),
    ) -> None:
        self.name = name
        self.labels = (label,) if label else ()
        self._head = (name, documentation)
        self.by: Mapping[str, Times] = {value: Times(bounds) for value in values}
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """The family without samples."""
        return [HistogramMetricFamily(*self._head, labels=self.labels)]

    def collect(self) -> Iterable[Metric]:
        """The family with its counts now."""
        family = HistogramMetricFamily(*self._head, labels=self.labels)
        for value, times in self.by.items():
            family.add_metric([value] if self.labels else [], *times.told())
        return [family]


class Metrics:
    """The worker's metrics in a registry of its own; vLLM's `vllm:*` stay in theirs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._count_jobs()
        self._count_kafka()
        self._read_queue()
        self._time_jobs()
        self._read_loop()
        self._read_engine()
        self._judge()

    # --- families ---------------------------------------------------------------------------------

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(f"dragoman_{name}", documentation, labels, registry=self.registry)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(f"dragoman_{name}", documentation, labels, registry=self.registry)

    def _count_jobs(self) -> None:
        self.jobs = self._counter("jobs", "Jobs that reached a terminal state here.", "status")
        self.items = self._counter("items", "Their items, by verdict of the gates.", "quality")
        self.tokens = self._counter("tokens", "Tokens read and written by the engine.", "kind")
        self.retries = self._counter("retries", "Generations asked for again.", "code")
        self.redeliveries = self._counter(
            "redeliveries", "Records whose job had been taken up before."
        )
        self.dead_letters = self._counter(
            "dead_letters", "Dead letters acknowledged by the broker.", "code"
        )
        # What every job counts, looked up once: a look-up takes a lock and checks the labels.
        self.jobs_by_status = {name: self.jobs.labels(name) for name in get_args(TerminalStatus)}
        self.items_by_verdict = {name: self.items.labels(name) for name in get_args(QualityVerdict)}
        self.prompt_tokens = self.tokens.labels("prompt")
        self.completion_tokens = self.tokens.labels("completion")

    def jobs_ended(self) -> float:
        """Jobs that reached a terminal state here so far."""
        samples = (sample for family in self.jobs.collect() for sample in family.samples)
        return sum(sample.value for sample in samples if sample.name.endswith("_total"))

    def _count_kafka(self) -> None:
        self.stale_completions = self._counter(
            "stale_completions", "Completions of an old assignment epoch, ignored."
        )
        self.resyncs = self._counter(
            "resyncs", "Times fetching went back to the tracker after an error."
        )
        self.consumer_rebuilds = self._counter(
            "consumer_rebuilds", "Kafka consumers replaced because they could not go on."
        )
        self.lost_to_retention = self._counter(
            "lost_to_retention", "Records that Kafka deleted before they were read."
        )
        self.commits = self._counter("commits", "Offset commits, by outcome.", "outcome")
        self.commit_age_seconds = self._gauge(
            "commit_age_seconds", "Seconds that finished work has waited for its end."
        )

    def _read_queue(self) -> None:
        self.jobs_in_flight = self._gauge("jobs_in_flight", "Jobs in hand.")
        self.jobs_in_step = self._gauge("jobs_in_step", "Those, by what they are in.", "step")
        self.items_in_flight = self._gauge("items_in_flight", "Items inside the engine.")
        self.items_waiting = self._gauge("items_waiting", "Items waiting for a permit.")
        self.lag_jobs = self._gauge("lag_jobs", "Records not yet settled in our partitions.")
        self.lag_tokens = self._gauge(
            "lag_tokens", "The same in tokens, with as many a job as of late."
        )
        self.lag_seconds = self._gauge("lag_seconds", "The same at the pace of the last minute.")
        self.class_lag_jobs = self._gauge(
            "class_lag_jobs", "Records of a topic not yet settled; with several topics.", "topic"
        )
        self.class_jobs_in_flight = self._gauge("class_jobs_in_flight", "Those in hand.", "topic")
        self.class_items_waiting = self._gauge(
            "class_items_waiting", "Their items waiting for a permit.", "topic"
        )
        self.feed_wait_seconds = self._counter(
            "feed_wait_seconds", "Seconds the engine had room while there was work for it."
        )

    def _time_jobs(self) -> None:
        self.job_seconds = TimesFamily(
            "dragoman_job_seconds",
            "Seconds of a job, by phase.",
            _JOB_BUCKETS,
            self.registry,
            label="phase",
            values=_PHASES,
        )
        phases = self.job_seconds.by
        self.queue_seconds, self.total_seconds = phases["queue"], phases["total"]
        self.decode_seconds, self.permit_seconds = phases["decode"], phases["permit"]
        self.claim_seconds, self.settle_seconds = phases["claim"], phases["settle"]
        self.engine_seconds = phases["engine"]
        self.engine_wait_seconds = TimesFamily(
            "dragoman_engine_wait_seconds",
            "Seconds an item waited for its permit.",
            _JOB_BUCKETS,
            self.registry,
        ).by[""]
        self.decode_seconds_per_token = TimesFamily(
            "dragoman_decode_seconds_per_token",
            "Engine seconds of an item per token written.",
            _TOKEN_BUCKETS,
            self.registry,
        ).by[""]

    def _read_loop(self) -> None:
        self.event_loop_tasks = self._gauge("event_loop_tasks", "Tasks of the event loop.")
        self.event_loop_lag_seconds = self._gauge(
            "event_loop_lag_seconds", "Longest delay of a timer within the last two seconds."
        )
        self.event_loop_lag_cpu_seconds = self._gauge(
            "event_loop_lag_cpu_seconds",
            "Most CPU of the event loop's thread between two timers within the last two seconds.",
        )
        self.event_loop_busy = self._gauge(
            "event_loop_busy_ratio", "CPU of the event loop's thread, 1 being a core."
        )
        self.watchdog_failing = self._gauge(
            "watchdog_failing",
            "1 for a watch that sees no sign of life for longer than its limit.",
            "watch",
        )
        self.ready = self._gauge("ready", "1 while jobs are being taken.")

    def _read_engine(self) -> None:
        self.engine_running = self._gauge("engine_running", "Sequences the engine runs.")
        self.engine_waiting = self._gauge("engine_waiting", "Sequences that wait inside it.")
        self.kv_cache_usage = self._gauge("kv_cache_usage_ratio", "KV cache in use, 0 to 1.")
        self.preemptions = self._counter(
            "preemptions", "Sequences thrown out of a full KV cache, to be begun again."
        )
        self.admission_items = self._gauge("admission_items", "Items that may be in the engine.")
        self.admission_tokens = self._gauge(
            "admission_tokens", "Tokens that those may take, prompts and longest outputs."
        )
        self.admission_held_tokens = self._gauge(
            "admission_held_tokens", "Tokens that those in the engine may take."
        )
        self.gpu_busy = self._gauge("gpu_busy_ratio", "Time in which a kernel ran, 0 to 1.", "gpu")
        self.gpu_memory_used = self._gauge("gpu_memory_used_bytes", "Memory in use.", "gpu")
        self.gpu_memory_total = self._gauge("gpu_memory_total_bytes", "Memory there is.", "gpu")

    def _judge(self) -> None:
        self.bottleneck = self._gauge(
            "bottleneck", "1 for the cause that limits throughput now.", "cause"
        )
        self.load = self._gauge(
            "load", "What that is judged by: shares and means of the last seconds.", "reading"
        )

    # --- more than one at once --------------------------------------------------------------------

    def limited_by(self, cause: str, stats: Mapping[str, float | None]) -> None:
        """Mark the one cause that limits throughput now, and tell what it is judged by."""
        self.bottleneck.clear()
        self.bottleneck.labels(cause).set(1)
        for name, value in stats.items():
            if value is not None:
                self.load.labels(name).set(value)

    def jobs_done(self) -> float:
        """Jobs of every status that ended here, since the start."""
        return _total(self.jobs)

    def tokens_done(self) -> float:
        """Tokens of those jobs, read and written."""
        return _total(self.tokens)


def _total(counter: Counter) -> float:
    samples = (sample for metric in counter.collect() for sample in metric.samples)
    return sum(sample.value for sample in samples if sample.name.endswith("_total"))


class Pace:
    """Jobs and their tokens a second, smoothed over about a minute of work."""

    def __init__(self) -> None:
        self._jobs = self._tokens = 0.0
        self._at = time.monotonic()
        self._jobs_a_second = self._tokens_a_second = 0.0

    def work(self, depth: int, jobs: float, tokens: float) -> tuple[float, float]:
        """Tokens and seconds that `depth` jobs come to, with so many done until now.

        Tokens are 0 before the first job has ended; seconds are infinite then.
        """
        now = time.monotonic()
        elapsed = max(1e-3, now - self._at)
        weight = min(1.0, elapsed / 60.0) if self._jobs_a_second else 1.0
        if depth or jobs > self._jobs:  # an empty queue says nothing of how fast we are
            self._jobs_a_second += weight * ((jobs - self._jobs) / elapsed - self._jobs_a_second)
            pace = (tokens - self._tokens) / elapsed
            self._tokens_a_second += weight * (pace - self._tokens_a_second)
        self._jobs, self._tokens, self._at = jobs, tokens, now
        if depth == 0:
            return 0.0, 0.0
        if self._jobs_a_second <= 0:
            return 0.0, float("inf")
        seconds = depth / self._jobs_a_second
        return seconds * self._tokens_a_second, seconds
