"""Port of Redis: the keys of the jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dragoman_schemas.scripts import ClaimAnswer, Quarantine

if TYPE_CHECKING:
    from dragoman_schemas.results import TranslationResult


class Claim(NamedTuple):
    """An outstanding claim: a fresh nonce, the replay it runs, the TTL of the result in seconds.

    It does not expire and excludes no other worker: poison detection counts the ones left behind.
    """

    job_id: str
    fingerprint: str
    nonce: str
    replay: int = 0
    ttl_s: int = 86_400


class ClaimRequest(NamedTuple):
    """A claim to make, and what the `claim` script needs beside it (docs/reference/scripts.md)."""

    claim: Claim
    origin: str
    """Of the record: ``topic/partition/offset``."""
    queued_at: str
    """The record's timestamp, RFC 3339."""
    document_id: str | None = None
    quarantine: Quarantine = Quarantine.NONE


@dataclass(frozen=True, slots=True)
class CancelNotice:
    """A request to cancel a job or a document: exactly one of the two ids is set."""

    job_id: str | None = None
    document_id: str | None = None


class Store(Protocol):
    """The jobs' keys. Every method is idempotent and raises Unavailable if Redis cannot answer."""

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        """Claim the job, or return why not. Raises Conflict if the key is not a job."""
        ...

    async def release(self, claim: Claim) -> None:
        """Remove the claim; the job is `queued` again when no other claim is left."""
        ...

    async def finish(self, claim: Claim, result: TranslationResult) -> TranslationResult | None:
        """Write the terminal state and return the result that stands, as durable as configured.

        Returns `result` itself if it was written, another result if the job was terminal already,
        and None if a later replay runs. All three settle the job. Raises Conflict if the key
        belongs to another payload by now, or is not a job, and Unencodable before anything is
        written.
        """
        ...

    async def confirm(self, job_id: str) -> bool:
        """Return whether the stored state is terminal, once it is as durable as configured.

        It may have been lost since a claim found it, by a fail-over to a server that did not have
        it. Without durability nothing is looked up. Raises Conflict if the key is not a job.
        """
        ...

    async def announce(self, result: TranslationResult, ttl_s: int) -> None:
        """Write the hints that follow a finish, or repeat them: the document's progress and event.

        `ttl_s` is the job's own TTL, for which its document's progress is kept too.
        """
        ...

    def cancels(self) -> AsyncIterator[CancelNotice]:
        """Yield cancellations, through outages, until the iteration is cancelled.

        None that follows a claim is left out; earlier ones may be among them.
        """
        ...
