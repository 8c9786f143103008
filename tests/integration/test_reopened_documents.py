"""A document's cancellation is removed before its jobs are published, and a later one stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest
import redis

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_producer import StoreRefused, TranslationClient, TranslationJob
from dragoman_producer.operations import replay
from dragoman_producer.operations.dead_letters import DeadLetterFilter, ReadDeadLetter
from dragoman_producer.operations.replay import ReplayOptions, replay_dead_letters
from dragoman_producer.publisher import Publisher
from dragoman_schemas import names, scripts
from support.services.redis_proxy import RedisProxy
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

DOCUMENT: Final = "book"
CANCELLATION: Final = names.Keys().document_cancel(DOCUMENT)
DEL: Final = b"\r\nDEL\r\n"
PATIENCE_S: Final = 60.0


def a_page(number: int) -> TranslationJob:
    document = {"document_id": DOCUMENT, "index": number, "total": 9}
    return TranslationJob.model_validate(
        {"job_id": f"book.{number}", "text": "Hi.", "target_lang": "de", "document": document}
    )


def a_dead_letter(number: int) -> ReadDeadLetter:
    headers = {
        names.HEADER_ORIGINAL_TOPIC: "dragoman.jobs",
        names.HEADER_ORIGINAL_PARTITION: "0",
        names.HEADER_ORIGINAL_OFFSET: str(number),
        names.HEADER_JOB_ID: f"book.{number}",
        names.HEADER_ERROR_CODE: "engine_failed",
    }
    value = json.dumps(a_page(number).model_dump(mode="json", exclude_none=True)).encode()
    encoded = tuple((name, text.encode()) for name, text in headers.items())
    return ReadDeadLetter(0, number, 0, f"book.{number}".encode(), value, encoded)


def settings_for(url: str, **options: Any) -> DragomanSettings:
    return load_settings(DragomanSettings, options={"redis.url": url, **options})


@pytest.fixture
def admin(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url) as client:
        yield client


@pytest.fixture
async def way(redis_server: RedisServer) -> AsyncIterator[RedisProxy]:
    async with RedisProxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, admin: redis.Redis) -> list[bool]:
    """Publish nothing; record of each job whether its document was cancelled at that moment."""
    seen: list[bool] = []

    async def publish(*_: object) -> None:
        seen.append(bool(admin.exists(CANCELLATION)))

    monkeypatch.setattr(Publisher, "publish", publish)
    return seen


def cancelled(admin: redis.Redis, when: str = "before") -> None:
    admin.set(CANCELLATION, when, px=600_000)


def replayed(monkeypatch: pytest.MonkeyPatch, settings: DragomanSettings) -> asyncio.Task[Any]:
    """Replay four dead letters of the document, without a broker."""

    async def dead_letters(*_: object) -> AsyncIterator[ReadDeadLetter]:
        for number in range(4):
            yield a_dead_letter(number)

    monkeypatch.setattr(replay, "stream_dead_letters", dead_letters)
    replaying = replay_dead_letters(
        settings, DeadLetterFilter(), ReplayOptions(), lambda judged: None
    )
    return asyncio.create_task(replaying)


async def test_a_replay_publishes_no_job_of_a_document_that_is_still_cancelled(
    way: RedisProxy,
    admin: redis.Redis,
    published: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cancelled(admin)
    way.hold(DEL)
    replaying = replayed(monkeypatch, settings_for(way.url))
    async with asyncio.timeout(PATIENCE_S):
        await way.held.wait()
        way.let_go()
        assert (await replaying).replayed == 4
    assert published == [False] * 4


async def test_a_submission_publishes_no_job_of_a_document_that_is_still_cancelled(
    way: RedisProxy, admin: redis.Redis, published: list[bool]
) -> None:
    cancelled(admin)
    way.hold(DEL)

    async def submit(client: TranslationClient) -> None:
        async for _ in client.submit_many(map(a_page, range(9))):
            pass

    async with TranslationClient(settings=settings_for(way.url)) as client:
        submitting = asyncio.create_task(submit(client))
        async with asyncio.timeout(PATIENCE_S):
            await way.held.wait()
            way.let_go()
            await submitting
    assert published == [False] * 9


async def test_a_cancellation_after_a_cancelled_submission_stays(
    way: RedisProxy, admin: redis.Redis, published: list[bool]
) -> None:
    cancelled(admin)
    way.hold(DEL)
    async with TranslationClient(settings=settings_for(way.url)) as client:
        submitting = asyncio.create_task(client.submit(a_page(0)))
        async with asyncio.timeout(PATIENCE_S):
            await way.held.wait()
        submitting.cancel()
        await asyncio.gather(submitting, return_exceptions=True)
        cancelling = asyncio.create_task(client.cancel(document_id=DOCUMENT))
        await asyncio.wait([cancelling], timeout=0.5)  # it waits for the removal under way
        way.let_go()
        await cancelling
    assert admin.exists(CANCELLATION)
    assert published == []


@pytest.mark.parametrize("lost", [DEL, scripts.STUB.sha1.encode()], ids=["removal", "stub"])
async def test_a_repeated_submission_keeps_a_cancellation_made_meanwhile(
    way: RedisProxy, admin: redis.Redis, published: list[bool], lost: bytes
) -> None:
    cancelled(admin)
    async with TranslationClient(settings=settings_for(way.url)) as client:
        way.cut_after(lost)
        submitting = asyncio.create_task(client.submit(a_page(0)))
        async with asyncio.timeout(PATIENCE_S):
            while not way.cuts:  # noqa: ASYNC110  the proxy has no event for it
                await asyncio.sleep(0)
        cancelled(admin, "meanwhile")
        await submitting
    assert admin.get(CANCELLATION) == b"meanwhile"
    assert len(published) == 1


async def test_a_removal_is_repeated_until_it_is_done(
    redis_server: RedisServer, admin: redis.Redis, published: list[bool]
) -> None:
    cancelled(admin)
    admin.config_set("min-replicas-to-write", 1)  # every write is refused
    reopened: set[str] = set()
    settings = settings_for(redis_server.url, connect_timeout_s=1)
    async with TranslationClient(settings=settings) as client:
        try:
            with pytest.raises(StoreRefused, match="NOREPLICAS"):
                await client.submit(a_page(0), reopened=reopened)
        finally:
            admin.config_set("min-replicas-to-write", 0)
        assert admin.exists(CANCELLATION)
        await client.submit(a_page(0), reopened=reopened)
        assert published == [False]
        cancelled(admin, "later")
        await client.submit(a_page(1), reopened=reopened)
    assert published == [False, True]
    assert admin.get(CANCELLATION) == b"later"


async def test_a_key_of_another_type_is_removed_like_a_cancellation(
    redis_server: RedisServer, admin: redis.Redis, published: list[bool]
) -> None:
    admin.rpush(CANCELLATION, "x")
    async with TranslationClient(settings=settings_for(redis_server.url)) as client:
        await client.submit(a_page(0))
    assert published == [False]


async def test_a_user_without_the_right_to_read_a_cancellation_removes_it(
    redis_server: RedisServer, admin: redis.Redis, published: list[bool]
) -> None:
    """The rights that clients of earlier versions have."""
    cancelled(admin)
    admin.acl_setuser(
        "earlier", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all", "-get"]
    )
    try:
        url = redis_server.url.replace("redis://", "redis://earlier:secret@")
        async with TranslationClient(settings=settings_for(url)) as client:
            await client.submit(a_page(0))
    finally:
        admin.acl_deluser("earlier")
    assert published == [False]
