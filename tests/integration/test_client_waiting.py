"""Integration tests of waits for results, with a real Redis that dies and returns."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_producer import (
    ClientClosed,
    JobStatus,
    ResultTimeout,
    StoreUnreachable,
    TranslationClient,
    Unreadable,
    watch,
)
from support.fakes.played_worker import PlayedWorker
from support.processes.waiting import eventually
from support.services.redis_server import RedisServer

_OWNER = "f" * 64


def settings_for(server: RedisServer, connect_timeout_s: float = 10.0) -> DragomanSettings:
    options = {"redis.url": server.url, "connect_timeout_s": connect_timeout_s}
    return load_settings(DragomanSettings, options=options)


@pytest.fixture
def worker(redis_server: RedisServer) -> Iterator[PlayedWorker]:
    played = PlayedWorker(redis_server.url)
    yield played
    played.close()


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[TranslationClient]:
    async with TranslationClient(settings=settings_for(redis_server)) as opened:
        yield opened


async def test_a_result_written_at_any_moment_around_the_wait_is_never_missed(
    client: TranslationClient, worker: PlayedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Race 3,000 results against the start of their waits, without later reads of the key."""
    monkeypatch.setattr(watch, "_FIRST_REREAD_S", 1000.0)
    chance = random.Random(7)
    for start in range(0, 3000, 30):
        job_ids = [f"race-{number}" for number in range(start, start + 30)]

        async def ends(job_ids: list[str] = job_ids) -> None:
            for job_id in chance.sample(job_ids, len(job_ids)):
                await asyncio.sleep(chance.choice([0, 0, 0.0002]))
                worker.finish(job_id, _OWNER, job_id)

        async def waited(job_id: str) -> str:
            await asyncio.sleep(chance.choice([0, 0, 0.001, 0.003]))
            return await client.job(job_id).text()

        ending = asyncio.create_task(ends())
        async with asyncio.timeout(20):
            assert await asyncio.gather(*(waited(job_id) for job_id in job_ids)) == job_ids
        await ending


