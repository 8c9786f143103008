"""All metrics of the worker; the names are part of the contract."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman_schemas.failures import FailureCode
from dragoman_schemas.results import QualityVerdict, TerminalStatus
from dragoman_worker.version import version

# Up to a day: a job of a bulk load waits for hours behind the others.
_JOB_BUCKETS: Final = (
    0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 21_600, 86_400,
)  # fmt: skip
_JUDGE_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_TOKEN_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.5, 1)
_MEMORY_RESULTS: Final = ("hit", "approved", "joined", "miss", "error")
_OUTCOMES: Final = ("ok", "rebalanced", "failed")
_ACTIONS: Final = ("warned", "retried", "fixed", "failed")
_PHASES: Final = ("queue", "decode", "permit", "claim", "engine", "settle", "total")


class Times:
    """Counts of one histogram, for the event loop only: without a lock at a fifth of the cost."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one observation."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        """Return the cumulative counts by upper bound, and the sum, in Prometheus' form."""
        names = (*(str(float(bound)) for bound in self._bounds), "+Inf")
        below = accumulate(map(float, self._counts))
        return list(zip(names, below, strict=True)), self._sum


class TimesFamily(Collector):
    """A histogram of seconds with at most one label, whose values are known from the start."""

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
        """Return the family without samples."""
        return [HistogramMetricFamily(*self._head, labels=self.labels)]

    def collect(self) -> Iterable[Metric]:
        """Return the family with its current counts."""
        family = HistogramMetricFamily(*self._head, labels=self.labels)
        for value, times in self.by.items():
            family.add_metric([value] if self.labels else [], *times.cumulative())
        return [family]


