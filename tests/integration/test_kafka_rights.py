"""The worker, its check and the client name each missing Kafka right."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from dragoman_connections.settings import DragomanSettings
from dragoman_producer import BrokerRefused, TranslationClient
from dragoman_schemas.jobs import TranslationJob
from support.gateway_callers import asked, post
from support.processes.forked_command import run_forked
from support.processes.gateway_process import GatewayProcess
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.plain_clients import ended, publish, publish_with_headers, read_all
from support.services.redis_server import RedisServer
from support.services.secure_broker import Right, SecureBroker

pytestmark = pytest.mark.kafka

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
DESCRIBE_JOBS = Right("topic", JOBS, "describe")
DESCRIBE_DEAD = Right("topic", DEAD, "describe")
WRITE_OTHER = Right("topic", "other", "write")
NEW_JOBS = "new-jobs"
CREATE = Right("topic", NEW_JOBS, "create")
DESCRIBE_NEW = Right("topic", NEW_JOBS, "describe")
EVERY = {*WORKER, *OPERATOR, DESCRIBE_JOBS, DESCRIBE_DEAD, WRITE_OTHER, CREATE, DESCRIBE_NEW}
DEAD_LETTER = {"job_id": "dead-1", "text": "A text.", "target_lang": "de"}
DEAD_LETTER_HEADERS = [
    ("x-original-topic", JOBS.encode()),
    ("x-original-partition", b"0"),
    ("x-original-offset", b"1000000"),
    ("x-job-id", b"dead-1"),
    ("x-error-code", b"engine_failed"),
]
SESSION_S = 60.0
COMMAND_S = 60.0
CONNECT_S = 300.0
"""Longer than a command may take: a refusal must not wait for it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The broker, Redis, and the user whose rights a test changes."""

    broker: SecureBroker
    redis: RedisServer

    def allow(self, *rights: Right) -> None:
        """Grant the user these rights and no others."""
        self.broker.revoke("ann", EVERY - set(rights))
        if rights:
            self.broker.grant("ann", rights)

    def settings(self) -> dict[str, Any]:
        kafka = {f"kafka.{name}": value for name, value in self.kafka().items()}
        return {**kafka, "kafka.results_topic": RESULTS}

    def kafka(self) -> dict[str, str]:
        return self.broker.scram_settings("ann")

    def worker(self, folder: Path, **settings: Any) -> WorkerProcess:
        return ForkedWorker(
            folder,
            kafka=self.broker.scram_bootstrap,
            redis=self.redis.url,
            topic=JOBS,
            settings={**self.settings(), **settings},
        )

    def check(self) -> tuple[int, dict[str, dict[str, str]]]:
        """Run `dragoman-worker check`; return its exit status and findings."""
        settings = {
            **self.settings(),
            "kafka.topics": JOBS,
            "kafka.dead_letter_topic": DEAD,
            "kafka.group_id": GROUP,
            "redis.url": self.redis.url,
            "engine.kind": "echo",
        }
        pairs = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        done = run_forked("dragoman-worker", "check", "--no-engine", "--json", *pairs)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        return done.returncode, {each["check"]: each for each in findings}

    def client(self, *arguments: str) -> tuple[int, str]:
        """Run `dragoman`; return its exit status and stderr."""
        return self.client_of(JOBS, *arguments)

    def client_of(self, topic: str, *arguments: str) -> tuple[int, str]:
        """Run `dragoman` with another topic of jobs."""
        env = {f"DRAGOMAN_KAFKA__{k.upper()}": v for k, v in self.client_settings(topic).items()}
        env |= {"DRAGOMAN_REDIS__URL": self.redis.url, "DRAGOMAN_CONNECT_TIMEOUT_S": f"{CONNECT_S}"}
        done = run_forked("dragoman", *arguments, env={**os.environ, **env}, timeout_s=COMMAND_S)
        return done.returncode, done.stderr

    def client_settings(self, topic: str = JOBS) -> dict[str, str]:
        return {
            **self.kafka(),
            "topics": topic,
            "dead_letter_topic": DEAD,
            "group_id": GROUP,
        }

    def records(self, job_id: str) -> list[dict[str, str]]:
        """Return the headers of each record of a job on the topic of jobs."""
        found = read_all(self.broker.bootstrap, JOBS, 2)
        values = [(json.loads(record.value or b"{}"), record.headers) for record in found]
        return [headers for value, headers in values if value.get("job_id") == job_id]


@pytest.fixture(scope="module")
def secured(
    kafka_installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureBroker]:
    del kafka_installed
    with SecureBroker(tmp_path_factory.mktemp("rights"), {"ann": "open-sesame"}) as broker:
        for name in (JOBS, DEAD, RESULTS):
            broker.create_topic(name, 2)
        publish(broker.bootstrap, JOBS, [{"job_id": "kept-1", "text": "x", "target_lang": "de"}])
        publish_with_headers(broker.bootstrap, DEAD, DEAD_LETTER, DEAD_LETTER_HEADERS)
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


def test_a_right_revoked_later_is_reported_and_nothing_is_lost(
    place: Place, tmp_path: Path
) -> None:
    place.allow(*WORKER)
    with place.worker(tmp_path) as worker, redis.Redis.from_url(place.redis.url) as client:
        worker.ready(SESSION_S)
        place.broker.revoke("ann", [WRITE_DEAD])

        def reported() -> bool:
            status, text = worker.get("/readyz")
            return status == 503 and f"topic {DEAD}" in text

        worker.wait_for(reported, timeout_s=SESSION_S, what="/readyz names the topic")
        refused = {"job_id": "refused-1", "text": "x", "target_lang": "no-such-language"}
        fine = {"job_id": "fine-1", "text": "x", "target_lang": "de"}
        publish(place.broker.bootstrap, JOBS, [refused])
        place.broker.grant("ann", [WRITE_DEAD])
        assert ended(client, "refused-1", SESSION_S)["status"] == "failed"
        publish(place.broker.bootstrap, JOBS, [fine])
        worker.ready(SESSION_S)
        assert worker.running


# --- clients -----------------------------------------------------------------------------------


def one_line(errors: str, *parts: str) -> bool:
    """Return whether stderr is one line that holds all the parts."""
    (line,) = errors.splitlines()
    return all(part in line for part in parts) and "speaks Kafka" not in line


@pytest.mark.parametrize(
    ("job_id", "rights", "says"),
    [
        ("sees-none", (), "grant WRITE on the topic"),
        ("sees-jobs", (DESCRIBE_JOBS,), "grant WRITE on the topic"),
        ("sees-other", (WRITE_OTHER,), "does not exist, or this user may not see it"),
        ("sees-both", (WRITE_OTHER, DESCRIBE_JOBS), "grant WRITE on the topic"),
    ],
    ids=["DESCRIBE", "WRITE", "DESCRIBE, writes elsewhere", "WRITE, writes elsewhere"],
)
def test_a_submission_without_the_right_names_it_and_works_once_it_is_granted(
    place: Place, job_id: str, rights: tuple[Right, ...], says: str
) -> None:
    place.allow(*rights)
    submit = ("submit", "--to", "de", "--id", job_id, "A text.")
    status, errors = place.client(*submit)
    assert status == 1, errors
    assert one_line(errors, f"topic {JOBS}", "grant WRITE", says), errors
    assert place.records(job_id) == []
    place.allow(WRITE_JOBS)
    assert place.client(*submit) == (0, "")
    assert len(place.records(job_id)) == 1


async def test_a_running_client_is_refused_without_the_right_and_continues_with_it(
    place: Place,
) -> None:
    settings = DragomanSettings.model_validate(
        {"kafka": place.client_settings(), "redis": {"url": place.redis.url}}
    )
    place.allow(WRITE_JOBS)
    async with TranslationClient(settings=settings) as client:
        await client.submit(a_job("running-1"))
        place.allow(DESCRIBE_JOBS)
        with pytest.raises(BrokerRefused, match=f"topic {JOBS}: grant WRITE on the topic"):
            await client.submit(a_job("running-2"))
        place.allow(WRITE_JOBS)
        await client.submit(a_job("running-2"))
    assert len(place.records("running-1")) == len(place.records("running-2")) == 1


def a_job(job_id: str) -> TranslationJob:
    return TranslationJob(job_id=job_id, text="A text.", target_lang="de")


# --- operators ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "rights", "missing", "says"),
    [
        (("topics", "show"), (DESCRIBE_JOBS, DESCRIBE_DEAD), DESCRIBE_GROUP, "grant DESCRIBE"),
        (("audit",), (READ_JOBS, READ_DEAD), DESCRIBE_GROUP, "grant DESCRIBE"),
        (("audit",), (DESCRIBE_JOBS, READ_DEAD, DESCRIBE_GROUP), READ_JOBS, "grant READ"),
        (("audit",), (READ_JOBS, DESCRIBE_DEAD, DESCRIBE_GROUP), READ_DEAD, "grant READ"),
        (("dead-letters", "list"), (READ_JOBS,), READ_DEAD, "may not see it"),
        (("dead-letters", "list"), (DESCRIBE_DEAD,), READ_DEAD, "grant READ"),
        (("dead-letters", "show", "dead-1"), (DESCRIBE_DEAD,), READ_DEAD, "grant READ"),
        (
            ("dead-letters", "replay", "--all", "--dry-run"),
            (WRITE_JOBS,),
            READ_DEAD,
            "may not see it",
        ),
    ],
    ids=[
        *("show: DESCRIBE group", "audit: DESCRIBE group"),
        *("audit: READ jobs", "audit: READ dead letters"),
        *("list: DESCRIBE dead letters", "list: READ dead letters", "show: READ dead letters"),
        "replay: DESCRIBE dead letters",
    ],
)
def test_an_operator_command_names_the_missing_right_and_works_once_it_is_granted(
    place: Place, arguments: tuple[str, ...], rights: tuple[Right, ...], missing: Right, says: str
) -> None:
    place.allow(*rights)
    status, errors = place.client(*arguments)
    assert status == 1, errors
    assert one_line(errors, f"{missing.kind} {missing.name}", says), errors
    place.broker.grant("ann", [missing])
    _, errors = place.client(*arguments)
    assert missing.name not in errors


@pytest.mark.parametrize("arguments", [("topics", "show"), ("audit",)], ids=["show", "audit"])
def test_invisible_topics_are_not_reported_as_missing(
    place: Place, arguments: tuple[str, ...]
) -> None:
    place.allow()
    status, errors = place.client(*arguments)
    assert status == 1, errors
    for name in (JOBS, DEAD):
        assert f"topic {name} does not exist, or this user may not see it" in errors
    assert "DESCRIBE on the topic" in errors


def test_a_replay_without_the_right_to_write_publishes_nothing_and_works_once_it_is_granted(
    place: Place,
) -> None:
    place.allow(READ_DEAD)
    status, errors = place.client("dead-letters", "replay", "dead-1")
    assert status == 1, errors
    assert one_line(errors, f"topic {JOBS}", "grant WRITE on the topic"), errors
    assert place.records("dead-1") == []
    place.allow(READ_DEAD, WRITE_JOBS)
    status, errors = place.client("dead-letters", "replay", "dead-1")
    assert status == 0, errors
    assert [headers["dragoman-replay"] for headers in place.records("dead-1")] == ["1"]


def test_topics_are_made_once_the_right_to_create_them_is_granted(place: Place) -> None:
    place.allow(READ_DEAD)
    create = ("topics", "create", "--partitions", "2")
    status, errors = place.client_of(NEW_JOBS, *create)
    assert status == 1, errors
    assert one_line(errors, f"topic {NEW_JOBS}", "grant CREATE on the topic"), errors
    place.broker.grant("ann", [CREATE])
    assert place.client_of(NEW_JOBS, *create) == (0, "")
    status, errors = place.client_of(NEW_JOBS, *create)
    assert status == 1, errors
    assert one_line(errors, f"topic {NEW_JOBS} exists", "grant DESCRIBE on the topic"), errors
    place.broker.grant("ann", [DESCRIBE_NEW])
    assert place.client_of(NEW_JOBS, *create) == (0, "")


@pytest.mark.parametrize(
    ("rights", "answer", "says"),
    [
        ((WRITE_JOBS, DESCRIBE_GROUP), "the request continues", None),
        ((WRITE_JOBS,), "the request continues", "no load is shed"),
        ((DESCRIBE_JOBS, DESCRIBE_GROUP), "cannot be reached", "grant WRITE"),
    ],
    ids=["all", "see group", "WRITE jobs"],
)
def test_a_gateway_works_with_its_rights_and_names_a_missing_one(
    place: Place, tmp_path: Path, rights: tuple[Right, ...], answer: str, says: str | None
) -> None:
    place.allow(*rights)
    settings = {**place.settings(), "serve.hold_s": 3, "connect_timeout_s": 10}
    with GatewayProcess(
        tmp_path,
        kafka=place.broker.scram_bootstrap,
        redis=place.redis.url,
        topic=JOBS,
        settings=settings,
    ) as gateway:
        gateway.ready()
        text = " ".join(right.operation for right in rights)
        status, said = post(gateway.url, asked(f"A text of {text} {len(rights)}."))
        assert (status, answer in said["message"]) == (503, True)  # no worker is there
        warned = [line for line in gateway.output.splitlines() if '"warning"' in line]
        if says is None:
            assert warned == []
        else:
            gateway.wait_for(lambda: says in gateway.output, timeout_s=SESSION_S, what=says)
