"""Repair of fetched message sets for aiokafka's parser: see docs/adr/0016.

Compressed batches are expanded within a bound and split into pieces. An unreadable batch is
replaced by one with its offsets and the reason, so that none is skipped or fetched for ever.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords

from dragoman_connections.kafka_batches.batches import (
    CODEC_BITS,
    CONTROL,
    HEADER,
    BatchHeader,
    Malformed,
    header,
    spans,
)
from dragoman_connections.kafka_batches.expansion import CODECS, Expander, NotExpanded
from dragoman_connections.kafka_batches.records import (
    MAX_HEADERS,
    Record,
    has_too_many_headers,
    offset_of,
    placeholder,
    read_record,
    starts,
)

OnDefect = Callable[[int, Exception], None]
"""Reports a defect of this program at the batch of that first offset; must not log its bytes."""
MAX_EXPANDED: Final = 64 * 1024 * 1024
MAX_RECORDS: Final = 1 << 20
"""No job fits into 64 bytes, so a batch of 64 MiB with more records holds not only jobs."""
MAX_PLACES: Final = 10_000
"""An unreadable batch with more offsets is one dead letter: a small batch may claim billions."""
PIECE: Final = 1 << 20
PARSED_AT_ONCE: Final = 1 << 16
"""Above this many bytes, headers are counted before aiokafka's parser makes objects of them."""


def is_sound(message_set: bytes) -> bool:
    """Return whether aiokafka can read all of it: nothing compressed, malformed or damaged.

    aiokafka's own C code parses it, which costs one or two microseconds per record.
    """
    try:
        if _needs_care(memoryview(message_set)):
            return False
        records: Any = MemoryRecords(message_set)
        while records.has_next():
            if not _is_sound(records.next_batch()):
                return False
    except Exception:  # noqa: BLE001  the repair determines the cause
        return False
    return True


def _needs_care(message_set: memoryview) -> bool:
    """Return whether aiokafka's parser would fail, or make too many objects."""
    for start, end in spans(message_set):
        *_, magic, _, attributes, _, _, _, _, _, _, count = HEADER.unpack_from(message_set, start)
        if magic != 2:
            continue
        if attributes & CONTROL and not count:
            return True
        large = end - start > PARSED_AT_ONCE
        records = message_set[start + HEADER.size : end]
        if large and (attributes & CODEC_BITS or has_too_many_headers(records)):
            return True
    return False


def _is_sound(batch: Any) -> bool:
    if type(batch) is not DefaultRecordBatch:  # of an older format
        return True
    if batch.compression_type or not batch.validate_crc():
        return False
    if batch.is_control_batch:
        return True
    first, last = batch.base_offset, batch.next_offset - 1
    offsets: list[int] = []
    for record in batch:
        if len(record.headers) > MAX_HEADERS:
            return False
        offsets.append(record.offset)
    return _are_in_place(offsets, first, last)


def _are_in_place(offsets: list[int], first: int, last: int) -> bool:
    if len(offsets) == 1 and first == offsets[0] == last:
        return True
    if len(offsets) == last - first + 1:
        return offsets == list(range(first, last + 1))
    # Compaction leaves gaps, and so do split batches.
    ordered = [first - 1, *offsets, last + 1]
    return all(one < other for one, other in itertools.pairwise(ordered))


class Repair:
    """Repairs the message sets of one fetch response until they have yielded `budget` bytes.

    The batches after that are omitted and fetched again: a response of many small batches may
    expand to any size. The first batch is always expanded.
    """

    def __init__(self, *, budget: int, on_defect: OnDefect = lambda _offset, _error: None) -> None:
        self._expander = Expander(MAX_EXPANDED)
        self._left = budget
        self._on_defect = on_defect

    def readable(self, message_set: bytes) -> bytes:
        """Return the message set to give to aiokafka in its place."""
        view, parts, end = memoryview(message_set), list[bytes](), 0
        for start, end in spans(message_set):
            if self._left <= 0:
                return b"".join(parts)
            batch = self._batch(view[start:end])
            self._left -= sum(map(len, batch))
            parts += batch
        return b"".join((*parts, message_set[end:]))

    def _batch(self, batch: memoryview) -> list[bytes]:
        head = header(batch)
        if head is None or (head.is_control and head.count):
            return [batch.tobytes()]
        if head.is_control:
            return [head.emptied()]
        try:
            return self._records(head, batch[HEADER.size :])
        except NotExpanded:
            codec = CODECS.get(head.codec, f"codec {head.codec}")
            why = f"its batch ({codec}) does not decompress to at most {MAX_EXPANDED >> 20} MiB"
        except Malformed as error:
            why = f"its batch is damaged: {error}"
        except Exception as error:  # noqa: BLE001  a defect of this program must not stop the partition
            self._on_defect(head.base_offset, error)
            why = "a defect of this program: its log has the place"
        return _batch(head, [], _places(head, 0, why))

    def _records(self, head: BatchHeader, payload: memoryview) -> list[bytes]:
        data = self._expander.expand(head.codec, payload) if head.codec else payload
        if head.count > MAX_RECORDS:
            raise Malformed(f"it has more than {MAX_RECORDS} records")
        if len(data) > PARSED_AT_ONCE and has_too_many_headers(data):
            return _repaired(head, data)
        pieces = _in_pieces(head, data)
        return pieces if all(map(is_sound, pieces)) else _repaired(head, data)