class Metrics:
    """The worker's metrics in their own registry; vLLM's `vllm:*` are in the default one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._add_job_counters()
        self._add_kafka_metrics()
        self._add_queue_gauges()
        self._add_job_histograms()
        self._add_gates()
        self._add_process_gauges()
        self._add_engine_gauges()
        self._add_bottleneck()
        build = self._gauge("build_info", "1 for the version that runs.", "version")
        build.labels(version()).set(1)

        self._start_labels()

    def _start_labels(self) -> None:
        """Export every series from 0: Prometheus sees no increase in one that begins later."""
        for code in FailureCode:
            self.dead_letters.labels(code.value)
            self.retries.labels(code.value)
        for outcome in _OUTCOMES:
            self.commits.labels(outcome)

    def start_gates(self, names: Iterable[str]) -> None:
        """Export the findings of these gates from 0."""
        for name in names:
            for action in _ACTIONS:
                self.gates.labels(name, action)

    # --- families ---------------------------------------------------------------------------------

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(f"dragoman_{name}", documentation, labels, registry=self.registry)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(f"dragoman_{name}", documentation, labels, registry=self.registry)

    def _add_job_counters(self) -> None:
        self.jobs = self._counter("jobs", "Jobs brought to a terminal state here.", "status")
        self.items = self._counter(
            "items", "Items of finished jobs, by quality verdict.", "quality"
        )
        self.tokens = self._counter("tokens", "Tokens read and written by the engine.", "kind")
        self.engine_items = self._counter(
            "engine_items", "Items that left the engine with an output, usable or not."
        )
        self.log_lines_dropped = self._counter(
            "log_lines_dropped", "Lines of the log that could not be written."
        )
        self.retries = self._counter("retries", "Repeated generations, by error code.", "code")
        claimed_before = "Records whose job had been claimed before."
        self.redeliveries = self._counter("redeliveries", claimed_before)
        self.dead_letters = self._counter(
            "dead_letters", "Dead letters acknowledged by the broker, by error code.", "code"
        )
        self.memory = self._counter("memory", "Look-ups in the memory, by result.", "result")
        self.memory_by_result = {name: self.memory.labels(name) for name in _MEMORY_RESULTS}
        # Children that every job uses are looked up once: labels() takes a lock and checks names.
        self.jobs_by_status = {name: self.jobs.labels(name) for name in get_args(TerminalStatus)}
        self.items_by_verdict = {name: self.items.labels(name) for name in get_args(QualityVerdict)}
        self.prompt_tokens = self.tokens.labels("prompt")
        self.completion_tokens = self.tokens.labels("completion")

    def _add_kafka_metrics(self) -> None:
        self.stale_completions = self._counter(
            "stale_completions", "Ignored completions of an earlier assignment generation."
        )
        self.resyncs = self._counter(
            "resyncs", "Times fetching returned to the tracked position after an error."
        )
        self.consumer_rebuilds = self._counter(
            "consumer_rebuilds", "Kafka consumers replaced because they could not continue."
        )
        self.lost_to_retention = self._counter(
            "lost_to_retention", "Records that Kafka deleted before they were read."
        )
        self.recreated_partitions = self._counter(
            "recreated_partitions",
            "Partitions read again from the beginning because their topic was recreated.",
        )
        self.commits = self._counter("commits", "Offset commits, by outcome.", "outcome")
        self.commit_age_seconds = self._gauge(
            "commit_age_seconds", "Seconds for which finished work is unsettled or uncommitted."
        )

    def _add_queue_gauges(self) -> None:
        self.jobs_in_flight = self._gauge("jobs_in_flight", "Jobs polled and not yet settled.")
        self.jobs_in_step = self._gauge("jobs_in_step", "Jobs in flight, by step.", "step")
        self.items_in_flight = self._gauge("items_in_flight", "Items in the engine.")
        self.items_waiting = self._gauge("items_waiting", "Items waiting for a permit.")
        self.lag_jobs = self._gauge("lag_jobs", "Unsettled records in the assigned partitions.")
        self.lag_tokens = self._gauge(
            "lag_tokens", "Estimated tokens of the unsettled records, at the recent mean per job."
        )
        self.lag_seconds = self._gauge(
            "lag_seconds", "Estimated seconds to settle the lag, at the rate of the last minute."
        )
        self.class_lag_jobs = self._gauge(
            "class_lag_jobs", "Unsettled records of a topic; only with several topics.", "topic"
        )
        self.class_jobs_in_flight = self._gauge(
            "class_jobs_in_flight", "Jobs in flight of a topic; only with several topics.", "topic"
        )
        self.class_items_waiting = self._gauge(
            "class_items_waiting",
            "Items of a topic waiting for a permit; only with several topics.",
            "topic",
        )
        self.feed_wait_seconds = self._counter(
            "feed_wait_seconds", "Seconds in which the engine had capacity while jobs were queued."
        )

    def _add_job_histograms(self) -> None:
        self.job_seconds = TimesFamily(
            "dragoman_job_seconds",
            "Seconds per job, by phase.",
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
            "Seconds that an item waited for its permit.",
            _JOB_BUCKETS,
            self.registry,
        ).by[""]
        self.decode_seconds_per_token = TimesFamily(
            "dragoman_decode_seconds_per_token",
            "Engine seconds of an item per token written.",
            _TOKEN_BUCKETS,
            self.registry,
        ).by[""]
        self.judge_seconds = TimesFamily(
            "dragoman_judge_seconds",
            "Seconds until an answer was judged, with the wait for the judge.",
            _JUDGE_BUCKETS,
            self.registry,
        ).by[""]

    def _add_gates(self) -> None:
        self.gates = self._counter(
            "gates", "Findings of the quality gates, by gate and what followed.", "gate", "action"
        )
        self.judge_restarts = self._counter(
            "judge_restarts", "Judge processes replaced because they died or hung."
        )

    def _add_process_gauges(self) -> None:
        self.event_loop_tasks = self._gauge("event_loop_tasks", "Tasks on the event loop.")
        self.event_loop_lag_seconds = self._gauge(
            "event_loop_lag_seconds", "Longest delay of a timer in the last two seconds."
        )
        self.event_loop_lag_cpu_seconds = self._gauge(
            "event_loop_lag_cpu_seconds",
            "Most CPU of the event loop's thread between two timers in the last two seconds.",
        )
        self.event_loop_busy = self._gauge(
            "event_loop_busy_ratio", "CPU of the event loop's thread; 1 is one core."
        )
        self.watchdog_failing = self._gauge(
            "watchdog_failing",
            "1 for a liveness check without a sign of life for longer than its limit.",
            "check",
        )
        self.ready = self._gauge("ready", "1 while the replica is ready for jobs.")
        self.certificate_expiry = self._gauge(
            "certificate_expiry_timestamp_seconds",
            "Unix time at which a certificate of the settings expires.",
            "connection",
            "certificate",
        )

    def _add_engine_gauges(self) -> None:
        self.engine_running = self._gauge("engine_running", "Sequences running in the engine.")
        self.engine_waiting = self._gauge("engine_waiting", "Sequences waiting in the engine.")
        self.kv_cache_usage = self._gauge("kv_cache_usage_ratio", "KV cache in use, 0 to 1.")
        preemptions = "Sequences preempted because the KV cache was full, to be run again."
        self.preemptions = self._counter("preemptions", preemptions)
        self.admission_items = self._gauge("admission_items", "Bound on the items in the engine.")
        self.admission_tokens = self._gauge(
            "admission_tokens", "Bound on the tokens in the engine, prompts and expected outputs."
        )
        self.admission_held_tokens = self._gauge(
            "admission_held_tokens", "Tokens reserved by the items in the engine."
        )
        self.gpu_busy = self._gauge(
            "gpu_busy_ratio", "Share of the time in which a kernel ran, 0 to 1.", "gpu"
        )
        self.gpu_memory_used = self._gauge("gpu_memory_used_bytes", "GPU memory in use.", "gpu")
        self.gpu_memory_total = self._gauge("gpu_memory_total_bytes", "GPU memory in total.", "gpu")

    def _add_bottleneck(self) -> None:
        self.bottleneck = self._gauge(
            "bottleneck", "1 for the cause that limits throughput now.", "cause"
        )
        self.load = self._gauge(
            "load", "Stats behind the bottleneck: shares and means of the last 10 s.", "stat"
        )

    def limited_by(self, cause: str, stats: Mapping[str, float | None]) -> None:
        """Set the cause that limits throughput now, and the stats that it is judged by."""
        self.bottleneck.clear()
        self.bottleneck.labels(cause).set(1)
        for name, value in stats.items():
            if value is not None:
                self.load.labels(name).set(value)

    def jobs_done(self) -> float:
        """Return the jobs of every status brought to a terminal state since the start."""
        return _total(self.jobs)

    def tokens_done(self) -> float:
        """Return the tokens that the engine read and wrote since the start."""
        return _total(self.tokens)


def _total(counter: Counter) -> float:
    samples = (sample for metric in counter.collect() for sample in metric.samples)
    return sum(sample.value for sample in samples if sample.name.endswith("_total"))
