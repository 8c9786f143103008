"""The three outcomes of a delivery: frozen values. A released one is not settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dragoman_schemas.results import TranslationResult
from dragoman_worker.errors import JobError
from dragoman_worker.ports import Claim


class Completed(NamedTuple):
    """A terminal state that needs no dead letter.

    With `claim`, the state is still to be written. Without, it is in the store already (`done`)
    and only what follows a finish is repeated.
    """

    result: TranslationResult
    claim: Claim | None
    ttl_s: int
    """The job's own TTL."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A failure: the dead letter first, then the terminal state if the job owns its key.

    `result` and `claim` are None where no id can be read or the id belongs to another payload.
    """

    failure: JobError
    result: TranslationResult | None = None
    claim: Claim | None = None
    job_id: str | None = None
    attempts: int = 0
    deliveries: int = 0
    first_seen: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """Not done by this worker: nothing is written or completed, and Kafka redelivers the record."""

    reason: str


Outcome = Completed | Rejected | Released
