"""Which dead letters can be run again, and what record does that? (contract, section 3, Replay)"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from dragoman_producer.operations.digests import DigestTable, digest_of
from dragoman_producer.operations.job_keys import JobKey
from dragoman_producer.operations.letters import DeadLetter, Headers
from dragoman_schemas import names
from dragoman_schemas.fingerprint import MAX_SAFE_INTEGER
from dragoman_schemas.jobs import DocumentId, Rfc3339
from dragoman_schemas.wire import UnreadableRecord, open_record

_SEEN: Final = 1
_TIME: Final[TypeAdapter[datetime]] = TypeAdapter(Rfc3339)
_DOCUMENT_ID: Final[TypeAdapter[str]] = TypeAdapter(DocumentId)


class Skip(StrEnum):
    """Why a letter is not replayed."""

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


SAID_OF_SKIP: Final = {
    Skip.DUPLICATE: "the same record's letter was written twice",
    Skip.SAME_JOB: "another letter of the same job is replayed",
    Skip.COMPLETED: "the job is completed by now",
    Skip.SUPERSEDED: "the job is no longer failed: it runs, waits, or ended otherwise",
    Skip.CONFLICT: "its id belonged to another payload; name it to replay it all the same",
    Skip.ID_TAKEN: "its id still belongs to another payload, which would refuse it again",
    Skip.UNREADABLE: "it has no readable job id, so no worker could ever name its end",
    Skip.HEADERS_ONLY: "the record was too large to be kept: only its headers are here",
    Skip.NO_ORIGIN: "it does not say which topic it came from",
    Skip.OTHER_TOPIC: "its topic is not in kafka.topics; name it there to replay it",
    Skip.TOO_LARGE: "the broker takes no record of its size",
    Skip.NUMBER_USED_UP: (
        "its job's replay number is the largest there is; submit the text under a new id"
    ),
}
NO_LOSS: Final = frozenset({Skip.DUPLICATE, Skip.SAME_JOB})
"""Skips after which nothing is left out: the job itself is replayed, or told of, once."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A letter that may be replayed, if its job's key allows it."""

    letter: DeadLetter
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
    """Document whose cancellation no longer holds."""


class ReplayPlanner:
    """Decides letter by letter; remembers what it has seen in some 50 bytes a letter.

    ``topics`` are those of the jobs: a letter's headers must not choose another one to write to.
    """

    def __init__(self, topics: Collection[str]) -> None:
        self._topics = topics
        self._places = DigestTable()
        self._jobs = DigestTable()

    def examine(self, letter: DeadLetter, *, named: bool) -> Candidate | Skip:
        """What the letter alone says. ``named``: it was asked for by its id or place."""
        if self._is_seen(letter):
            return Skip.DUPLICATE
        if letter.is_headers_only:
            return Skip.HEADERS_ONLY
        try:
            envelope = open_record(letter.value)
        except UnreadableRecord:
            return Skip.UNREADABLE
        if letter.is_conflict and not named:
            return Skip.CONFLICT
        topic = letter.header(names.HEADER_ORIGINAL_TOPIC)
        if topic is None or topic not in self._topics:
            return Skip.OTHER_TOPIC if topic else Skip.NO_ORIGIN
        document_id = document_of(envelope.fields)
        return Candidate(letter, topic, envelope.job_id, envelope.fingerprint, document_id)

    def _is_seen(self, letter: DeadLetter) -> bool:
        origin = letter.origin
        return origin is not None and bool(self._places.add(digest_of(origin), _SEEN))

    def decide(self, candidate: Candidate, key: JobKey | None, now: datetime) -> Replay | Skip:
        """What to publish, by the job's key. Without one the result's TTL is over: it runs anew.

        The number is one above the key's, so that two commands that see the same failure ask for
        the same replay, and ``claim`` reopens the job for the first of the two records alone.
        """
        if key is not None:
            if key.status == "completed":
                return Skip.COMPLETED
            if not key.belongs_to(candidate.fingerprint):
                return Skip.ID_TAKEN if candidate.letter.is_conflict else Skip.SUPERSEDED
            if key.status != "failed":
                return Skip.SUPERSEDED
            if key.replays >= MAX_SAFE_INTEGER:
                return Skip.NUMBER_USED_UP
        if self._jobs.add(digest_of(candidate.job_id), _SEEN):
            return Skip.SAME_JOB
        return _replay(candidate, (key.replays if key else 0) + 1, now)


def _replay(candidate: Candidate, number: int, now: datetime) -> Replay:
    letter = candidate.letter
    kept = [pair for pair in letter.original_headers if pair[0] != names.HEADER_REPLAY]
    return Replay(
        job_id=candidate.job_id,
        topic=candidate.topic,
        key=letter.key,
        value=without_past_deadline(letter.value or b"", now),
        headers=(*kept, (names.HEADER_REPLAY, str(number).encode())),
        number=number,
        document_id=candidate.document_id,
    )


def document_of(fields: Mapping[str, object]) -> str | None:
    """Id of the job's document; None without a valid one."""
    document = fields.get("document")
    found = document.get("document_id") if isinstance(document, dict) else None
    try:
        return _DOCUMENT_ID.validate_python(found)
    except ValidationError:
        return None


def without_past_deadline(value: bytes, now: datetime) -> bytes:
    """The very bytes, unless their deadline has passed: then the same job without one.

    The deadline is no part of the fingerprint, so the record still owns its job's key.
    """
    members: dict[str, Any] = json.loads(value)
    if not _is_past(members.get("deadline"), now):
        return value
    del members["deadline"]
    shortened = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    if open_record(shortened).fingerprint != open_record(value).fingerprint:
        raise AssertionError("a deadline is no part of the fingerprint")
    return shortened


def _is_past(deadline: object, now: datetime) -> bool:
    """Whether it is a time that has passed; what is no time is left to the worker to refuse."""
    try:
        return _TIME.validate_python(deadline) <= now
    except ValidationError:
        return False
