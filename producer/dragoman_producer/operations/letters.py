"""What does one dead letter say, and is it among those that are wanted? (contract, section 6)"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

from aiokafka import ConsumerRecord

from dragoman_connections.kafka_batches.unreadable import unmarked
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
"""What a dead letter adds to the headers of its record; other names in ``x-`` are the user's."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of the dead-letter topic: where it lies, when it came, and what it holds."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def header(self, name: str) -> str | None:
        """A header's text, the last of that name; None without one."""
        values = [value for found, value in self.headers if found == name]
        return values[-1].decode(errors="replace") if values and values[-1] is not None else None

    @property
    def job_id(self) -> str | None:
        """The job's id; None where the record has no readable one."""
        return self.header(names.HEADER_JOB_ID)

    @property
    def code(self) -> str:
        """Why it is here: an error code of contract section 4, or one that is newer than us."""
        return self.header(names.HEADER_ERROR_CODE) or "unknown"

    @property
    def is_conflict(self) -> bool:
        """Its id belonged to another payload: its own job never was."""
        return self.code == FailureCode.CONFLICT

    @property
    def is_headers_only(self) -> bool:
        """The record was too large to be kept here."""
        return self.header(names.HEADER_ORIGINAL_SHA256) is not None

    @property
    def origin(self) -> str | None:
        """``topic/partition/offset`` of the record; None where it never had a place."""
        place = [
            self.header(names.HEADER_ORIGINAL_TOPIC),
            self.header(names.HEADER_ORIGINAL_PARTITION),
            self.header(names.HEADER_ORIGINAL_OFFSET),
        ]
        return None if None in place else "/".join(part or "" for part in place)

    @property
    def original_headers(self) -> Headers:
        """The headers of the record, without those of the dead letter."""
        return tuple(pair for pair in self.headers if pair[0] not in ADDED_HEADERS)


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which letters are wanted. Names are job ids or ``topic/partition/offset``; empty is all."""

    codes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None

    def wants(self, letter: DeadLetter) -> bool:
        """Whether the letter is meant. Times are those at which the letters were written."""
        if self.since_ms is not None and letter.timestamp_ms < self.since_ms:
            return False
        if self.until_ms is not None and letter.timestamp_ms >= self.until_ms:
            return False
        if self.codes and letter.code not in self.codes:
            return False
        return not self.names or self.name_of(letter) is not None

    def name_of(self, letter: DeadLetter) -> str | None:
        """The name under which the letter was asked for; None if it was not asked for by name."""
        for name in (letter.job_id, letter.origin):
            if name is not None and name in self.names:
                return name
        return None


Progress = Callable[[str, int, int], None]
"""Told after each batch: what is read, records so far, and how many there are."""


def no_progress(what: str, done: int, total: int) -> None:
    """For callers that do not watch."""


async def stream_letters(
    settings: DragomanSettings, wanted: LetterFilter, progress: Progress = no_progress
) -> AsyncGenerator[DeadLetter, None]:
    """The wanted letters that are there now, a partition's in order, a batch in memory at a time.

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
                letter = letter_of(record)
                if wanted.wants(letter):
                    yield letter
            done += len(records)
            progress("dead letters", done, total)


def letter_of(record: ConsumerRecord) -> DeadLetter:
    """The dead letter that a record of the topic is, as far as it can be read."""
    headers, _ = unmarked(tuple(record.headers))
    return DeadLetter(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=headers,
    )
