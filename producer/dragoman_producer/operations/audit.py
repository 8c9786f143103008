"""Audit: read topics, Redis and dead letters once, and account for every record.

The order makes the audit of a running system safe: the committed offsets are read first, then the
dead letters, then records and keys. So every record that was settled at the start has its key and
its dead letter later. A record that seems lost is checked again against newer data.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from aiokafka import ConsumerRecord

from dragoman_connections.kafka_batches.records import unmarked
from dragoman_connections.settings import DragomanSettings
from dragoman_producer.operations.accounting import (
    AuditedRecord,
    Broken,
    DeadLetterIndex,
    Doubt,
    Ledger,
)
from dragoman_producer.operations.dead_letters import dead_letter_of
from dragoman_producer.operations.job_keys import JobKeys
from dragoman_producer.operations.reading import (
    RecordSpan,
    TopicReader,
    count_of,
    spans_of,
    topic_reader,
)
from dragoman_producer.operations.topics import PartitionState, missing_topics, show_topics
from dragoman_producer.operations.workers import LiveWorker, live_workers
from dragoman_schemas.jobs import DEFAULT_TTL_S
from dragoman_schemas.wire import Envelope, UnreadableRecord, open_record, replay_of

Meter = Callable[[str, int, int], None]

_TTL_RANGE: Final = range(60, 2_592_001)
_DOUBTS_PER_READ: Final = 1000
_DEAD_LETTERS: Final = "dead letters"
_RECORDS: Final = "records"


@dataclass(frozen=True, slots=True)
class Unread:
    """Records that Kafka deleted before the group settled them."""

    topic: str
    partition: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Totals of an audit; broken records were reported one by one before."""

    records: int
    counts: dict[str, int]
    dead_letters: int
    dead_letters_aged_out: int
    broken: int
    missing_topics: tuple[str, ...]
    deleted_unread: tuple[Unread, ...]
    seconds: float
    workers: tuple[LiveWorker, ...] = ()
    """Those that announce themselves now: a hint."""

    @property
    def balances(self) -> bool:
        """Whether no topic is missing, no record is broken, and none was deleted unread."""
        return not (self.broken or self.deleted_unread or self.missing_topics)


async def audit(
    settings: DragomanSettings, broken: Callable[[Broken], None], meter: Meter
) -> AuditReport:
    """Account for all current records; call ``broken`` with each one that breaks the promise.

    Raises BrokerUnreachable, BrokerRefused, StoreUnreachable and StoreRefused.
    """
    started = time.monotonic()
    states = await show_topics(settings)
    now_ms = time.time_ns() // 1_000_000
    with (
        closing(DeadLetterIndex()) as dead_letters,
        closing(Ledger(dead_letters, now_ms=now_ms, broken=broken)) as ledger,
    ):
        async with topic_reader(settings) as reader:
            audited = _Audit(settings, reader, dead_letters, ledger, meter)
            try:
                await audited.run(states)
            finally:
                await audited.close()
        counts = {account.value: count for account, count in ledger.counts.items()}
        return AuditReport(
            records=ledger.records,
            counts=counts,
            dead_letters=dead_letters.count,
            dead_letters_aged_out=ledger.dead_letters_aged_out,
            broken=ledger.broken,
            missing_topics=tuple(_missing(settings, states)),
            deleted_unread=tuple(_deleted_unread(states, settings.kafka.topic_names)),
            seconds=time.monotonic() - started,
            workers=tuple(await live_workers(settings)),
        )


