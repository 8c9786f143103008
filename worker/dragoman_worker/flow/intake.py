"""Capacity for further jobs, by priority class: what the next poll may fetch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman_worker.ports import Capacity, EngineLimits
from dragoman_worker.settings import WorkerSettings

_WORTH_A_POLL: Final = 8
"""Do not poll for less than 1/8 of a class's reserved capacity: a small poll costs as much."""


class _Bound:
    """A bounded quantity: one half is reserved for the classes by weight, the other is shared."""

    def __init__(self, limit: int, weights: Mapping[str, int]) -> None:
        total = sum(weights.values())
        single = len(weights) == 1
        self.reserved = {
            priority: limit if single else max(1, limit * weight // (2 * total))
            for priority, weight in weights.items()
        }
        self._shared = limit - sum(self.reserved.values())
        self.held = dict.fromkeys(weights, 0)

    def capacity(self) -> dict[str, int]:
        """Return how much more each class may hold, if no other class adds any."""
        own = {priority: self.reserved[priority] - held for priority, held in self.held.items()}
        shared = max(0, self._shared + sum(min(0, left) for left in own.values()))
        return {priority: max(0, left) + shared for priority, left in own.items()}


class Intake:
    """Jobs in flight and their bytes, counted by priority class.

    Half of both bounds is reserved. A class that was idle therefore finds capacity whatever the
    backlog of another class, and enough of it to fill its share of the engine.
    """

    def __init__(self, weights: Mapping[str, int] | None = None, *, jobs: int, size: int) -> None:
        """Bound the jobs in flight by `jobs`, and accept none once they have `size` bytes.

        A single class may use both bounds whole.
        """
        self._weights = dict(weights) if weights and len(weights) > 1 else {"": 1}
        self._single = len(self._weights) == 1
        self._jobs = _Bound(jobs, self._weights)
        self._bytes = _Bound(size, self._weights)

    def enter(self, priority: str, size: int) -> None:
        """Count a polled job of `size` bytes."""
        priority = "" if self._single else priority
        self._jobs.held[priority] += 1
        self._bytes.held[priority] += size

    def leave(self, priority: str, size: int) -> None:
        """Remove a job of `size` bytes from the count."""
        priority = "" if self._single else priority
        self._jobs.held[priority] -= 1
        self._bytes.held[priority] -= size

    def held(self) -> Mapping[str, int]:
        """Return the jobs in flight by class; a single class has the empty name."""
        return self._jobs.held

    def capacity(self) -> Capacity:
        """Return how many further jobs may be polled now."""
        bytes_left, reserved = self._bytes.capacity(), self._jobs.reserved
        priorities = {
            priority: left
            if bytes_left[priority] > 0 and self._worth_a_poll(left, reserved[priority])
            else 0
            for priority, left in self._jobs.capacity().items()
        }
        if self._single:
            return Capacity(priorities[""])
        return Capacity(self._total(priorities), priorities)

    def _worth_a_poll(self, left: int, reserved: int) -> bool:
        return left > reserved // (_WORTH_A_POLL * (2 if self._single else 1))

    def _total(self, priorities: Mapping[str, int]) -> int:
        """Return the capacity of all classes together; the shared half is counted once."""
        held, reserved = self._jobs.held, self._jobs.reserved
        own = {
            priority: max(0, reserved[priority] - held[priority])
            for priority, left in priorities.items()
            if left
        }
        shared = max((priorities[priority] - left for priority, left in own.items()), default=0)
        return shared + sum(own.values())


def open_intake(settings: WorkerSettings, engine: EngineLimits) -> Intake:
    """Return the bounds of a replica, by default so many jobs that the engine never waits.

    Kafka is polled while the next deliveries decode.
    """
    limits = settings.limits
    jobs = limits.max_in_flight_jobs or max(
        64, round(3 * limits.engine_oversubscription * engine.max_num_seqs)
    )
    return Intake(settings.kafka.topic_weights, jobs=jobs, size=limits.max_in_flight_bytes)
