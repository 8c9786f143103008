"""What does a replica read off itself every second? The gauges that no event sets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from dragoman_worker.bottleneck import Load, bottleneck
from dragoman_worker.in_hand import InHand
from dragoman_worker.kafka.source import KafkaSource
from dragoman_worker.metrics import Metrics, Pace
from dragoman_worker.permits import Permits
from dragoman_worker.ports import Engine

READ_EVERY_S: Final = 1.0


class Reading:
    """Sets the gauges of one replica."""

    def __init__(
        self,
        metrics: Metrics,
        source: KafkaSource,
        permits: Permits,
        in_hand: InHand,
        engine: Engine,
    ) -> None:
        self._metrics = metrics
        self._source = source
        self._permits = permits
        self._in_hand = in_hand
        self._engine = engine

    async def forever(self, ready: Callable[[], Mapping[str, bool]]) -> None:
        """Read once a second."""
        metrics, pace, preempted = self._metrics, Pace(), 0
        source, permits, engine = self._source, self._permits, self._engine
        while True:
            due = time.monotonic() + READ_EVERY_S
            await asyncio.sleep(READ_EVERY_S)
            metrics.event_loop_lag_seconds.set(max(0.0, time.monotonic() - due))
            metrics.event_loop_tasks.set(len(asyncio.all_tasks()))
            metrics.jobs_in_flight.set(len(self._in_hand))
            metrics.items_in_flight.set(permits.held_items)
            metrics.items_waiting.set(permits.waiting)
            metrics.commit_age_seconds.set(source.commit_age_s())
            metrics.ready.set(all(ready().values()))
            depth, readings = source.lag(), engine.readings()
            metrics.queue_depth_jobs.set(depth)
            metrics.queue_depth_seconds.set(pace.seconds_for(depth, metrics.jobs_done()))
            load = Load(
                queue_depth=depth,
                items_in_engine=permits.held_items,
                items_allowed=permits.items,
                max_num_seqs=engine.limits.max_num_seqs,
                engine=readings,
                preempted=readings.preemptions - preempted,
            )
            preempted = readings.preemptions
            metrics.limited_by(bottleneck(load))
