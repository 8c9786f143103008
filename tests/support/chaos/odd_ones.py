"""The odd records that a storm sends: those that an ordinary producer can publish."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from dragoman_schemas.wire import UnreadableRecord, open_record
from support.builders.odd_records import FAILED, UNREADABLE, OddRecord
from support.chaos.sent import Kind, Sent
from support.odd.cases import ANY, cases

_LARGEST: Final = 1_000_500
"""With its headers a record stays below a topic's default limit."""


def sendable(order: random.Random) -> Iterator[OddRecord]:
    """Yield each of them once, in a random order."""
    names = list(cases())
    order.shuffle(names)
    for name in names:
        case = cases()[name]()
        if case.ordinary and len(case.records) == 1 and _fits(case.records[0]):
            yield case.records[0]


def odd_one(number: int, record: OddRecord) -> Sent:
    """Return the record with the outcome that the ledger requires."""
    unreadable = Sent(number, Kind.ODD, record.value, None, None, None, frozenset(), odd=record)
    if record.expect == UNREADABLE:  # also where the value is a valid job: 5,000 headers
        return unreadable
    try:
        envelope = open_record(record.value)
    except UnreadableRecord:
        return unreadable
    status, _, code = record.expect.partition(":")
    ends = frozenset({status})
    return Sent(
        number,
        Kind.ODD,
        record.value,
        envelope.job_id,
        envelope.fingerprint,
        None,
        ends,
        code if record.expect.startswith(FAILED) else None,
        record,
    )


def _fits(record: OddRecord) -> bool:
    """Return whether librdkafka sends it unchanged and its outcome is known."""
    names = [name for name, _ in record.headers]
    strange = any(isinstance(name, bytes) or "\0" in name for name in names)
    size = len(record.value or b"") + len(record.key or b"")
    size += sum(len(name) + len(value or b"") for name, value in record.headers)
    stamp = record.timestamp_ms
    return (
        not strange and (stamp is None or stamp > 0) and size <= _LARGEST and record.expect != ANY
    )
