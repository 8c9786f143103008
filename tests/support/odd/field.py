"""A topic, a Redis and a live worker, where odd records are published beside bystanders."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import redis
from confluent_kafka import Consumer, KafkaException, TopicPartition

from support.builders.odd_records import OddRecord, job
from support.chaos.system import DragomanWorker, Place
from support.odd.cases import ANY, Case
from support.odd.kafka_wire import Batch, KafkaWire, Refused, batch_of
from support.odd.replica import ReplicaWatch
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

BYSTANDERS: Final = 140
WITHIN_S: Final = 20.0
"""Limit for the bystanders."""
ODD_WITHIN_S: Final = 60.0
"""Limit for the odd records after that: a slow one still has an outcome."""
LONGEST_STALL_S: Final = 0.1
_START_S: Final = 180.0
_TERMINAL: Final = frozenset({"completed", "failed", "cancelled", "expired"})
_TOPIC: Final = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "max.message.bytes": "10485760",
}


@dataclass(slots=True)
class Round:
    """The outcome of one case: a row of the table."""

    name: str
    records: int = 0
    bystanders_s: float | None = None
    odd_s: float | None = None
    committed_s: float | None = None
    restarts: int = 0
    lag_ms: int = 0
    cpu_lag_ms: int = 0
    cpu_s: float = 0.0
    peak_mib: int = 0
    growth_mib: int = 0
    ended: str = ""
    problems: list[str] = field(default_factory=list)

    def judge(self, *, by_clock: bool) -> None:
        """Compare the outcome with the limits; stalls by CPU time, or by the clock too."""
        if self.bystanders_s is None:
            self.problems.append(f"bystanders were not done within {WITHIN_S:g} s")
        elif self.odd_s is None:
            self.problems.append("an odd record has no outcome")
        elif self.committed_s is None:
            self.problems.append("the offsets were not committed")
        if self.restarts:
            self.problems.append(f"{self.restarts} restarts")
        stall_ms = self.lag_ms if by_clock else min(self.lag_ms, self.cpu_lag_ms)
        if stall_ms > LONGEST_STALL_S * 1000:
            self.problems.append(f"the event loop was blocked for {stall_ms} ms")

    @property
    def healthy(self) -> bool:
        """Whether the worker may be used for the next round."""
        return not self.restarts and None not in (self.bystanders_s, self.odd_s, self.committed_s)


@dataclass(frozen=True, slots=True)
class _Published:
    bystanders: Sequence[str]
    odd: dict[tuple[int, int], OddRecord]
    refused: list[str]
    ends: dict[int, int]
    at: float


class Field:
    """One topic with two partitions and one `dragoman-worker run`, used for rounds while it lives.

    `package_path` comes before the installed packages: an older state of the project.
    """

    _numbers = itertools.count()

    def __init__(
        self,
        kafka: KafkaBroker,
        server: RedisServer,
        folder: Path,
        *,
        settings: Mapping[str, Any] | None = None,
        package_path: str = "",
    ) -> None:
        name = f"odd-{time.time_ns() // 1_000_000:x}-{next(self._numbers)}"
        self._topic = kafka.create_topic(name, 2, _TOPIC)
        self._letters = kafka.create_topic(f"{name}-dead", 1, {"max.message.bytes": "10485760"})
        self._redis = redis.Redis.from_url(server.url)
        self._place = Place(
            kafka.bootstrap, server.url, name, self._letters, f"{name}-group", 2, folder,
            latency_s=0.02,
        )  # fmt: skip
        env = {"PYTHONPATH": package_path} if package_path else {}
        self.worker = DragomanWorker(
            self._place, name, {"engine.echo.faults": False, **(settings or {})}, env
        )
        self._wire = KafkaWire(kafka.bootstrap)
        self._reader = Consumer(
            {"bootstrap.servers": kafka.bootstrap, "group.id": self._place.group, "log_level": 0}
        )
        self._dead_letters_read = 0
        self._codes: dict[tuple[int, int], str] = {}
        self._rounds = itertools.count()

    def __enter__(self) -> Self:
        self.worker.start()
        try:
            self.worker.ready(timeout_s=_START_S)
            self.run("warm-up", Case([OddRecord(job("warm-up"), "completed", job_id="warm-up")]))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.worker.kill(everything=True)
        self._reader.close()
        self._wire.__exit__(kind, error, trace)
        self._redis.close()

    # --- one round --------------------------------------------------------------------------------

    def run(self, name: str, *cases: Case) -> Round:
        """Publish cases beside the bystanders and measure until every record has an outcome."""
        made = [self._prepared(case) for case in cases]
        watch = ReplicaWatch(self.worker)
        number = next(self._rounds)
        published = self._publish(cases, made, [f"by-{number}-{one}" for one in range(BYSTANDERS)])
        row = Round(name, records=len(published.odd))
        self._await(row, published, watch)
        watch.last_look()
        ends = self._ends(published)
        row.ended = _counted([*ends, *published.refused])
        row.problems += _wrong(published.odd.values(), ends)
        row.restarts, row.cpu_s = watch.restarts, round(watch.cpu_s, 2)
        row.lag_ms, row.cpu_lag_ms = round(watch.lag_s * 1000), round(watch.cpu_lag_s * 1000)
        row.peak_mib = round(watch.peak_mib)
        row.growth_mib = round(watch.peak_mib - watch.before_mib)
        return row

    def _prepared(self, case: Case) -> Batch:
        for record in case.records:
            if record.job_id is not None:
                self._redis.delete(_key(record.job_id))
        case.prepare(self._redis)
        return case.made()

    def _publish(
        self, cases: Sequence[Case], made: Sequence[Batch], ids: Sequence[str]
    ) -> _Published:
        """Publish half of the bystanders per partition, around the odd records."""
        half, quarter = len(ids) // 2, len(ids) // 4
        odd: dict[tuple[int, int], OddRecord] = {}
        refused: list[str] = []
        self._send(0, ids[:quarter])
        for case, batch in zip(cases, made, strict=True):
            try:
                first = self._wire.produce(self._topic, 0, batch)
            except Refused as error:
                refused.append(str(error))
            else:
                odd |= {(0, first + number): one for number, one in enumerate(case.records)}
        ends = {0: self._send(0, ids[quarter:half]), 1: self._send(1, ids[half:])}
        return _Published(ids, odd, refused, ends, time.monotonic())

    def _send(self, partition: int, ids: Sequence[str]) -> int:
        records = [
            OddRecord(job(job_id, "A bystander.", source_lang="en"), "completed", job_id.encode())
            for job_id in ids
        ]
        batch = batch_of(records, codec=None, now_ms=time.time_ns() // 1_000_000)
        return self._wire.produce(self._topic, partition, batch) + len(records)

    def _await(self, row: Round, published: _Published, watch: ReplicaWatch) -> None:
        def passed() -> float:
            return round(time.monotonic() - published.at, 2)

        limit_s = WITHIN_S
        while passed() < limit_s and self.worker.running:
            watch.look()
            if row.bystanders_s is None and self._done(published.bystanders):
                row.bystanders_s = passed()
                limit_s = row.bystanders_s + ODD_WITHIN_S  # an odd job may take long
            if row.bystanders_s is not None and row.odd_s is None:
                row.odd_s = passed() if all(self._ends(published)) else None
            if row.odd_s is not None and self._is_committed(published.ends):
                row.committed_s = passed()
                return
            time.sleep(0.05)

    # --- inspection -------------------------------------------------------------------------------

    def _done(self, ids: Sequence[str]) -> bool:
        pipeline = self._redis.pipeline(transaction=False)
        for job_id in ids:
            pipeline.hget(_key(job_id), "status")
        return all(status == b"completed" for status in pipeline.execute())

    def _ends(self, published: _Published) -> list[str]:
        """Return each outcome: `completed`, `failed:CODE`, `dead-letter:CODE`, or empty."""
        self._read_dead_letters()
        return [
            self._end(record.job_id, self._codes.get(spot, ""))
            for spot, record in published.odd.items()
        ]

    def _end(self, job_id: str | None, code: str) -> str:
        if job_id is None or code == "conflict":
            return f"dead-letter:{code}" if code else ""
        try:
            found: Any = self._redis.hmget(_key(job_id), "status", "result")
        except redis.ResponseError:  # a key of another type: only a dead letter shows the outcome
            return f"dead-letter:{code}" if code else ""
        status, result = found
        name = (status or b"").decode(errors="replace")
        if name not in _TERMINAL:
            return f"dead-letter:{code}" if code else ""
        return f"failed:{code or _code_of(result)}" if name == "failed" else name

    def _read_dead_letters(self) -> None:
        while found := self._wire.fetch(self._letters, 0, self._dead_letters_read):
            for dead_letter in found:
                self._dead_letters_read = dead_letter.offset + 1
                headers = dead_letter.headers
                with suppress(ValueError, TypeError, KeyError):
                    partition = int(headers[b"x-original-partition"] or b"")
                    offset = int(headers[b"x-original-offset"] or b"")
                    self._codes[partition, offset] = (headers[b"x-error-code"] or b"").decode()

    def _is_committed(self, ends: Mapping[int, int]) -> bool:
        places = [TopicPartition(self._topic, number) for number in ends]
        try:
            found = self._reader.committed(places, timeout=5)
        except KafkaException:
            return False
        return all(place.offset >= ends[place.partition] for place in found)


def _key(job_id: str) -> str:
    return f"dragoman:job:{job_id}"


def _code_of(result: bytes | None) -> str:
    try:
        return str(json.loads(result or b"{}")["error"]["code"])
    except (ValueError, TypeError, KeyError):
        return "?"


def _counted(ends: Iterable[str]) -> str:
    """Return each outcome with its count."""
    counts: dict[str, int] = {}
    for end in ends:
        counts[end or "no end"] = counts.get(end or "no end", 0) + 1
    return ", ".join(end if count == 1 else f"{count} x {end}" for end, count in counts.items())


def _wrong(records: Iterable[OddRecord], ends: Sequence[str]) -> list[str]:
    """Return the first unexpected outcome; `internal` always is one, as a defect of the worker."""
    wrong = [
        f"outcome {end}, expected {record.expect}"
        for record, end in zip(records, ends, strict=True)
        if end.endswith(":internal") or (end and record.expect not in {end, ANY})
    ]
    return wrong[:1]
