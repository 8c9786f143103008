"""Ports of Kafka: the source of deliveries, the dead letters and the results topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from dragoman_schemas.results import TranslationResult


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more jobs may be polled: in all, and per topic; None means of any topic."""

    jobs: int
    priorities: Mapping[str, int] | None = None


class Delivery(NamedTuple):
    """One record as Kafka delivered it, with the `generation` of its partition's assignment."""

    topic: str
    partition: int
    offset: int
    generation: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    unreadable: str | None = None
    """Why the record cannot be read; None for nearly every record."""

    @property
    def origin(self) -> str:
        """``topic/partition/offset``, which names the record: `place` in logs and scripts."""
        return f"{self.topic}/{self.partition}/{self.offset}"


class Consumer(Protocol):
    """The source of deliveries. At least once; within a generation no offset is delivered twice."""

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        """Return up to `capacity` deliveries, perhaps none, within about 0.25 s. Never cancel it.

        Must be called every few seconds even without capacity; then nothing is delivered.
        Raises Halt when the group or the log cannot be used without skipping a record.
        """
        ...

    def complete(self, delivery: Delivery) -> None:
        """Mark the delivery as settled. Idempotent; ignored and counted for an old generation."""
        ...

    def still_assigned(self, delivery: Delivery) -> bool:
        """Return whether the delivery's partition is still assigned in its generation."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be translated, and why (docs/explanation/internals.md)."""

    delivery: Delivery
    code: str
    message: str
    job_id: str | None = None
    """None if no id can be read."""
    attempts: int = 0
    deliveries: int = 0
    first_seen: str | None = None
    """RFC 3339; None means now."""


class DeadLetters(Protocol):
    """The topic of the records that could not be translated."""

    async def publish(self, dead_letter: DeadLetter) -> None:
        """Return once the broker has acknowledged it. Repeating is harmless. Raises Unavailable."""
        ...


class Results(Protocol):
    """The optional topic of every terminal result."""

    async def publish(self, result: TranslationResult) -> None:
        """Return once acknowledged; at least once. Raises Unavailable."""
        ...