async def test_a_lost_hint_delays_a_result_by_seconds(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    waiting = [asyncio.create_task(client.job(f"lost-{n}").text(30)) for n in range(20)]
    await asyncio.sleep(0)
    for number in range(20):
        worker.finish(f"lost-{number}", _OWNER, "da", hint=False)
    began = time.monotonic()
    assert await asyncio.gather(*waiting) == ["da"] * 20
    assert time.monotonic() - began < 25, "before the waits end by themselves"


async def test_a_hint_before_the_key_or_about_another_job_finishes_no_wait(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    worker.claim("later", _OWNER)
    waiting = asyncio.create_task(client.job("later").result(30))
    for name in ("later", "other"):
        worker.redis.xadd("dragoman:events", {"job_id": name, "status": "completed"})
    worker.redis.xadd("dragoman:events", {"nonsense": b"\xff"})
    with pytest.raises(ResultTimeout):
        await client.job("later").result(0.3)
    assert not waiting.done()
    worker.finish("later", _OWNER, "jetzt")
    assert (await waiting).translations[0].text == "jetzt"


async def test_ten_thousand_waits_are_cheap_and_all_finish(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    job_ids = [f"many-{number}" for number in range(10_000)]
    waiting = [asyncio.create_task(client.job(job_id).text(300)) for job_id in job_ids]
    await asyncio.sleep(0)
    await eventually(lambda: _clients(worker) >= 2, timeout_s=20, what="the watch reads")
    cpu, began = time.process_time(), time.monotonic()
    with pytest.raises(ResultTimeout):
        await client.job("idle").result(5)
    idle_share = (time.process_time() - cpu) / (time.monotonic() - began)
    # In a thread: the client counts Redis as unreachable when its event loop stands still.
    await asyncio.to_thread(_finish, worker, job_ids)
    assert await asyncio.gather(*waiting) == job_ids
    assert idle_share < 0.5
    assert _clients(worker) < 20


def _finish(worker: PlayedWorker, job_ids: list[str]) -> None:
    for job_id in job_ids:
        worker.finish(job_id, _OWNER, job_id)


def _clients(worker: PlayedWorker) -> int:
    return len(worker.redis.client_list())


async def test_a_redis_killed_and_restarted_during_the_wait_loses_no_result(
    own_redis: RedisServer,
) -> None:
    async with TranslationClient(settings=settings_for(own_redis)) as client:
        before = PlayedWorker(own_redis.url)
        before.claim("survivor", _OWNER)
        waiting = [asyncio.create_task(client.job("survivor").text(60)) for _ in range(50)]
        await eventually(lambda: _clients(before) >= 2, timeout_s=30, what="the watch reads")
        before.close()
        await asyncio.to_thread(own_redis.kill)
        await asyncio.to_thread(own_redis.start)
        after = PlayedWorker(own_redis.url)
        after.finish("survivor", _OWNER, "überlebt")
        after.close()
        assert await asyncio.gather(*waiting) == ["überlebt"] * 50


async def test_an_unavailable_redis_fails_the_wait_within_the_bound(
    own_redis: RedisServer,
) -> None:
    async with TranslationClient(settings=settings_for(own_redis, 1.5)) as client:
        with pytest.raises(ResultTimeout):
            await client.job("a").result(0.1)
        waiting = asyncio.create_task(client.job("a").result(None))
        await asyncio.to_thread(own_redis.stop)
        async with asyncio.timeout(10):
            with pytest.raises(StoreUnreachable, match=r"within 1\.5 s .*is it running"):
                await waiting


async def test_a_timeout_is_met_during_an_outage(own_redis: RedisServer) -> None:
    async with TranslationClient(settings=settings_for(own_redis, 30)) as client:
        waiting = asyncio.create_task(client.job("a").result(1))
        await asyncio.to_thread(own_redis.kill)
        async with asyncio.timeout(5):
            with pytest.raises(ResultTimeout, match="Redis does not respond"):
                await waiting


async def test_a_corrupt_key_does_not_affect_other_waits(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    worker.redis.hset("dragoman:job:torn", mapping={"status": "completed", "result": "{"})
    worker.redis.hset("dragoman:job:odd", mapping={"status": "paused"})
    for key in ("dragoman:job:torn", "dragoman:job:odd"):
        worker.redis.expire(key, 60)
    worker.finish("whole", _OWNER, "ganz")
    torn, odd, whole = await asyncio.gather(
        client.job("torn").result(5),
        client.job("odd").result(5),
        client.job("whole").text(5),
        return_exceptions=True,
    )
    assert isinstance(torn, Unreadable)
    assert isinstance(odd, Unreadable)
    assert whole == "ganz"


async def test_timeouts_and_unknown_jobs(client: TranslationClient) -> None:
    assert await client.job("never").status() is None
    with pytest.raises(ResultTimeout, match="unknown") as raised:
        await client.job("never").result(0)
    assert raised.value.status is None


async def test_a_cancelled_wait_does_not_affect_the_others(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    gone = asyncio.create_task(client.job("shared").result())
    stays = asyncio.create_task(client.job("shared").text(20))
    await asyncio.sleep(0.05)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    worker.finish("shared", _OWNER, "da")
    assert await stays == "da"
    assert await client.job("shared").status() is JobStatus.COMPLETED


async def test_closing_the_client_fails_its_waits_and_leaves_no_task(
    redis_server: RedisServer,
) -> None:
    tasks = asyncio.all_tasks()
    client = TranslationClient(settings=settings_for(redis_server))
    waiting = asyncio.create_task(client.job("a").result())
    await asyncio.sleep(0.2)
    await client.close()
    with pytest.raises(ClientClosed):
        await waiting
    with pytest.raises(ClientClosed):
        await client.job("a").status()
    assert asyncio.all_tasks() == tasks
