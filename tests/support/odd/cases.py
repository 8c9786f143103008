"""All odd cases published beside bystanders: odd values and odd fields of Kafka.

`ODD_RECORDS` has the values; here are timestamps, headers, keys, codecs and batches, and jobs whose
key in Redis was spoilt beforehand.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import redis

from support.builders.odd_records import COMPLETED, FAILED, ODD_RECORDS, UNREADABLE, OddRecord, job
from support.odd.kafka_wire import Batch, batch_of, bomb

LARGEST: Final = 2**63 - 1
ANY: Final = "any end"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")


def _nothing(client: redis.Redis) -> None:
    del client


@dataclass(frozen=True, slots=True)
class Case:
    """Records of one batch, or a batch made byte by byte, with the required outcome per record."""

    records: Sequence[OddRecord]
    codec: str | None = None
    batch: Batch | None = None
    prepare: Callable[[redis.Redis], object] = _nothing
    """Corrupts Redis before the record is published."""

    @property
    def ordinary(self) -> bool:
        """Whether it needs neither a handmade batch nor a corrupted Redis."""
        return self.batch is None and self.prepare is _nothing

    def made(self) -> Batch:
        """Return the batch with the current time."""
        return self.batch or batch_of(self.records, codec=self.codec, now_ms=_now_ms())


@dataclass(slots=True)
class _Cases:
    all: dict[str, Callable[[], Case]] = field(default_factory=dict)

    def add(self, name: str, case: Callable[[], Case]) -> None:
        assert name not in self.all, name
        self.all[name] = case

    def record(self, name: str, expect: str = COMPLETED, **fields: Any) -> None:
        """Add one record with its own id, valid unless the fields change that."""
        self.add(name, lambda: Case([_record(name, expect, **fields)]))


def cases() -> dict[str, Callable[[], Case]]:
    """Return all cases by name; each call of one makes it anew."""
    found = _Cases()
    for name, make in ODD_RECORDS.items():
        found.add(name.replace("_", " "), partial(_made, make))
    for group in (_timestamps, _headers, _keys_and_values, _codecs, _bombs, _volumes, _spoilt_keys):
        group(found)
    return found.all


def _made(make: Callable[[], OddRecord]) -> Case:
    record = make()
    return Case([record], codec=record.compression)


def _record(name: str, expect: str, **fields: Any) -> OddRecord:
    job_id = f"odd-{_UNSAFE.sub('-', name)}"
    named: dict[str, Any] = {"value": job(job_id), "key": job_id.encode(), "job_id": job_id}
    if fields.get("value") is not None or expect == UNREADABLE:
        named["job_id"] = None
    return OddRecord(**{"expect": expect, **named, **fields})


# --- Kafka's own fields ---------------------------------------------------------------------------


def _timestamps(found: _Cases) -> None:
    stamps = {
        "microseconds": _now_ms() * 1000,
        "nanoseconds": _now_ms() * 1_000_000,
        "the first of year 10000": 253_402_300_800_000,
        "the largest": LARGEST,
        "none": -1,
        "of 1970": 0,
        "before 1970": -5_000,
        "the smallest": -(2**62),
    }
    for name, stamp in stamps.items():
        found.record(f"timestamp {name}", timestamp_ms=stamp)
    found.record(
        "timestamp the largest on rubbish", UNREADABLE, timestamp_ms=LARGEST, value=b"rubbish"
    )


def _headers(found: _Cases) -> None:
    rubbish: dict[str, Any] = {"expect": UNREADABLE, "value": b"{"}
    null: list[Any] = [("color", None)]
    found.record("null header value", headers=null)
    found.record("null header value on rubbish", headers=null, **rubbish)
    found.record("null header value on an invalid job", headers=null, **_invalid("null-header"))
    not_utf8: list[Any] = [(b"\xff\xfe\x80", b"x")]
    found.record("header name not UTF-8", ANY, headers=not_utf8)
    found.record("header name not UTF-8 on rubbish", headers=not_utf8, **rubbish)
    found.record("header name not UTF-8, compressed", ANY, headers=not_utf8, compression="zstd")
    found.record("header name empty", headers=[("", b"x")])
    found.record("header name of 20,000 characters", headers=[("n" * 20_000, b"x")])
    found.record("header name with NUL and newline", headers=[("a\0b\nc", b"x")])
    found.record(
        "5,000 headers", UNREADABLE, headers=[(f"h{number}", b"x") for number in range(5_000)]
    )
    found.record("5,000 headers on rubbish", headers=[("h", None)] * 5_000, **rubbish)
    found.record("header of 600 KB", headers=[("large", b"x" * 600_000)])
    found.record("header of 600 KB on rubbish", headers=[("large", b"\xff" * 600_000)], **rubbish)
    found.record(
        "traceparent invalid twice", headers=[("traceparent", b"\xff"), ("traceparent", None)]
    )
    for name, value in _REPLAYS.items():
        found.record(f"replay header {name}", headers=[("dragoman-replay", value)])
    found.record("replay header twice", headers=[("dragoman-replay", b"1")] * 2)
    forged: list[Any] = [
        (name, value)
        for name in ("x-original-partition", "x-original-offset", "x-error-code", "x-job-id")
        for value in (None, b"\xff", b"9" * 5_000)
    ]
    found.record("forged dead-letter headers", headers=forged)
    found.record("forged dead-letter headers on rubbish", headers=forged, **rubbish)


_REPLAYS: Final[dict[str, bytes | None]] = {
    "null": None,
    "empty": b"",
    "zero": b"0",
    "negative": b"-1",
    "of 4,000 digits": b"9" * 4_000,
    "2^53-1": b"9007199254740991",
    "2^53": b"9007199254740992",
    "in other digits": "١٢".encode(),
    "not UTF-8": b"\xff",
}


def _invalid(name: str) -> dict[str, Any]:
    job_id = f"odd-invalid-{name}"
    return {
        "expect": FAILED + "unsupported_language",
        "value": job(job_id, target_lang="xx-nonsense"),
        "job_id": job_id,
    }


def _keys_and_values(found: _Cases) -> None:
    found.record("no key", key=None)
    found.record("key empty", key=b"")
    found.record("key not UTF-8", key=b"\xff\xfe")
    found.record("key of 500 KB", key=b"k" * 500_000)
    found.record("tombstone", UNREADABLE, value=None)
    found.record("tombstone without key", UNREADABLE, value=None, key=None)
    found.record("value empty", UNREADABLE, value=b"")
    found.record("value of NUL", UNREADABLE, value=b"\0" * 1_000)
    found.record("key of 500 KB on rubbish", UNREADABLE, value=b"{", key=b"\xff" * 500_000)


def _codecs(found: _Cases) -> None:
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        small = [_record(f"in {codec}", COMPLETED)]
        found.add(f"a job in {codec}", partial(Case, small, codec=codec))
        found.add(f"1 MB in {codec}", partial(_megabyte, codec))


def _megabyte(codec: str) -> Case:
    return Case([_record("1 MB", UNREADABLE, value=b" " * 1_000_000)], codec=codec)


def _bombs(found: _Cases) -> None:
    bombs = {
        "one record of 400 MB in zstd": ("zstd", 1, 400_000_000),
        "400 records of 1 MB in zstd": ("zstd", 400, 1_000_000),
        "one record of 400 MB in gzip": ("gzip", 1, 400_000_000),
        "one record of 100 MB in lz4": ("lz4", 1, 100_000_000),
        "60 records of 1 MB in zstd": ("zstd", 60, 1_000_000),
    }
    for name, (codec, count, size) in bombs.items():
        found.add(name, partial(_bomb, codec, count, size))


def _bomb(codec: str, count: int, size: int) -> Case:
    batch = bomb(codec, records=count, value_bytes=size, now_ms=_now_ms())
    return Case([OddRecord(None, UNREADABLE)] * count, batch=batch)


# --- many at once ---------------------------------------------------------------------------------


def _volumes(found: _Cases) -> None:
    items = [f"Short item {number}." for number in range(512)]
    long = "A context that every item is given. " * 227
    found.add("40 jobs of 512 items with 8 KiB of context", lambda: _forty(items, long[:8_192]))
    found.add("4,000 records of rubbish", lambda: Case([OddRecord(b"{", UNREADABLE)] * 4_000))
    found.add(
        "500 tombstones",
        lambda: Case([OddRecord(None, UNREADABLE, b"%d" % number) for number in range(500)]),
    )


def _forty(items: list[str], context: str) -> Case:
    ids = [f"odd-forty-{number}" for number in range(40)]
    records = [
        OddRecord(
            job(job_id, items, context=context, source_lang="en"),
            COMPLETED,
            job_id.encode(),
            job_id=job_id,
        )
        for job_id in ids
    ]
    return Case(records, codec="zstd")


# --- keys with unexpected contents ----------------------------------------------------------------


def _spoilt_keys(found: _Cases) -> None:
    hashes: dict[str, tuple[str, dict[str, str | bytes]]] = {
        "completed without a result": (ANY, {"status": "completed"}),
        "cancelled without a result": ("cancelled", {"status": "cancelled"}),
        "a result that is no JSON": (ANY, {"status": "completed", "result": "{"}),
        "a result of another shape": (ANY, {"status": "failed", "result": '{"schema": "x"}'}),
        "fields that are not UTF-8": (ANY, {"status": b"\xff", "result": b"\xff"}),
        "numbers that are none": (ANY, {"status": "queued", "deliveries": "x", "replays": "y"}),
        "a status that is none": (ANY, {"status": "melted"}),
        "another owner": ("dead-letter:conflict", {"status": "completed", "fingerprint": "f" * 64}),
    }
    for name, (expect, fields) in hashes.items():
        found.add(f"key: {name}", partial(_spoilt, name, expect, fields))
    for kind in ("string", "list", "stream"):
        found.add(f"key of type {kind}", partial(_wrong_type, kind))


def _spoilt(name: str, expect: str, fields: dict[str, str | bytes]) -> Case:
    record = _record(f"key {name}", expect)
    key = f"dragoman:job:{record.job_id}"

    def spoil(client: redis.Redis) -> None:
        mapping: Any = fields
        client.hset(key, mapping=mapping)
        client.expire(key, 600)

    return Case([record], prepare=spoil)


def _wrong_type(kind: str) -> Case:
    record = _record(f"key of type {kind}", ANY)
    key = f"dragoman:job:{record.job_id}"

    def spoil(client: redis.Redis) -> None:
        if kind == "string":
            client.set(key, b"\xff")
        elif kind == "list":
            client.rpush(key, "x")
        else:
            client.xadd(key, {"x": json.dumps(0)})
        client.expire(key, 600)

    return Case([record], prepare=spoil)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
