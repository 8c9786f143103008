"""A job too large to publish ends as failed with all that follows, whichever reply is lost."""

from __future__ import annotations

import pytest
import redis

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_producer import JobTooLarge, TranslationClient, TranslationJob
from dragoman_producer.publisher import Publisher, RecordTooLarge
from dragoman_schemas import names, scripts
from support.services.document_bits import progress
from support.services.redis_proxy import RedisProxy
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

KEYS = names.Keys()


def a_job() -> TranslationJob:
    document = {"document_id": "book", "index": 1, "total": 4}
    return TranslationJob.model_validate(
        {"job_id": "book.1", "text": "Hi.", "target_lang": "de", "document": document}
    )


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse every job as the broker refuses a large one; record the topics."""
    topics: list[str] = []

    async def publish(_: Publisher, topic: str, *more: object) -> None:
        topics.append(topic)
        if topic == "jobs":
            raise RecordTooLarge

    monkeypatch.setattr(Publisher, "publish", publish)
    return topics


@pytest.fixture(autouse=True)
def loaded(redis_server: RedisServer) -> None:
    """Load the scripts: otherwise the lost reply would be NOSCRIPT."""
    with redis.Redis.from_url(redis_server.url) as admin:
        for script in scripts.SCRIPTS:
            admin.script_load(script.text)


@pytest.mark.parametrize("lost", [scripts.STUB, scripts.FINISH], ids=lambda script: script.name)
async def test_a_refusal_is_recorded_in_full_although_a_reply_is_lost(
    redis_server: RedisServer, published: list[str], lost: scripts.Script
) -> None:
    async with RedisProxy(redis_server.port) as proxy:
        options = {
            "redis.url": proxy.url,
            "kafka.topics": "jobs",
            "kafka.dead_letter_topic": "dead-letters",
            "kafka.results_topic": "results",
        }
        settings = load_settings(DragomanSettings, options=options)
        async with TranslationClient(settings=settings) as client:
            proxy.cut_after(lost.sha1.encode())
            with pytest.raises(JobTooLarge):
                await client.submit(a_job())
        assert proxy.cuts == 1
    with redis.Redis.from_url(redis_server.url) as admin:
        assert admin.hget(KEYS.job("book.1"), "status") == b"failed"
        assert progress(admin, "book") == ({1}, set())
        assert admin.xlen(KEYS.events) == 1
    assert published == ["jobs", "dead-letters", "results"]


async def test_a_repeated_submission_does_not_fail_the_queued_job_of_another_client(
    redis_server: RedisServer, published: list[str]
) -> None:
    with redis.Redis.from_url(redis_server.url) as admin:
        key = KEYS.job("book.1")
        admin.hset(key, mapping={"status": "queued", "queued_at": "2030-01-01T00:00:00.000Z"})
        admin.expire(key, 600)
        async with RedisProxy(redis_server.port) as proxy:
            options = {"redis.url": proxy.url, "kafka.topics": "jobs"}
            settings = load_settings(DragomanSettings, options=options)
            async with TranslationClient(settings=settings) as client:
                proxy.cut_after(scripts.STUB.sha1.encode())
                with pytest.raises(JobTooLarge):
                    await client.submit(a_job())
            assert proxy.cuts == 1
        assert admin.hget(key, "status") == b"queued"
    assert published == ["jobs"]
