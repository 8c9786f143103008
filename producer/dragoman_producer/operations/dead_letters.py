"""Dead letters: their fields, filters and a stream of them (docs/explanation/internals.md)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

from aiokafka import ConsumerRecord

from dragoman_connections.kafka_batches.records import unmarked
from dragoman_connections.settings import DragomanSettings
from dragoman_producer.operations.reading import count_of, spans_of, topic_reader
from dragoman_producer.operations.topics import topic_states
from dragoman_schemas import names
from dragoman_schemas.failures import FailureCode

Headers = tuple[tuple[str, bytes | None], ...]

ADDED_HEADERS: Final = frozenset(
    {
        names.HEADER_ORIGINAL_TOPIC,
        names.HEADER_ORIGINAL_PARTITION,
        names.HEADER_ORIGINAL_OFFSET,
        names.HEADER_ORIGINAL_TIMESTAMP,
        names.HEADER_CONSUMER_GROUP,
        names.HEADER_JOB_ID,
        names.HEADER_ERROR_CODE,
        names.HEADER_ERROR_MESSAGE,
        names.HEADER_ATTEMPTS,
        names.HEADER_DELIVERIES,
        names.HEADER_FIRST_SEEN,
        names.HEADER_WORKER,
        names.HEADER_ORIGINAL_SHA256,
        names.HEADER_ORIGINAL_SIZE,
    }
)
"""Headers that a dead letter adds to its record; other ``x-`` names are the user's."""


@dataclass(frozen=True, slots=True)
class ReadDeadLetter:
    """A record of the dead-letter topic: its place, its time and its content."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def header(self, name: str) -> str | None:
        """Return the text of the last header of that name; None without one."""
        values = [value for found, value in self.headers if found == name]
        return values[-1].decode(errors="replace") if values and values[-1] is not None else None

    @property
    def job_id(self) -> str | None:
        """Id of the job; None if the record has no readable id."""
        return self.header(names.HEADER_JOB_ID)

    @property
    def code(self) -> str:
        """Error code of contract section 4, or a code of a newer version."""
        return self.header(names.HEADER_ERROR_CODE) or "unknown"

    @property
    def is_conflict(self) -> bool:
        """Whether the record's id belonged to another payload, so that it never became a job."""
        return self.code == FailureCode.CONFLICT

    @property
    def is_headers_only(self) -> bool:
        """Whether the record was too large for the dead letter, which has headers only."""
        return self.header(names.HEADER_ORIGINAL_SHA256) is not None

    @property
    def origin(self) -> str | None:
        """Place of the record, ``topic/partition/offset``; None if it was never published."""
        place = [
            self.header(names.HEADER_ORIGINAL_TOPIC),
            self.header(names.HEADER_ORIGINAL_PARTITION),
            self.header(names.HEADER_ORIGINAL_OFFSET),
        ]
        return None if None in place else "/".join(part or "" for part in place)

    @property
    def original_headers(self) -> Headers:
        """Headers of the record, without those that the dead letter adds."""
        return tuple(pair for pair in self.headers if pair[0] not in ADDED_HEADERS)


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Selection of dead letters. Names are job ids or ``topic/partition/offset``; empty is all."""

    codes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None

    def wants(self, dead_letter: ReadDeadLetter) -> bool:
        """Return whether the dead letter is selected. Times are those of the dead letters."""
        if self.since_ms is not None and dead_letter.timestamp_ms < self.since_ms:
            return False
        if self.until_ms is not None and dead_letter.timestamp_ms >= self.until_ms:
            return False
        if self.codes and dead_letter.code not in self.codes:
            return False
        return not self.names or self.name_of(dead_letter) is not None

    def name_of(self, dead_letter: ReadDeadLetter) -> str | None:
        """Return the name that selects the dead letter; None if no name does."""
        for name in (dead_letter.job_id, dead_letter.origin):
            if name is not None and name in self.names:
                return name
        return None


Progress = Callable[[str, int, int], None]
"""Function called after each batch: what is read, records so far, records in total."""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


async def stream_dead_letters(
    settings: DragomanSettings, wanted: DeadLetterFilter, progress: Progress = no_progress
) -> AsyncGenerator[ReadDeadLetter, None]:
    """Yield the selected dead letters, in order per partition, with one batch in memory.

    Raises BrokerUnreachable and BrokerRefused.
    """
    topic = settings.kafka.dead_letter_topic
    spans = spans_of(await topic_states(settings, topic), topic)
    async with topic_reader(settings) as reader:
        if wanted.since_ms is not None:
            spans = await reader.since(spans, wanted.since_ms)
        done, total = 0, count_of(spans)
        async for records in reader.read(spans):
            for record in records:
                dead_letter = dead_letter_of(record)
                if wanted.wants(dead_letter):
                    yield dead_letter
            done += len(records)
            progress("dead letters", done, total)


def dead_letter_of(record: ConsumerRecord) -> ReadDeadLetter:
    """Return the dead letter of a record, as far as the record is readable."""
    headers, _ = unmarked(tuple(record.headers))
    return ReadDeadLetter(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=headers,
    )
