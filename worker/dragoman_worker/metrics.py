"""What does the worker measure? Every metric in one table; names are part of the contract."""

from __future__ import annotations

import time
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_schemas.results import QualityVerdict, TerminalStatus

_JOB_BUCKETS: Final = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800)
_TOKEN_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.5, 1)


class Metrics:
    """The worker's metrics in a registry of its own; vLLM's `vllm:*` stay in theirs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.jobs = Counter(
            "dragoman_jobs",
            "Jobs that reached a terminal state here.",
            ["status"],
            registry=registry,
        )
        self.items = Counter(
            "dragoman_items",
            "Items of those jobs, by verdict of the gates.",
            ["quality"],
            registry=registry,
        )
        self.dead_letters = Counter(
            "dragoman_dead_letters",
            "Dead letters acknowledged by the broker.",
            ["code"],
            registry=registry,
        )
        self.retries = Counter(
            "dragoman_retries", "Generations asked for again.", ["code"], registry=registry
        )
        self.redeliveries = Counter(
            "dragoman_redeliveries",
            "Records whose job had been taken up before.",
            registry=registry,
        )
        self.stale_completions = Counter(
            "dragoman_stale_completions",
            "Completions of an old assignment epoch, ignored.",
            registry=registry,
        )
        self.resyncs = Counter(
            "dragoman_resyncs",
            "Times fetching went back to the tracker after an error.",
            registry=registry,
        )
        self.consumer_rebuilds = Counter(
            "dragoman_consumer_rebuilds",
            "Kafka consumers replaced because they could not go on.",
            registry=registry,
        )
        self.watchdog_failing = Gauge(
            "dragoman_watchdog_failing",
            "1 for a watch that sees no sign of life for longer than its limit.",
            ["watch"],
            registry=registry,
        )
        self.lost_to_retention = Counter(
            "dragoman_lost_to_retention",
            "Records that Kafka deleted before they were read.",
            registry=registry,
        )
        self.commits = Counter(
            "dragoman_commits", "Offset commits, by outcome.", ["outcome"], registry=registry
        )
        self.tokens = Counter(
            "dragoman_tokens",
            "Tokens read and written by the engine.",
            ["kind"],
            registry=registry,
        )
        self.jobs_in_flight = Gauge("dragoman_jobs_in_flight", "Jobs in hand.", registry=registry)
        self.items_in_flight = Gauge(
            "dragoman_items_in_flight", "Items inside the engine.", registry=registry
        )
        self.items_waiting = Gauge(
            "dragoman_items_waiting", "Items waiting for a permit.", registry=registry
        )
        self.queue_depth_jobs = Gauge(
            "dragoman_queue_depth_jobs",
            "Records not yet settled in our partitions.",
            registry=registry,
        )
        self.queue_depth_seconds = Gauge(
            "dragoman_queue_depth_seconds",
            "The same at the pace of the last minute.",
            registry=registry,
        )
        self.job_seconds = Histogram(
            "dragoman_job_seconds",
            "Seconds of a job.",
            ["phase"],
            buckets=_JOB_BUCKETS,
            registry=registry,
        )
        self.decode_seconds_per_token = Histogram(
            "dragoman_decode_seconds_per_token",
            "Engine seconds of an item per token written.",
            buckets=_TOKEN_BUCKETS,
            registry=registry,
        )
        self.commit_age_seconds = Gauge(
            "dragoman_commit_age_seconds",
            "Seconds since finished work was last committed.",
            registry=registry,
        )
        self.event_loop_tasks = Gauge(
            "dragoman_event_loop_tasks", "Tasks of the event loop.", registry=registry
        )
        self.event_loop_lag_seconds = Gauge(
            "dragoman_event_loop_lag_seconds",
            "How late the event loop runs its timers.",
            registry=registry,
        )
        self.bottleneck = Gauge(
            "dragoman_bottleneck",
            "1 for the cause that limits throughput now.",
            ["cause"],
            registry=registry,
        )
        self.ready = Gauge("dragoman_ready", "1 while jobs are being taken.", registry=registry)

        # What every job counts, looked up once: a look-up takes a lock and checks the labels.
        self.jobs_by_status = {name: self.jobs.labels(name) for name in get_args(TerminalStatus)}
        self.items_by_verdict = {name: self.items.labels(name) for name in get_args(QualityVerdict)}
        self.prompt_tokens = self.tokens.labels("prompt")
        self.completion_tokens = self.tokens.labels("completion")
        self.queue_seconds = self.job_seconds.labels("queue")
        self.engine_seconds = self.job_seconds.labels("engine")
        self.total_seconds = self.job_seconds.labels("total")

    def limited_by(self, cause: str) -> None:
        """Mark the one cause that limits throughput now, and unmark the one before."""
        self.bottleneck.clear()
        self.bottleneck.labels(cause).set(1)

    def jobs_done(self) -> float:
        """Jobs of every status that ended here, since the start."""
        samples = (sample for metric in self.jobs.collect() for sample in metric.samples)
        return sum(sample.value for sample in samples if sample.name.endswith("_total"))


class Pace:
    """Jobs a second, smoothed over about a minute."""

    def __init__(self) -> None:
        self._done = 0.0
        self._at = time.monotonic()
        self._jobs_a_second = 0.0

    def seconds_for(self, depth: int, done: float) -> float:
        """How long `depth` jobs will take, with `done` jobs counted until now."""
        now = time.monotonic()
        elapsed = max(1e-3, now - self._at)
        rate = (done - self._done) / elapsed
        weight = min(1.0, elapsed / 60.0) if self._jobs_a_second else 1.0
        self._jobs_a_second += weight * (rate - self._jobs_a_second)
        self._done, self._at = done, now
        if depth == 0:
            return 0.0
        return depth / self._jobs_a_second if self._jobs_a_second > 0 else float("inf")
