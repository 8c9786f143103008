"""A worker that cannot start prints one line, exits with a status and shows no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from dragoman_connections.settings import KafkaSettings
from support.processes.forked_command import run_forked
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, publish
from support.services.ports import free_ports
from support.services.redis_server import RedisServer

MakeTopic = Callable[..., str]


def last_line(worker: WorkerProcess) -> str:
    lines = [line for line in worker.output.splitlines() if line]
    assert "Traceback" not in worker.output
    return lines[-1]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"engine.profile": "nope"}, "engine.profile: there is no 'nope'"),
        ({"engine.kind": "vllm", "engine.model": "/no/such/folder"}, "engine.model"),
        ({"engine.kind": "vllm"}, "engine.model is missing"),
        ({"engine.replicas": 0}, "engine.replicas"),
        ({"engine.replicas": 2, "engine.profile": "nope"}, "engine.profile: there is no 'nope'"),
        ({"redis.durability": "waitaof:1"}, "redis.durability"),
        ({"kafka.topicz": "x"}, "kafka.topicz"),
        ({"retry.attempts": 0}, "retry.attempts"),
    ],
)
def test_an_invalid_setting_exits_with_2_and_is_named(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: MakeTopic,
    tmp_path: Path,
    settings: dict[str, Any],
    named: str,
) -> None:
    at: dict[str, Any] = {"kafka": kafka.bootstrap, "redis": redis_server.url}
    given = {"kafka.dead_letter_topic": topic(), **settings}
    with WorkerProcess(tmp_path, **at, topic=topic(), settings=given) as worker:
        assert worker.wait(timeout_s=90) == 2
        assert named in last_line(worker)


@pytest.mark.parametrize("missing", ["kafka", "redis", "topic"])
def test_an_unreachable_service_exits_with_1_and_is_named(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: MakeTopic,
    tmp_path: Path,
    missing: str,
) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    at: dict[str, Any] = {
        "kafka": kafka.bootstrap,
        "redis": redis_server.url,
        "topic": topic(),
    }
    at[missing] = {"kafka": nobody, "redis": f"redis://{nobody}/0", "topic": "no-such-topic"}[
        missing
    ]
    worker = WorkerProcess(tmp_path, **at, settings={"connect_timeout_s": 3})
    with worker:
        assert worker.wait(timeout_s=30) == 1
        assert (nobody if missing != "topic" else "no-such-topic") in last_line(worker)
        assert "waiting_for_" in worker.output
        assert all(json.loads(line) for line in worker.output.splitlines() if line)


@pytest.mark.parametrize("level", ["aof", "wait:1"])
def test_the_durability_level_is_enforced(
    kafka: KafkaBroker,
    own_redis: RedisServer,
    redis_installed: str,
    topic: MakeTopic,
    tmp_path: Path,
    level: str,
) -> None:
    name = topic()
    kafka.create_topic(f"{name}-dead")
    worker = ForkedWorker(
        tmp_path,
        kafka=kafka.bootstrap,
        redis=own_redis.url,
        topic=name,
        settings={"redis.durability": level},
    )
    publish(kafka.bootstrap, name, [{"job_id": "a", "text": "Hello.", "target_lang": "de"}])
    with worker, redis.Redis.from_url(own_redis.url) as client:
        worker.ready()
        if level == "aof":
            assert ended(client, "a")["status"] == "completed"
            return
        worker.wait_for(lambda: "redis_unavailable" in worker.output, timeout_s=20, what="a wait")
        assert worker.metric("dragoman_commits_total") == 0, "nothing is settled unconfirmed"
        worker.wait_for(
            lambda: worker.metric("dragoman_commit_age_seconds") > 1, timeout_s=20, what="an age"
        )
        port = own_redis.url.rsplit(":", 1)[1].split("/")[0]
        with RedisServer(binary=redis_installed, replicaof=f"127.0.0.1 {port}"):
            worker.wait_for(lambda: "redis_back" in worker.output, timeout_s=30, what="a replica")
            worker.wait_for(
                lambda: worker.metric("dragoman_commits_total") > 0, timeout_s=20, what="a commit"
            )
            worker.wait_for(
                lambda: worker.metric("dragoman_commit_age_seconds") == 0,
                timeout_s=20,
                what="no age",
            )
        assert ended(client, "a")["status"] == "completed"


def checked(topic: str, **settings: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Run `dragoman-worker check --json`; return its exit status and findings."""
    pairs = [part for pair in settings.items() for part in ("--set", "=".join(pair))]
    names = {"kafka.topics": topic, "kafka.dead_letter_topic": f"{topic}-dead"}
    pairs += [part for pair in names.items() for part in ("--set", "=".join(pair))]
    done = run_forked("dragoman-worker", "check", "--json", *pairs)
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {finding["check"]: finding for finding in findings}


def test_check_reports_what_would_fail_later(
    kafka: KafkaBroker, redis_server: RedisServer, topic: MakeTopic
) -> None:
    name = topic(partitions=3)
    at = {
        "kafka.bootstrap_servers": kafka.bootstrap,
        "redis.url": redis_server.url,
        "engine.kind": "echo",
    }
    status, findings = checked(name, **at)
    assert status == 1
    assert findings[f"topic {name}-dead"]["status"] == "bad", "it was not created"
    assert {finding["status"] for finding in findings.values()} == {"ok", "bad"}
    kafka.create_topic(f"{name}-dead", 1)  # one partition: nobody reads it side by side
    status, findings = checked(name, **at)
    assert (status, {finding["status"] for finding in findings.values()}) == (0, {"ok"})
    assert set(findings) == {
        "profile",
        "replicas",
        "redis",
        "announcement",
        "memory",
        "kafka",
        f"topic {name}",
        f"topic {name}-dead",
        f"group {KafkaSettings().group_id}",
        "engine",
    }
    status, findings = checked(name, **{**at, "redis.live_ttl_s": "3600"})
    assert (status, findings[f"topic {name}"]["status"]) == (0, "warn")
    assert "it keeps records for 604800 s" in findings[f"topic {name}"]["detail"]
    status, findings = checked(name, **{**at, "redis.durability": "wait:1"})
    assert (status, findings["redis"]["status"]) == (0, "warn")
    assert "redis.durability = wait:1 needs one more replica" in findings["redis"]["detail"]
    status, findings = checked(name, **{**at, "engine.profile": "nope", "connect_timeout_s": "2"})
    assert (status, findings["profile"]["status"]) == (1, "bad")
    status, findings = checked(name, **{**at, "redis.durability": "waitaof:1"})
    assert (status, findings["redis"]["status"]) == (1, "bad")
    assert "WAITAOF" in findings["redis"]["detail"]
