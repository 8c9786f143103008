"""A result of another writer is confirmed before it is relied on: a primary and a replica."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from dragoman_schemas import names, scripts
from dragoman_schemas.wire import encode_result, now_rfc3339
from dragoman_worker.errors import Unavailable
from dragoman_worker.stores.redis import RedisStore
from support.builders.store_calls import (
    FINGERPRINT,
    TIMEOUT_S,
    claimed,
    redis_store,
    result,
    until_served,
)
from support.processes.waiting import eventually, wait_until
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

KEYS = names.Keys()


@pytest.fixture
def pair(redis_installed: str) -> Iterator[tuple[RedisServer, RedisServer]]:
    with RedisServer(binary=redis_installed) as primary, RedisServer(binary=redis_installed) as one:
        with redis.Redis.from_url(one.url) as admin:
            admin.replicaof("127.0.0.1", str(primary.port))
            wait_until(
                lambda: admin.info("replication")["master_link_status"] == "up",
                timeout_s=TIMEOUT_S,
                what="a replica in step",
            )
        yield primary, one


@pytest.fixture
async def store(pair: tuple[RedisServer, RedisServer]) -> AsyncIterator[RedisStore]:
    async with redis_store(pair[0].url, durability="wait:1") as made:
        yield made


def _end_of_job(status: str) -> list[str | bytes]:
    return scripts.finish_args(
        status=status,
        replays=0,
        result=encode_result(result("completed", "another's")),
        finished_at=now_rfc3339(),
        ttl_ms=60_000,
        fingerprint=FINGERPRINT,
        deliveries=1,
    )


def ended_by_another(primary: RedisServer) -> None:
    """Finish the job as another worker, without a confirmation."""
    with redis.Redis.from_url(primary.url) as client:
        client.eval(scripts.FINISH.text, 1, KEYS.job("a1"), *_end_of_job("completed"))


async def test_an_end_that_no_replica_has_is_not_relied_on_whoever_wrote_it(
    pair: tuple[RedisServer, RedisServer], store: RedisStore
) -> None:
    primary, replica = pair
    claim = await claimed(store)
    assert not await until_served(lambda: store.confirm("a1"))  # `running` is no end
    os.kill(replica.pid, signal.SIGSTOP)
    try:
        await asyncio.to_thread(ended_by_another, primary)
        with pytest.raises(Unavailable, match="too few servers confirmed"):
            await store.confirm("a1")
        with pytest.raises(Unavailable, match="too few servers confirmed"):
            await store.finish(claim, result(text="refused"))
    finally:
        os.kill(replica.pid, signal.SIGCONT)
    assert await until_served(lambda: store.confirm("a1"))
    stands = await until_served(lambda: store.finish(claim, result(text="refused")))
    assert stands is not None
    assert stands.translations[0].text == "another's"
    with redis.Redis.from_url(replica.url) as client:
        assert client.hget(KEYS.job("a1"), "status") == b"completed"


async def test_an_end_that_a_fail_over_lost_is_not_relied_on(
    pair: tuple[RedisServer, RedisServer], store: RedisStore
) -> None:
    primary, _ = pair
    await claimed(store)
    await asyncio.to_thread(ended_by_another, primary)
    assert await until_served(lambda: store.confirm("a1"))
    with redis.Redis.from_url(primary.url) as client:  # as the promoted server has it
        client.hset(KEYS.job("a1"), "status", "running")
        assert not await until_served(lambda: store.confirm("a1"))
        client.delete(KEYS.job("a1"))
        assert not await until_served(lambda: store.confirm("a1"))


async def test_an_end_of_our_own_that_was_not_confirmed_is_not_relied_on_when_it_is_repeated(
    pair: tuple[RedisServer, RedisServer], store: RedisStore
) -> None:
    """The second finish is refused by the first: it must not pass for a confirmation of it."""
    _, replica = pair
    claim = await claimed(store)
    os.kill(replica.pid, signal.SIGSTOP)
    try:
        for _ in range(3):
            with pytest.raises(Unavailable, match="too few servers confirmed"):
                await store.finish(claim, result())
    finally:
        os.kill(replica.pid, signal.SIGCONT)
    assert await until_served(lambda: store.finish(claim, result())) is not None


@pytest.mark.parametrize("script", [scripts.CONFIRM, scripts.FINISH], ids=lambda each: each.name)
async def test_what_stands_reaches_the_append_only_file_again_although_nothing_changes(
    redis_installed: str, script: scripts.Script
) -> None:
    """The write is what a WAIT waits for; some servers count reads too, others do not."""
    arguments = _end_of_job("failed") if script is scripts.FINISH else scripts.confirm_args()
    with (
        RedisServer(binary=redis_installed, appendonly="yes", appendfsync="always") as server,
        redis.Redis.from_url(server.url) as admin,
    ):
        ended_by_another(server)
        before, size = admin.hgetall(KEYS.job("a1")), admin.info()["aof_current_size"]
        ttl = admin.pttl(KEYS.job("a1"))
        admin.eval(script.text, 1, KEYS.job("a1"), *arguments)

        def grown() -> bool:
            return bool(admin.info()["aof_current_size"] > size)

        await eventually(grown, timeout_s=TIMEOUT_S, what="a longer append-only file")
        assert admin.hgetall(KEYS.job("a1")) == before
        assert 0 < admin.pttl(KEYS.job("a1")) <= ttl