def _in_pieces(head: BatchHeader, data: memoryview) -> list[bytes]:
    """Split records into batches of about 1 MiB: aiokafka checks a batch's CRC without yielding."""
    if len(data) <= PIECE:
        return [head.batch(data.tobytes(), last_offset=head.last_offset_delta, count=head.count)]
    pieces: list[bytes] = []
    begun, count = 0, 0
    for at in starts(data):
        if at < len(data) and at - begun < PIECE:
            count += 1
            continue
        last = head.last_offset_delta
        if at < len(data):
            last = max(-1, min(last, offset_of(data, at) - 1))
        pieces.append(head.batch(data[begun:at].tobytes(), last_offset=last, count=count))
        begun, count = at, 1
    return pieces


def _repaired(head: BatchHeader, data: memoryview) -> list[bytes]:
    """Return the readable records, and placeholders for the offsets behind the first damage."""
    found: list[Record] = []
    at, damage = 0, ""
    try:
        while at < len(data):
            record, at = read_record(data, at)
            found.append(record)
    except Malformed as error:
        damage = str(error)
    if damage or len(found) < head.count:
        why = f"its batch is damaged: {damage or 'records are missing'}"
        return _batch(head, _renumbered(found), _places(head, len(found), why))
    if len(found) == head.last_offset_delta + 1:
        return _batch(head, _renumbered(found), [])
    return _batch(head, _in_order(head, found), [])


def _renumbered(found: list[Record]) -> list[Record]:
    """Renumber the records consecutively, as the broker does whatever offsets they claim."""
    return [record.at(offset) for offset, record in enumerate(found)]


def _in_order(head: BatchHeader, found: list[Record]) -> list[Record]:
    """Return the records of a compacted batch. Raises Malformed if their offsets do not ascend."""
    ordered = [-1, *(record.offset for record in found), head.last_offset_delta + 1]
    if any(one >= other for one, other in itertools.pairwise(ordered)):
        raise Malformed("its records are not in the order of their offsets")
    return found


def _places(head: BatchHeader, first: int, why: str) -> list[Record]:
    """Return a placeholder for each offset from `first` on, or one for all of them."""
    last = max(0, head.last_offset_delta)
    places = range(first, last + 1)
    if len(places) > MAX_PLACES:
        until = head.base_offset + last
        why = f"{why}; this dead letter represents all records up to offset {until}"
        places = places[:1]
    return [placeholder(offset, why) for offset in places]


def _batch(head: BatchHeader, found: list[Record], places: list[Record]) -> list[bytes]:
    every = [*found, *places]
    encoded = b"".join(record.encoded() for record in every)
    last = max(0, head.last_offset_delta)
    return [head.batch(encoded, last_offset=last, count=len(every))]


_FETCH: Final = 1
"""API key of Fetch in Kafka's protocol."""
INSPECTED_AT_ONCE: Final = 1 << 18
"""A thread inspects larger responses: this many bytes take about a millisecond."""


class ReadableResponses:
    """Replacement for the `send` of one client that repairs fetch responses.

    One response expands to at most `budget` bytes; responses are repaired one at a time.
    """

    def __init__(
        self,
        send: Callable[..., Awaitable[Any]],
        *,
        budget: int,
        on_defect: OnDefect = lambda _offset, _error: None,
    ) -> None:
        self._send = send
        self._budget = budget
        self._on_defect = on_defect
        self._turn = asyncio.Lock()

    async def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return the response; the response to a fetch is readable."""
        response = await self._send(*arguments, **options)
        if getattr(response, "API_KEY", None) == _FETCH:
            await self._repair(response)
        return response

    async def _repair(self, response: Any) -> None:
        size = sum(len(part[-1] or b"") for _, parts in response.topics for part in parts)
        if not size:
            return
        if size <= INSPECTED_AT_ONCE and _sound(response):
            return
        async with self._turn:
            await asyncio.to_thread(self._repaired, response)

    def _repaired(self, response: Any) -> None:
        if not _sound(response):
            repair = Repair(budget=self._budget, on_defect=self._on_defect)
            response.topics = [
                (topic, [(*part[:-1], repair.readable(part[-1] or b"")) for part in parts])
                for topic, parts in response.topics
            ]


def _sound(response: Any) -> bool:
    return all(is_sound(part[-1]) for _, parts in response.topics for part in parts if part[-1])
