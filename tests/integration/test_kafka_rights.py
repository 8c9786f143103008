"""Each Kafka right that is withheld is named by the worker, its check and the client."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from support.foreign import ended, publish
from support.processes import command
from support.redis_server import RedisServer
from support.secure_broker import Right, SecureBroker
from support.worker_process import WorkerProcess

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

JOBS, DEAD, RESULTS, GROUP = "jobs", "jobs-dead", "results", "jobs-group"
READ_JOBS = Right("topic", JOBS, "read")
READ_GROUP = Right("group", GROUP, "read")
WRITE_DEAD = Right("topic", DEAD, "write")
WRITE_RESULTS = Right("topic", RESULTS, "write")
WORKER = (READ_JOBS, READ_GROUP, WRITE_DEAD, WRITE_RESULTS)
WRITE_JOBS = Right("topic", JOBS, "write")
READ_DEAD = Right("topic", DEAD, "read")
DESCRIBE_GROUP = Right("group", GROUP, "describe")
OPERATOR = (READ_JOBS, READ_DEAD, WRITE_JOBS, DESCRIBE_GROUP)
SESSION_S = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """The broker, Redis, and the one user whose rights a test changes."""

    broker: SecureBroker
    redis: RedisServer

    def allow(self, *rights: Right) -> None:
        """Let the user do this and nothing else."""
        every = {*WORKER, *OPERATOR, DESCRIBE_JOBS, DESCRIBE_DEAD}
        self.broker.revoke("ann", every - set(rights))
        if rights:
            self.broker.grant("ann", rights)

    def settings(self) -> dict[str, Any]:
        kafka = {f"kafka.{name}": value for name, value in self.kafka().items()}
        return {**kafka, "kafka.results_topic": RESULTS}

    def kafka(self) -> dict[str, str]:
        return self.broker.scram_settings("ann")

    def worker(self, folder: Path, **settings: Any) -> WorkerProcess:
        return WorkerProcess(
            folder,
            kafka=self.broker.scram_bootstrap,
            redis=self.redis.url,
            topic=JOBS,
            settings={**self.settings(), **settings},
        )

    def check(self) -> tuple[int, dict[str, dict[str, str]]]:
        """Exit status and findings of `dragoman-worker check`."""
        settings = {
            **self.settings(),
            "kafka.topics": JOBS,
            "kafka.dead_letter_topic": DEAD,
            "kafka.group_id": GROUP,
            "redis.url": self.redis.url,
            "engine.kind": "echo",
        }
        pairs = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        argv = command("dragoman-worker", "check", "--no-engine", "--json", *pairs)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        return done.returncode, {each["check"]: each for each in findings}

    def client(self, *arguments: str) -> tuple[int, str]:
        """Exit status and stderr of `dragoman`."""
        names = {**self.kafka(), "topics": JOBS, "dead_letter_topic": DEAD, "group_id": GROUP}
        env = {f"DRAGOMAN_KAFKA__{name.upper()}": value for name, value in names.items()}
        env |= {"DRAGOMAN_REDIS__URL": self.redis.url, "DRAGOMAN_CONNECT_TIMEOUT_S": "8"}
        argv = command("dragoman", *arguments)
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, **env},
        )
        return done.returncode, done.stderr


DESCRIBE_JOBS = Right("topic", JOBS, "describe")
DESCRIBE_DEAD = Right("topic", DEAD, "describe")


@pytest.fixture(scope="module")
def secured(
    kafka_installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureBroker]:
    del kafka_installed
    with SecureBroker(tmp_path_factory.mktemp("rights"), {"ann": "open-sesame"}) as broker:
        for name in (JOBS, DEAD, RESULTS):
            broker.create_topic(name, 2)
        yield broker


@pytest.fixture
def place(secured: SecureBroker, redis_server: RedisServer) -> Place:
    return Place(secured, redis_server)


def test_the_check_passes_with_the_rights_of_a_worker(place: Place) -> None:
    place.allow(*WORKER)
    status, findings = place.check()
    assert status == 0, findings
    assert {each["status"] for each in findings.values()} == {"ok"}
    assert "engine" not in findings


@pytest.mark.parametrize(
    ("withheld", "instead", "names", "says"),
    [
        (READ_JOBS, (), f"topic {JOBS}", "may not see it"),
        (READ_JOBS, (DESCRIBE_JOBS,), f"topic {JOBS}", "grant READ on the topic"),
        (READ_GROUP, (), f"group {GROUP}", "grant READ on the group"),
        (READ_GROUP, (DESCRIBE_GROUP,), f"group {GROUP}", "grant READ on the group"),
        (WRITE_DEAD, (), f"topic {DEAD}", "may not see it"),
        (WRITE_DEAD, (DESCRIBE_DEAD,), f"topic {DEAD}", "grant WRITE on the topic"),
        (WRITE_RESULTS, (), f"topic {RESULTS}", "may not see it"),
    ],
    ids=[
        *("see jobs", "READ jobs", "see group", "READ group"),
        *("see dead letters", "WRITE dead letters", "see results"),
    ],
)
def test_the_check_names_a_right_that_a_worker_lacks(
    place: Place, withheld: Right, instead: tuple[Right, ...], names: str, says: str
) -> None:
    place.allow(*(right for right in WORKER if right != withheld), *instead)
    status, findings = place.check()
    assert status == 1
    bad = [name for name, each in findings.items() if each["status"] == "bad"]
    assert bad == [names]
    assert says in findings[names]["detail"]


def test_the_check_names_every_missing_right_at_once(place: Place) -> None:
    place.allow()
    status, findings = place.check()
    assert status == 1
    bad = {name for name, each in findings.items() if each["status"] == "bad"}
    assert bad == {f"topic {JOBS}", f"topic {DEAD}", f"topic {RESULTS}", f"group {GROUP}"}


@pytest.mark.parametrize(
    ("withheld", "names"),
    [(READ_JOBS, JOBS), (READ_GROUP, GROUP), (WRITE_DEAD, DEAD), (WRITE_RESULTS, RESULTS)],
    ids=["READ jobs", "READ group", "WRITE dead letters", "WRITE results"],
)
def test_a_worker_without_a_right_waits_for_it_and_names_it(
    place: Place, tmp_path: Path, withheld: Right, names: str
) -> None:
    place.allow(*(right for right in WORKER if right != withheld))
    with place.worker(tmp_path) as worker:

        def waits() -> bool:
            lines = [line for line in worker.output.splitlines() if "waiting_for_topic" in line]
            return any(
                names in missing for line in lines for missing in json.loads(line)["missing"]
            )

        worker.wait_for(waits, timeout_s=SESSION_S, what="named")
        assert worker.get("/readyz")[0] != 200
        place.broker.grant("ann", [withheld])
        worker.ready(SESSION_S)


def test_a_topic_that_refuses_later_is_told_and_nothing_is_lost(
    place: Place, tmp_path: Path
) -> None:
    place.allow(*WORKER)
    with place.worker(tmp_path) as worker, redis.Redis.from_url(place.redis.url) as client:
        worker.ready(SESSION_S)
        place.broker.revoke("ann", [WRITE_DEAD])

        def told() -> bool:
            status, text = worker.get("/readyz")
            return status == 503 and f"topic {DEAD}" in text

        worker.wait_for(told, timeout_s=SESSION_S, what="/readyz names the topic")
        refused = {"job_id": "refused-1", "text": "x", "target_lang": "no-such-language"}
        fine = {"job_id": "fine-1", "text": "x", "target_lang": "de"}
        publish(place.broker.bootstrap, JOBS, [refused])
        place.broker.grant("ann", [WRITE_DEAD])
        assert ended(client, "refused-1", SESSION_S)["status"] == "failed"
        publish(place.broker.bootstrap, JOBS, [fine])
        worker.ready(SESSION_S)
        assert worker.metric("dragoman_replica_restarts_total") == 0
