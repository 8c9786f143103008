"""Decisions of a replay: which dead letters run again, as which record (docs/how-to/replay.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from dragoman_producer.operations.dead_letters import Headers, ReadDeadLetter
from dragoman_producer.operations.digests import DigestTable, digest_of
from dragoman_producer.operations.job_keys import JobKey
from dragoman_schemas import names
from dragoman_schemas.fingerprint import MAX_SAFE_INTEGER
from dragoman_schemas.jobs import DocumentId, Rfc3339
from dragoman_schemas.wire import UnreadableRecord, open_record

_SEEN: Final = 1
_TIME: Final[TypeAdapter[datetime]] = TypeAdapter(Rfc3339)
_DOCUMENT_ID: Final[TypeAdapter[str]] = TypeAdapter(DocumentId)


class Skip(StrEnum):
    """Reason why a dead letter is not replayed."""

    DUPLICATE = "duplicate"
    SAME_JOB = "same_job"
    COMPLETED = "completed"
    SUPERSEDED = "superseded"
    CONFLICT = "conflict"
    ID_TAKEN = "id_taken"
    UNREADABLE = "unreadable"
    HEADERS_ONLY = "headers_only"
    NO_ORIGIN = "no_origin"
    OTHER_TOPIC = "other_topic"
    TOO_LARGE = "too_large"
    NUMBER_USED_UP = "number_used_up"


SKIP_REASONS: Final = {
    Skip.DUPLICATE: "the dead letter of the same record was written twice",
    Skip.SAME_JOB: "another dead letter of the same job is replayed",
    Skip.COMPLETED: "the job is completed now",
    Skip.SUPERSEDED: "the job is no longer failed, or its id belongs to another payload now",
    Skip.CONFLICT: "its id belonged to another payload; name the job or place to replay it anyway",
    Skip.ID_TAKEN: "its id still belongs to another payload, so it would be a conflict again",
    Skip.UNREADABLE: "it has no readable job id, so its result would have no key",
    Skip.HEADERS_ONLY: "the record was too large for the dead letter, which has its headers only",
    Skip.NO_ORIGIN: "it does not name its original topic",
    Skip.OTHER_TOPIC: "its topic is not in kafka.topics; add it there to replay it",
    Skip.TOO_LARGE: "the broker does not allow a record of its size",
    Skip.NUMBER_USED_UP: (
        "its job's replay number is the largest possible one; submit the text under a new id"
    ),
}
NO_LOSS: Final = frozenset({Skip.DUPLICATE, Skip.SAME_JOB})
"""Reasons that leave no job out: the job is replayed or reported once."""


@dataclass(frozen=True, slots=True)
class ReplayCandidate:
    """A dead letter that may be replayed if its job's key allows it."""

    dead_letter: ReadDeadLetter
    topic: str
    job_id: str
    fingerprint: str
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """A record to publish: the original one as far as possible, and the number of the replay."""

    job_id: str
    topic: str
    key: bytes | None
    value: bytes
    headers: Headers
    number: int
    document_id: str | None = None
    """Document whose cancellation is removed."""


class ReplayPlanner:
    """Decides for each dead letter; finds duplicates by a temporary database.

    ``topics`` are those of the jobs: a dead letter's headers must not choose another.
    """

    def __init__(self, topics: Collection[str]) -> None:
        self._topics = topics
        self._places = DigestTable()
        self._jobs = DigestTable()

    def close(self) -> None:
        """Delete the temporary database."""
        self._places.close()
        self._jobs.close()

    def examine(self, dead_letter: ReadDeadLetter, *, named: bool) -> ReplayCandidate | Skip:
        """Decide by the dead letter alone. ``named``: it was requested by its id or place."""
        if self._is_seen(dead_letter):
            return Skip.DUPLICATE
        if dead_letter.is_headers_only:
            return Skip.HEADERS_ONLY
        try:
            envelope = open_record(dead_letter.value)
        except UnreadableRecord:
            return Skip.UNREADABLE
        if dead_letter.is_conflict and not named:
            return Skip.CONFLICT
        topic = dead_letter.header(names.HEADER_ORIGINAL_TOPIC)
        if topic is None or topic not in self._topics:
            return Skip.OTHER_TOPIC if topic else Skip.NO_ORIGIN
        document_id = document_of(envelope.fields)
        return ReplayCandidate(
            dead_letter, topic, envelope.job_id, envelope.fingerprint, document_id
        )

    def _is_seen(self, dead_letter: ReadDeadLetter) -> bool:
        origin = dead_letter.origin
        return origin is not None and bool(self._places.add(digest_of(origin), _SEEN))

    def decide(
        self, candidate: ReplayCandidate, key: JobKey | None, now: datetime
    ) -> Replay | Skip:
        """Decide by the job's key what to publish.

        Without a key the TTL of the job's result is over, and the job runs anew. The replay number
        is the key's plus one. So two commands that see the same failure request the same replay,
        and ``claim`` reopens the job for the first of the two records only.
        """
        if key is not None:
            if key.status == "completed":
                return Skip.COMPLETED
            if not key.belongs_to(candidate.fingerprint):
                return Skip.ID_TAKEN if candidate.dead_letter.is_conflict else Skip.SUPERSEDED
            if key.status != "failed":
                return Skip.SUPERSEDED
            if key.replays >= MAX_SAFE_INTEGER:
                return Skip.NUMBER_USED_UP
        if self._jobs.add(digest_of(candidate.job_id), _SEEN):
            return Skip.SAME_JOB
        return _replay(candidate, (key.replays if key else 0) + 1, now)


def _replay(candidate: ReplayCandidate, number: int, now: datetime) -> Replay:
    dead_letter = candidate.dead_letter
    kept = [pair for pair in dead_letter.original_headers if pair[0] != names.HEADER_REPLAY]
    return Replay(
        job_id=candidate.job_id,
        topic=candidate.topic,
        key=dead_letter.key,
        value=without_past_deadline(dead_letter.value or b"", now),
        headers=(*kept, (names.HEADER_REPLAY, str(number).encode())),
        number=number,
        document_id=candidate.document_id,
    )


def document_of(fields: Mapping[str, object]) -> str | None:
    """Return the id of the job's document; None without a valid one."""
    document = fields.get("document")
    found = document.get("document_id") if isinstance(document, dict) else None
    try:
        return _DOCUMENT_ID.validate_python(found)
    except ValidationError:
        return None


def without_past_deadline(value: bytes, now: datetime) -> bytes:
    """Return the bytes unchanged, unless the deadline has passed: then the job without it.

    The deadline is not part of the fingerprint, so the record still owns its job's key.
    """
    members: dict[str, Any] = json.loads(value)
    if not _is_past(members.get("deadline"), now):
        return value
    del members["deadline"]
    shortened = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    if open_record(shortened).fingerprint != open_record(value).fingerprint:
        raise AssertionError("a deadline is not part of the fingerprint")
    return shortened


def _is_past(deadline: object, now: datetime) -> bool:
    """Return whether the deadline has passed; an invalid one is left for the worker to reject."""
    try:
        return _TIME.validate_python(deadline) <= now
    except ValidationError:
        return False
