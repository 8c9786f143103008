"""The contract holds wherever a worker dies: at every arrow of section 5, and those of `claim`.

Each case has one record, a replica that kills itself at the point, then one that does not. Six
cases run at a time, because most of their time is the dead member's session.
"""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from support.processes.crash_points import Point, start_replica
from support.processes.waiting import patient, wait_until
from support.services.document_bits import progress
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import (
    DeadLetter,
    committed,
    publish,
    publish_with_headers,
    read_all,
)
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis, pytest.mark.chaos]

SIDE_BY_SIDE = 6
LIVE_S = 600


@dataclass(frozen=True, slots=True)
class Kind:
    """A record, what its key holds beforehand, and its required final status."""

    status: str | None
    record: Mapping[str, Any] | bytes
    key: Mapping[str, str] | None = None
    replay: int = 0
    copies: int = 1
    settings: Mapping[str, Any] | None = None


TEXT = {"text": "Hello.", "target_lang": "de", "source_lang": "en"}
PAST = "2020-01-01T00:00:00Z"
OWNED = {"status": "completed", "result": '{"status":"completed"}', "fingerprint": "0" * 64}
CLAIMED = {"status": "running", "deliveries": "1", "claim:old": "elsewhere/0/0"}

KINDS = {
    "completed": Kind("completed", TEXT),
    "twice": Kind("completed", TEXT, copies=2),
    "failed": Kind("failed", TEXT | {"text": "#!fatal\nHello."}),
    "invalid": Kind("failed", TEXT | {"targetlang": "de"}),
    "cancelled": Kind("cancelled", TEXT, CLAIMED | {"cancel_requested_at": PAST}),
    "expired": Kind("expired", TEXT | {"deadline": PAST}),
    "suspect": Kind("completed", TEXT, {"status": "running", "deliveries": "2", "claim:*": "2"}),
    "poisoned": Kind("failed", TEXT, {"status": "running", "deliveries": "4", "claim:*": "4"}),
    "replayed": Kind("completed", TEXT, {"status": "failed", "deliveries": "1"}, replay=1),
    "conflict": Kind("completed", TEXT, OWNED),
    "unreadable": Kind(None, b'{"text": "no id"}'),
    "drained": Kind(
        "completed",
        TEXT | {"text": "#!sleep 4\nHello."},
        settings={"shutdown.grace_s": 0},
    ),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A death, and the exact counts that must follow.

    `left` counts the claims on the key once the worker is dead. At the end: `deliveries` in the
    key, `dead_letters`, and `published` records on the results topic.
    """

    kind: str
    point: Point
    left: int
    deliveries: int
    dead_letters: int
    published: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.point}".replace(" ", "-")


def before(seam: str, passage: int = 1) -> Point:
    return Point("before", seam, passage)


def after(seam: str, passage: int = 1) -> Point:
    return Point("after", seam, passage)


CASES = [
    Case(kind, point, *counts)
    for kind, rows in {
        #            left, deliveries, dead letters, published
        "completed": [
            (after("poll"), (0, 1, 0, 1)),
            (before("claim"), (0, 1, 0, 1)),
            (after("claim"), (1, 2, 0, 1)),
            (before("engine"), (1, 2, 0, 1)),
            (after("engine"), (1, 2, 0, 1)),
            (before("finish"), (1, 2, 0, 1)),
            (after("finish"), (0, 1, 0, 1)),
            (before("announce"), (0, 1, 0, 1)),
            (after("announce"), (0, 1, 0, 1)),
            (before("results"), (0, 1, 0, 1)),
            (after("results"), (0, 1, 0, 2)),
            (before("complete"), (0, 1, 0, 2)),
            (after("complete"), (0, 1, 0, 2)),
            (before("commit"), (0, 1, 0, 2)),
            (after("commit"), (0, 1, 0, 1)),
            (Point("reply lost", "claim", 3), (0, 1, 0, 1)),
            (Point("reply lost", "finish", 3), (0, 1, 0, 1)),
        ],
        "twice": [
            (before("announce", 2), (0, 1, 0, 3)),
            (after("announce", 2), (0, 1, 0, 3)),
            (before("commit"), (0, 1, 0, 4)),
        ],
        "failed": [
            (after("claim"), (1, 2, 1, 1)),
            (before("engine"), (1, 2, 1, 1)),
            (before("dead letter"), (1, 2, 1, 1)),
            (after("dead letter"), (1, 2, 2, 1)),
            (before("finish"), (1, 2, 2, 1)),
            (after("finish"), (0, 1, 1, 1)),
            (after("announce"), (0, 1, 1, 1)),
            (before("results"), (0, 1, 1, 1)),
            (after("results"), (0, 1, 1, 2)),
            (before("commit"), (0, 1, 1, 2)),
            (after("commit"), (0, 1, 1, 1)),
            (Point("reply lost", "dead letter", 1), (0, 1, 2, 1)),
        ],
        "invalid": [
            (after("claim"), (1, 2, 1, 1)),
            (after("dead letter"), (1, 2, 2, 1)),
            (after("finish"), (0, 1, 1, 1)),
        ],
        "cancelled": [
            (after("claim"), (1, 1, 0, 1)),
            (before("finish"), (1, 1, 0, 1)),
            (after("finish"), (0, 1, 0, 1)),
            (before("commit"), (0, 1, 0, 2)),
            (after("commit"), (0, 1, 0, 1)),
        ],
        "expired": [
            (after("claim"), (1, 2, 0, 1)),
            (before("finish"), (1, 2, 0, 1)),
            (after("finish"), (0, 1, 0, 1)),
            (after("results"), (0, 1, 0, 2)),
            (after("commit"), (0, 1, 0, 1)),
        ],
        "suspect": [
            (after("claim"), (2, 3, 0, 1)),
            (after("claim", 2), (3, 4, 0, 1)),
            (before("finish"), (3, 4, 0, 1)),
            (after("finish"), (0, 3, 0, 1)),
        ],
        "poisoned": [
            (before("dead letter"), (4, 4, 1, 1)),
            (after("dead letter"), (4, 4, 2, 1)),
            (after("finish"), (0, 4, 1, 1)),
            (after("commit"), (0, 4, 1, 1)),
        ],
        "replayed": [
            (before("claim"), (0, 2, 0, 1)),
            (after("claim"), (1, 3, 0, 1)),
            (before("finish"), (1, 3, 0, 1)),
            (after("finish"), (0, 2, 0, 1)),
            (after("commit"), (0, 2, 0, 1)),
        ],
        "conflict": [
            (after("claim"), (0, 0, 1, 0)),
            (before("dead letter"), (0, 0, 1, 0)),
            (after("dead letter"), (0, 0, 2, 0)),
            (before("commit"), (0, 0, 2, 0)),
            (after("commit"), (0, 0, 1, 0)),
        ],
        "unreadable": [
            (after("poll"), (0, 0, 1, 0)),
            (before("dead letter"), (0, 0, 1, 0)),
            (after("dead letter"), (0, 0, 2, 0)),
            (before("complete"), (0, 0, 2, 0)),
            (after("commit"), (0, 0, 1, 0)),
        ],
        "drained": [
            (before("release"), (1, 2, 0, 1)),
            (after("release"), (0, 2, 0, 1)),
        ],
    }.items()
    for point, counts in rows
]


class Stage:
    """One case with its topic, group, job and document."""

    def __init__(self, case: Case, arena: Arena) -> None:
        self.case = case
        self.kind = KINDS[case.kind]
        self.arena = arena
        self.id = f"{case.kind}-{uuid.uuid4().hex[:10]}"
        self.topic = arena.kafka.create_topic(self.id, 1)
        self.result_between: str | None = None
        self.left = -1

    def run(self) -> Stage:
        """Run the whole case; afterwards the test only inspects it."""
        self._prepare()
        self._die()
        fields = self.fields
        self.left = sum(name.startswith("claim:") for name in fields)
        self.result_between = fields.get("result")
        self._finish()
        return self

    @property
    def fields(self) -> dict[str, str]:
        raw: Any = self.arena.redis.hgetall(f"dragoman:job:{self.id}")
        return {name.decode(): value.decode() for name, value in raw.items()}

    def all_committed(self) -> bool:
        done, end = committed(self.arena.kafka.bootstrap, f"{self.id}-group", self.topic, 1)
        return done == end

    def _prepare(self) -> None:
        kind = self.kind
        if kind.key is not None:
            fields: dict[Any, Any] = dict(kind.key)
            for number in range(int(fields.pop("claim:*", 0))):
                fields[f"claim:{number}"] = f"{self.topic}/0/0"
            self.arena.redis.hset(f"dragoman:job:{self.id}", mapping=fields)
            self.arena.redis.expire(f"dragoman:job:{self.id}", LIVE_S)
        bootstrap = self.arena.kafka.bootstrap
        if isinstance(kind.record, bytes):
            publish(bootstrap, self.topic, [kind.record])
            return
        place = {"document_id": self.id, "index": 3, "total": 9}
        record = {"job_id": self.id, "document": place, **kind.record}
        if kind.replay:
            header = [("dragoman-replay", b"%d" % kind.replay)]
            publish_with_headers(bootstrap, self.topic, record, header)
        else:
            publish(bootstrap, self.topic, [record] * kind.copies)

    def _die(self) -> None:
        point = self.case.point
        process = self._start(point)
        try:
            if point.seam == "release":
                self._wait(lambda: "claim:" in "".join(self.fields), "the job runs")
                process.terminate()
            if point.when == "reply lost":
                self._wait(self.all_committed, "committed in spite of lost replies")
                process.terminate()
            process.join(patient(30))
            expected = 0 if point.when == "reply lost" else -9
            assert process.exitcode == expected, self._log_text()
        finally:
            process.kill()
            process.join(patient(10))

    def _finish(self) -> None:
        # One more record: the partition must continue even where nothing is left to do.
        publish(self.arena.kafka.bootstrap, self.topic, [{"job_id": f"{self.id}.after", **TEXT}])
        process = self._start(None)
        try:
            self._wait(self.all_committed, "committed")
            process.terminate()
            process.join(patient(30))
            assert process.exitcode == 0, self._log_text()
        finally:
            process.kill()
            process.join(patient(10))

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(condition, timeout_s=30, what=what)
        except AssertionError as error:
            raise AssertionError(f"{self.case.name}: {error}\n{self._log_text()}") from None

    def _start(self, point: Point | None) -> Any:
        settings = {
            "kafka.bootstrap_servers": self.arena.kafka.bootstrap,
            "kafka.topics": [self.topic],
            "kafka.dead_letter_topic": self.arena.dead_letter_topic,
            "kafka.results_topic": self.arena.results_topic,
            "kafka.group_id": f"{self.id}-group",
            "kafka.session_timeout_s": 2,
            "redis.url": self.arena.server.url,
            "engine.kind": "echo",
            "engine.echo.faults": True,
            "retry.initial_s": 0.01,
            "http.port": 0,
            **((self.kind.settings or {}) if point is not None else {}),
        }
        return start_replica(settings, point, self._log)

    @property
    def _log(self) -> Path:
        return self.arena.folder / f"{self.id}.log"

    def _log_text(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


class Arena:
    """The services of this module and the running cases."""

    def __init__(self, kafka: KafkaBroker, server: RedisServer, folder: Path) -> None:
        self.kafka = kafka
        self.server = server
        self.folder = folder
        self.redis = redis.Redis.from_url(server.url)
        run = uuid.uuid4().hex[:8]
        self.dead_letter_topic = kafka.create_topic(f"crash-{run}-dead", 1)
        self.results_topic = kafka.create_topic(f"crash-{run}-results", 1)
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        self._stages: dict[str, Future[Stage]] = {}

    def begin(self, cases: list[Case]) -> None:
        for case in cases:
            self._stages[case.name] = self._pool.submit(self._run, case)

    def _run(self, case: Case) -> Stage:
        return Stage(case, self).run()

    def finished(self, case: Case) -> Stage:
        """Wait for a case; raises what it raised."""
        return self._stages[case.name].result()

    @functools.cached_property
    def _all_dead_letters(self) -> list[DeadLetter]:
        wait(self._stages.values())
        return read_all(self.kafka.bootstrap, self.dead_letter_topic)

    @functools.cached_property
    def _all_results(self) -> list[DeadLetter]:
        wait(self._stages.values())
        return read_all(self.kafka.bootstrap, self.results_topic)

    def dead_letters(self, stage: Stage) -> list[DeadLetter]:
        """Return the dead letters of one case, once all cases have run."""
        found = self._all_dead_letters
        return [one for one in found if one.headers["x-original-topic"] == stage.topic]

    def published(self, stage: Stage) -> list[dict[str, Any]]:
        """Return the results that one case published, once all cases have run."""
        records = (one for one in self._all_results if one.key == stage.id.encode())
        return [json.loads(one.value or b"") for one in records]

    def events(self, stage: Stage) -> set[bytes]:
        entries: Any = self.redis.xrange("dragoman:events")
        return {each[b"status"] for _, each in entries if each[b"job_id"] == stage.id.encode()}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self.redis.close()


@pytest.fixture(scope="module")
def arena(
    request: pytest.FixtureRequest,
    kafka: KafkaBroker,
    redis_installed: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Arena]:
    """Start every selected case at once; each test then waits for its own."""
    chosen: list[Any] = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.function is test_a_death_at_this_point_loses_nothing_and_repeats_only_the_rest
    ]
    with RedisServer(binary=redis_installed) as server:
        made = Arena(kafka, server, tmp_path_factory.mktemp("crash-points"))
        made.begin(chosen)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_death_at_this_point_loses_nothing_and_repeats_only_the_rest(
    arena: Arena, case: Case
) -> None:
    stage = arena.finished(case)
    fields = stage.fields
    assert stage.left == case.left, "claims outstanding after the death"
    dead_letters = arena.dead_letters(stage)
    assert len(dead_letters) == case.dead_letters
    assert len({one.headers["x-original-offset"] for one in dead_letters}) <= 1
    published = arena.published(stage)
    # Two exact duplicates settle concurrently: the death may come before one of them was published.
    least = case.published - 1 if case.kind == "twice" else case.published
    assert least <= len(published) <= case.published
    if case.kind == "conflict":
        assert fields == OWNED
        return
    if stage.kind.status is None:
        assert fields == {}
        return
    assert (fields["status"], int(fields["deliveries"])) == (stage.kind.status, case.deliveries)
    assert not [name for name in fields if name.startswith("claim:")]
    assert stage.result_between in {None, fields["result"]}, "a readable result changed"
    assert all(each == json.loads(fields["result"]) for each in published)
    _hints_are_there(arena, stage)


def _hints_are_there(arena: Arena, stage: Stage) -> None:
    status = stage.kind.status or ""
    assert arena.events(stage) == {status.encode()}
    assert arena.redis.ttl(f"dragoman:job:{stage.id}") > 0
    assert progress(arena.redis, stage.id) == ({3}, {3} if status == "completed" else set())
    assert arena.redis.ttl(f"dragoman:document:{stage.id}:bits:ended") > 0
