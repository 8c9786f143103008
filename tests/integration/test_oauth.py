"""Workers and clients authenticate by OAUTHBEARER with tokens that live for seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from dragoman_connections.settings import DragomanSettings, KafkaSettings, SettingsError
from dragoman_producer import TranslationClient
from dragoman_producer.errors import WrongBroker
from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka.publisher import KafkaPublisher
from support.processes.worker_process import ForkedWorker
from support.services.plain_clients import TERMINAL
from support.services.redis_server import RedisServer
from support.services.secure_broker import Right, SecureBroker, unsecured_token
from support.services.token_renewal import renewed

TOPIC = "tokens"
TOKEN_S = 4.0
RENEW_S = 1.5
JOBS = 150
PATIENCE_S = 120.0
WORKER = [
    Right("topic", TOPIC, "read"),
    Right("topic", f"{TOPIC}-dead", "write"),
    Right("group", f"{TOPIC}-group", "read"),
]

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture(scope="module")
def broker(
    kafka_installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureBroker]:
    """Start a broker that ends every session with its token."""
    del kafka_installed
    with SecureBroker(tmp_path_factory.mktemp("oauth"), {}, reauth_ms=60_000) as made:
        made.create_topic(TOPIC, 4)
        made.create_topic(f"{TOPIC}-dead")
        made.grant("worker", WORKER)
        made.grant("client", [Right("topic", TOPIC, "write")])
        yield made


def settings_of(broker: SecureBroker, file: Path) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.oauth_bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_file": str(file),
    }


def longer_and_longer() -> Callable[[], float]:
    """Return the lifetimes of tokens; they grow, so that a busy machine gets on too."""
    began = time.monotonic()
    return lambda: TOKEN_S + (time.monotonic() - began) / 4


async def test_short_tokens_and_a_late_renewal_cost_no_job_and_no_restart(
    broker: SecureBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    files = tmp_path / "worker.token", tmp_path / "client.token"
    lifetime_s = longer_and_longer()
    with (
        renewed("worker", files[0], lifetime_s, RENEW_S) as renewal,
        renewed("client", files[1], lifetime_s, RENEW_S),
    ):
        kafka = settings_of(broker, files[0])
        with ForkedWorker(
            tmp_path,
            kafka=broker.oauth_bootstrap,
            redis=redis_server.url,
            topic=TOPIC,
            settings={f"kafka.{name}": value for name, value in kafka.items()}
            | {"engine.echo.latency_s": 0.4, "limits.max_in_flight_jobs": 16},
        ) as worker:
            worker.ready(PATIENCE_S)
            await _submit(settings_of(broker, files[1]), redis_server, range(JOBS))
            renewal.paused = True
            files[0].write_text("an-opaque-token-that-nobody-issued")
            worker.wait_for(
                lambda: worker.get("/readyz")[0] == 503, timeout_s=PATIENCE_S, what="cut off"
            )
            await _submit(settings_of(broker, files[1]), redis_server, range(JOBS, 2 * JOBS))
            renewal.paused = False
            worker.wait_for(
                lambda: _ended(redis_server) == 2 * JOBS, timeout_s=PATIENCE_S, what="the last job"
            )
            worker.ready(PATIENCE_S)
            assert worker.running


async def _submit(kafka: dict[str, Any], server: RedisServer, numbers: range) -> None:
    settings = DragomanSettings.model_validate(
        {"kafka": {**kafka, "topics": TOPIC}, "redis": {"url": server.url}}
    )
    jobs = (
        TranslationJob(job_id=f"{TOPIC}-{number}", text="A text.", target_lang="de")
        for number in numbers
    )
    async with TranslationClient(settings=settings) as client:
        assert len([handle async for handle in client.submit_many(jobs)]) == JOBS


def _ended(server: RedisServer) -> int:
    with redis.Redis.from_url(server.url) as client:
        found: Any = [
            client.hget(f"dragoman:job:{TOPIC}-{number}", "status") for number in range(2 * JOBS)
        ]
    return sum(status in TERMINAL for status in found)


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (None, "No such file"),
        ("", "is empty"),
        ("two words", "not one bearer token"),
        (unsecured_token("worker", -5), "expired"),
        ("an-opaque-token-that-nobody-issued", "rejects"),
    ],
    ids=["missing", "empty", "no token", "expired", "refused by the broker"],
)
async def test_an_unusable_token_is_reported_at_the_start_and_never_shown(
    broker: SecureBroker,
    redis_server: RedisServer,
    tmp_path: Path,
    content: str | None,
    reported: str,
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    kafka = settings_of(broker, file)
    publisher = KafkaPublisher(KafkaSettings.model_validate(kafka), client_id="w1")
    with pytest.raises(
        SettingsError, match=rf"^kafka\.sasl_oauth_token_file.*{reported}"
    ) as at_start:
        await publisher.start(Deadline.after(PATIENCE_S))
    await publisher.close()
    settings = DragomanSettings.model_validate(
        {
            "kafka": {**kafka, "topics": TOPIC},
            "redis": {"url": redis_server.url},
            "connect_timeout_s": 1,
        }
    )
    async with TranslationClient(settings=settings) as client:
        with pytest.raises(WrongBroker, match="sasl_oauth_token_file") as at_client:
            await client.submit(TranslationJob(job_id="never", text="A text.", target_lang="de"))
    if content:
        assert content not in str(at_start.value) + str(at_client.value)
