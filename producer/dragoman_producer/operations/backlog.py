"""What the workers have left: jobs that wait, how fast these are settled, and when they will be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from typing import Any

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.operations.topics import PartitionState, show_topics
from dragoman_producer.operations.workers import live_workers


@dataclass(frozen=True, slots=True)
class Backlog:
    """The lag of all topics of jobs. `is_measured`: the rate was, and is not what workers say."""

    lag: int
    jobs_per_s: float | None
    is_measured: bool = False

    @property
    def eta_s(self) -> float | None:
        """Seconds until nothing is left; None if the rate is not known."""
        return self.lag / self.jobs_per_s if self.jobs_per_s else None

    def fields(self) -> dict[str, Any]:
        """Return it as JSON."""
        eta, rate = self.eta_s, self.jobs_per_s
        return {
            "lag": self.lag,
            "jobs_per_s": None if rate is None else round(rate, 3),
            "eta_s": None if eta is None else round(eta, 1),
        }


async def announced(settings: DragomanSettings, found: Iterable[PartitionState]) -> Backlog:
    """Return the backlog at the rate that live workers announce."""
    rate = sum(each.jobs_per_s for each in await live_workers(settings))
    return Backlog(sum(each.lag for each in _of_jobs(settings, found)), rate or None)


async def watched(settings: DragomanSettings, every_s: float) -> AsyncGenerator[Backlog]:
    """Yield the backlog again and again, at the rate since the last time.

    Raises BrokerUnreachable and BrokerRefused.
    """
    before: tuple[float, int] | None = None
    while True:
        states = list(_of_jobs(settings, await show_topics(settings)))
        now, settled = time.monotonic(), sum(each.next_offset - each.lag for each in states)
        rate = None
        if before is not None:
            rate = max(0, settled - before[1]) / (now - before[0])
        before = now, settled
        yield Backlog(sum(each.lag for each in states), rate, is_measured=rate is not None)
        await asyncio.sleep(every_s)


def _of_jobs(
    settings: DragomanSettings, found: Iterable[PartitionState]
) -> Iterable[PartitionState]:
    return (each for each in found if each.topic in settings.kafka.topic_names)
