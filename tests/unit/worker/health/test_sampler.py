"""Tests of the gauges that the sampler sets, and of admission's steering of the permits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.engines.gpu import GpuStats
from dragoman_worker.flow.admission import Admission, steering
from dragoman_worker.flow.permits import Permits
from dragoman_worker.health.sampler import Sampler
from dragoman_worker.job.in_flight import JobsInFlight, Step
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Decoding, EngineLimits, EngineStats, GenerationRequest
from dragoman_worker.settings import EchoSettings, EngineSettings, LimitsSettings
from support.builders.jobs_in_flight import entered
from support.processes.waiting import eventually


class Replica:
    """Idle parts of one replica, and its sampler."""

    def __init__(self, *, queued: int = 0, lag: int = 0) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.permits = Permits(items=20, tokens=1_000)
        self.in_flight = JobsInFlight()
        self.engine = EchoEngine(
            EngineSettings(
                kind="echo", options={"max_num_seqs": 16}, echo=EchoSettings(faults=True)
            ),
        )
        consumer: Any = SimpleNamespace(
            cut_off=False,
            queued=lambda: queued,
            lag=lambda: lag,
            lags=lambda: {"jobs": lag},
            commit_age_s=lambda: 0.5,
        )
        self.sampler = Sampler(
            self.metrics, consumer, self.permits, self.in_flight, self.engine, most_items=20
        )

    def page(self) -> list[str]:
        return generate_latest(self.metrics.registry).decode().splitlines()


async def sampled(replica: Replica, *lines: str) -> None:
    """Run the sampler until the metrics page has all these lines."""
    task = asyncio.create_task(replica.sampler.forever(lambda: {"engine": True}))
    try:
        await eventually(lambda: set(lines) <= set(replica.page()), timeout_s=30, what=str(lines))
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_an_idle_worker_is_limited_by_an_empty_queue() -> None:
    replica = Replica()
    await sampled(
        replica,
        'dragoman_bottleneck{cause="queue_empty"} 1.0',
        "dragoman_ready 1.0",
        "dragoman_feed_wait_seconds_total 0.0",
        "dragoman_admission_items 20.0",
        "dragoman_commit_age_seconds 0.5",
    )


async def test_time_without_work_counts_while_jobs_are_queued() -> None:
    replica = Replica(queued=5_000, lag=5_040)
    for number in range(40):
        entered(replica.in_flight, f"j{number}").enter(Step.CLAIM)
    await sampled(
        replica,
        'dragoman_bottleneck{cause="feed"} 1.0',
        "dragoman_feed_wait_seconds_total 1.0",
        'dragoman_jobs_in_step{step="claim"} 40.0',
        'dragoman_load{stat="queued"} 5040.0',
        "dragoman_lag_jobs 5040.0",
    )


async def test_items_that_leave_the_engine_are_counted_while_their_job_runs() -> None:
    replica = Replica(lag=1)
    for answered in (True, True, False, True):
        permit = await replica.permits.acquire("job", 10)
        replica.permits.release(permit, answered=answered)
    await sampled(replica, "dragoman_engine_items_total 3.0")


async def test_an_engine_that_has_requests_and_gives_no_sign_of_life_is_measured() -> None:
    replica = Replica(lag=1)
    request = GenerationRequest("r", [1], Decoding(max_tokens=8), "#!hang\nx", "de", 1)
    hanging = asyncio.create_task(replica.engine.generate(request))
    await sampled(replica, 'dragoman_load{stat="silent_s"} 1.0')
    hanging.cancel()


async def test_gpus_are_read_beside_the_loop_and_closed() -> None:
    replica, closed = Replica(), []
    gpus: Any = SimpleNamespace(
        open=lambda: True,
        read=lambda: [GpuStats("3", 0.5, 10, 20)],
        close=lambda: closed.append(1),
    )
    task = asyncio.create_task(replica.sampler.gpus_forever(gpus))
    await sampled(
        replica,
        'dragoman_gpu_busy_ratio{gpu="3"} 0.5',
        'dragoman_gpu_memory_used_bytes{gpu="3"} 10.0',
        'dragoman_load{stat="gpu_busy"} 0.5',
    )
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == [1]


async def test_without_a_gpu_the_gpu_task_returns() -> None:
    gpus: Any = SimpleNamespace(open=lambda: False, close=lambda: None)
    async with asyncio.timeout(5):
        await Replica().sampler.gpus_forever(gpus)


async def test_the_permits_follow_the_engine() -> None:
    limits = EngineLimits(64, 2048, 4096, 10_000)
    crowded = EngineStats(20, 57, 1.0, 0)
    engine: Any = SimpleNamespace(limits=limits, stats=lambda: crowded)
    admission = Admission(LimitsSettings(), limits)
    permits = Permits(items=admission.bounds.items, tokens=admission.bounds.tokens)
    task = asyncio.create_task(steering(admission, permits, engine))
    await eventually(lambda: permits.items < 70, timeout_s=30, what="fewer items")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
