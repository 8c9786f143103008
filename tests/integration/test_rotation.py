"""Replaced certificates and ended sessions cost seconds, but no job and no restart."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from dragoman_connections.redis_access.calls import Command
from dragoman_worker.stores.connection import RedisConnection
from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.certificates import Authority, Certificate
from support.services.plain_clients import TERMINAL, publish
from support.services.ports import free_port
from support.services.redis_server import RedisServer
from support.services.secure_broker import Right, SecureBroker, cluster_right

USER = "worker"
TOPIC = "rotated"
REAUTH_MS = 3_000
RIGHTS = [
    *(Right("topic", TOPIC, operation) for operation in ("read", "describe")),
    *(Right("topic", f"{TOPIC}-dead", operation) for operation in ("write", "describe")),
    *(Right("group", f"{TOPIC}-group", operation) for operation in ("read", "describe")),
    cluster_right("describe"),
]

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def broker(kafka_installed: Path, tmp_path: Path) -> Iterator[SecureBroker]:
    del kafka_installed
    users = {USER: "open-sesame"}
    with SecureBroker(tmp_path / "broker", users, reauth_ms=REAUTH_MS) as made:
        made.create_topic(TOPIC, 4)
        made.create_topic(f"{TOPIC}-dead")
        made.grant(USER, RIGHTS)
        yield made


NewWorker = Callable[[dict[str, str]], WorkerProcess]


@pytest.fixture
def new_worker(tmp_path: Path, redis_server: RedisServer) -> NewWorker:
    def make(kafka: dict[str, str]) -> WorkerProcess:
        settings = {f"kafka.{name}": value for name, value in kafka.items()}
        return ForkedWorker(
            tmp_path,
            kafka=kafka["bootstrap_servers"],
            redis=redis_server.url,
            topic=TOPIC,
            settings=settings | {"engine.echo.latency_s": 0.3, "limits.max_in_flight_jobs": 16},
        )

    return make


class Load:
    """Jobs of a sender that is not affected by the rotation."""

    def __init__(self, broker: SecureBroker, server: RedisServer) -> None:
        self._broker = broker
        self._server = server
        self._names: list[str] = []

    def publish(self, count: int) -> None:
        new = [f"{TOPIC}-{len(self._names) + number}" for number in range(count)]
        jobs = [{"job_id": name, "text": name, "target_lang": "de"} for name in new]
        publish(self._broker.bootstrap, TOPIC, jobs)
        self._names += new

    def ended(self) -> int:
        with redis.Redis.from_url(self._server.url) as client:
            found: Any = [client.hget(f"dragoman:job:{name}", "status") for name in self._names]
        return sum(status in TERMINAL for status in found)

    def all_end(self, worker: WorkerProcess) -> None:
        worker.wait_for(
            lambda: self.ended() == len(self._names),
            timeout_s=120,
            what=f"the ends of {len(self._names)} jobs",
        )


def put(folder: Path, authority: Authority, pair: Certificate) -> None:
    """Write the certificate files of a client."""
    folder.mkdir(exist_ok=True)
    shutil.copy(authority.ca, folder / "ca.pem")
    shutil.copy(pair.certificate, folder / "client.pem")
    shutil.copy(pair.key, folder / "client.key")


def test_a_worker_continues_with_the_certificates_of_a_new_authority(
    broker: SecureBroker, redis_server: RedisServer, new_worker: NewWorker, tmp_path: Path
) -> None:
    files = tmp_path / "client"
    put(files, broker.authority, broker.authority.issue(USER))
    load = Load(broker, redis_server)
    with new_worker(broker.mtls_settings(files)) as worker:
        worker.ready(60)
        load.publish(200)
        wait_until(load.ended, timeout_s=60, what="a first result")
        broker.restart_with_a_new_authority()
        load.publish(50)
        worker.wait_for(lambda: worker.get("/readyz")[0] == 503, timeout_s=60, what="cut off")
        new = broker.authority.issue(USER)
        put(files, broker.authority, new)
        worker.ready(60)
        load.all_end(worker)
        assert worker.running


def test_ended_sessions_and_a_password_changed_before_its_file_cost_no_job(
    broker: SecureBroker, redis_server: RedisServer, new_worker: NewWorker, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("open-sesame")
    kafka = broker.scram_settings(USER)
    del kafka["sasl_plain_password"]
    load = Load(broker, redis_server)
    with new_worker({**kafka, "sasl_plain_password_file": str(file)}) as worker:
        worker.ready(60)
        load.publish(700)
        # About 10 s of work under load: three lifetimes of a session.
        worker.wait_for(lambda: load.ended() > 500, timeout_s=120, what="three sessions of work")
        worker.ready(60)
        broker.change_password(USER, "another")
        load.publish(50)
        worker.wait_for(lambda: worker.get("/readyz")[0] == 503, timeout_s=60, what="cut off")
        file.write_text("another")
        worker.ready(60)
        load.all_end(worker)
        assert worker.running


async def test_redis_connections_follow_the_certificates_of_a_new_authority(
    redis_installed: str, tmp_path: Path
) -> None:
    files, port = tmp_path / "client", free_port()
    authority = Authority(tmp_path / "authority")
    put(files, authority, authority.issue(USER))
    pair = authority.issue("redis")
    ping: list[Command] = [("PING",)]
    with RedisServer(
        binary=redis_installed,
        tls_port=str(port),
        tls_cert_file=str(pair.certificate),
        tls_key_file=str(pair.key),
        tls_ca_cert_file=str(authority.ca),
        tls_auth_clients="yes",
    ) as server:
        own = f"ssl_certfile={files}/client.pem&ssl_keyfile={files}/client.key"
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={files}/ca.pem&{own}"
        connection = RedisConnection(url)
        assert await connection.send(ping)
        server.kill()
        new = Authority(tmp_path / "authority")
        new.issue("redis")
        server.start()
        with pytest.raises(redis.ConnectionError):
            await connection.send(ping)
        put(files, new, new.issue(USER))
        assert await connection.send(ping)
        await connection.close()