class _Audit:
    """Connections of one audit, and the order of its steps."""

    def __init__(
        self,
        settings: DragomanSettings,
        reader: TopicReader,
        dead_letters: DeadLetterIndex,
        ledger: Ledger,
        meter: Meter,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._dead_letters = dead_letters
        self._ledger = ledger
        self._meter = meter
        self._keys = JobKeys(settings)

    async def close(self) -> None:
        await self._keys.close()

    async def run(self, states: Sequence[PartitionState]) -> None:
        jobs, dead = self._settings.kafka.topic_names, self._settings.kafka.dead_letter_topic
        await self._read_all_dead_letters(spans_of(states, dead))
        await self._account(spans_of(states, *jobs), _committed(states))
        if not self._ledger.doubtful:
            return
        newer = await show_topics(self._settings)
        await self._read_dead_letters(_after(states, spans_of(newer, dead)))
        await self._note_newer(_after(states, spans_of(newer, *jobs)))
        for doubts in _batches(self._ledger.doubts()):
            keys = await self._keys.read([doubt.record.job_id or "" for doubt in doubts])
            for doubt, key in zip(doubts, keys, strict=True):
                self._ledger.settle(doubt, key)

    async def _read_all_dead_letters(self, spans: Sequence[RecordSpan]) -> None:
        """Read all dead letters, and find the time since when none has been deleted."""
        firsts = await self._read_dead_letters(spans)
        trimmed = {span.partition for span in spans if span.first}
        if trimmed:
            now_ms = time.time_ns() // 1_000_000
            since_ms = max(firsts.get(partition, now_ms) for partition in trimmed)
            self._dead_letters.complete_since_ms = since_ms

    async def _read_dead_letters(self, spans: Sequence[RecordSpan]) -> dict[int, int]:
        """Note all dead letters; return the time of the first one per partition."""
        firsts: dict[int, int] = {}
        done, total = 0, count_of(spans)
        async for records in self._reader.read(spans):
            for record in records:
                dead_letter = dead_letter_of(record)
                self._dead_letters.add(
                    dead_letter.origin, dead_letter.job_id, conflict=dead_letter.is_conflict
                )
            done += len(records)
            firsts.setdefault(records[0].partition, records[0].timestamp)
            self._meter(_DEAD_LETTERS, done, total)
        return firsts

    async def _account(
        self, spans: Sequence[RecordSpan], committed: dict[tuple[str, int], int]
    ) -> None:
        done, total = 0, count_of(spans)
        async for batch in self._reader.read(spans):
            settled_before = committed.get((batch[0].topic, batch[0].partition), 0)
            records = [_audited(record, settled_before) for record in batch]
            readable = [record.job_id for record in records if record.job_id is not None]
            keys = iter(await self._keys.read(readable))
            for record in records:
                self._ledger.account(record, None if record.job_id is None else next(keys))
            done += len(batch)
            self._meter(_RECORDS, done, total)

    async def _note_newer(self, spans: Sequence[RecordSpan]) -> None:
        async for batch in self._reader.read(spans):
            for record in batch:
                audited = _audited(record, 0)
                if audited.job_id is not None:
                    self._ledger.note_newer(audited.job_id, audited.fingerprint)


def _missing(settings: DragomanSettings, states: Sequence[PartitionState]) -> list[str]:
    """Return the missing topics, except the results topic, which is not read."""
    names = missing_topics(settings, states)
    return [name for name in names if name != settings.kafka.results_topic]


def _audited(record: ConsumerRecord, settled_before: int) -> AuditedRecord:
    place = f"{record.topic}/{record.partition}/{record.offset}"
    settled = record.offset < settled_before
    headers, unreadable = unmarked(tuple(record.headers))
    envelope = None if unreadable else _envelope(record.value)  # as in the worker
    if envelope is None:
        return AuditedRecord(place, record.timestamp, settled)
    return AuditedRecord(
        place=place,
        timestamp_ms=record.timestamp,
        settled=settled,
        job_id=envelope.job_id,
        fingerprint=envelope.fingerprint,
        replay=replay_of(headers),
        ttl_s=_ttl_s(envelope.fields.get("ttl_s")),
    )


def _envelope(value: bytes | None) -> Envelope | None:
    try:
        return open_record(value)
    except UnreadableRecord:
        return None


def _ttl_s(given: object) -> int:
    valid = isinstance(given, int) and not isinstance(given, bool) and given in _TTL_RANGE
    return given if valid and isinstance(given, int) else DEFAULT_TTL_S


def _committed(states: Sequence[PartitionState]) -> dict[tuple[str, int], int]:
    return {(state.topic, state.partition): state.committed or 0 for state in states}


def _after(states: Sequence[PartitionState], spans: Sequence[RecordSpan]) -> list[RecordSpan]:
    """Return the parts of the spans that are newer than the states."""
    read = {(state.topic, state.partition): state.next_offset for state in states}
    return [
        RecordSpan(
            span.topic,
            span.partition,
            max(span.first, read.get((span.topic, span.partition), 0)),
            span.end,
        )
        for span in spans
    ]


def _deleted_unread(states: Sequence[PartitionState], topics: Sequence[str]) -> Iterator[Unread]:
    for state in states:
        committed = state.committed
        if state.topic in topics and committed is not None and committed < state.first_offset:
            count = state.first_offset - committed
            yield Unread(state.topic, state.partition, committed, count)


def _batches(doubts: Iterator[Doubt]) -> Iterator[list[Doubt]]:
    while batch := list(itertools.islice(doubts, _DOUBTS_PER_READ)):
        yield batch
