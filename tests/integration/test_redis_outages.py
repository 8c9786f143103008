"""While Redis fails the store waits; nothing is lost, duplicated or mixed up.

Each call is repeated as the worker repeats it: as long as it raises Unavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from dragoman_schemas import names
from dragoman_worker.errors import Unavailable
from dragoman_worker.stores.redis import RedisStore
from support.builders.store_calls import (
    all_stand,
    claim_of,
    redis_store,
    request,
    result,
    result_in,
    settle,
    settle_all,
    until_served,
)
from support.processes.waiting import eventually
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.redis_proxy import RedisProxy
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis
KEYS = names.Keys()


@pytest.fixture
def admin(own_redis: RedisServer) -> Iterator[Any]:
    with redis.Redis.from_url(own_redis.url) as client:
        yield client


@pytest.fixture
async def store(own_redis: RedisServer) -> AsyncIterator[RedisStore]:
    async with redis_store(own_redis.url) as made:
        yield made


# --- what a server refuses for a while ------------------------------------------------------------


def _full(admin: Any) -> Callable[[], object]:
    admin.config_set("maxmemory", 1)
    return lambda: admin.config_set("maxmemory", 0)


def _replica(admin: Any) -> Callable[[], object]:
    admin.execute_command("REPLICAOF", "127.0.0.1", "1")
    return lambda: admin.execute_command("REPLICAOF", "NO", "ONE")


def _without_replicas(admin: Any) -> Callable[[], object]:
    admin.config_set("min-replicas-to-write", 1)
    return lambda: admin.config_set("min-replicas-to-write", 0)


def _snapshots_fail(admin: Any) -> Callable[[], object]:
    directory = Path(admin.config_get("dir")["dir"])
    (directory / "dump.rdb").mkdir()  # a snapshot cannot replace it
    admin.config_set("save", "3600 1")
    admin.set("dirty", "1", ex=60)
    admin.bgsave()

    def failed() -> bool:
        info = admin.info("persistence")
        return not info["rdb_bgsave_in_progress"] and info["rdb_last_bgsave_status"] == "err"

    while not failed():
        pass
    return lambda: admin.config_set("save", "")


def _at_its_limit(admin: Any) -> Callable[[], object]:
    admin.ping()  # keeps its own connection
    admin.config_set("maxclients", 1)
    admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    return lambda: admin.config_set("maxclients", 1000)


def _hung_in_a_script(admin: Any) -> Callable[[], object]:
    admin.config_set("busy-reply-threshold", 1)
    other = redis.Redis(port=admin.connection_pool.connection_kwargs["port"], socket_timeout=1)
    connection: Any = other.connection_pool.get_connection()
    connection.send_command("EVAL", "while true do end", 0)

    def end() -> None:
        admin.execute_command("SCRIPT", "KILL")
        connection.disconnect()
        other.close()

    return end


@pytest.mark.parametrize(
    "refuse",
    [_full, _replica, _without_replicas, _snapshots_fail, _at_its_limit, _hung_in_a_script],
    ids=["OOM", "READONLY", "NOREPLICAS", "MISCONF", "maxclients", "BUSY"],
)
async def test_a_server_that_refuses_for_a_while_is_waited_for(
    refuse: Callable[[Any], Callable[[], object]], store: RedisStore, admin: Any
) -> None:
    await settle(store, "before")
    claimed = request("claimed")
    reply = await store.claim(claimed)
    serve_again = refuse(admin)
    try:
        waiting = asyncio.create_task(settle(store, "meanwhile"))
        with pytest.raises(Unavailable):
            await store.finish(
                claim_of(claimed, reply), result(job_id="claimed", text="text of claimed")
            )
        assert not waiting.done()
    finally:
        serve_again()
    await waiting
    ended = result(job_id="claimed", text="text of claimed")
    assert await until_served(lambda: store.finish(claim_of(claimed, reply), ended))
    await all_stand(store, ["before", "claimed", "meanwhile"])


async def test_a_server_that_loads_its_data_is_waited_for(redis_installed: str) -> None:
    with RedisServer(
        binary=redis_installed,
        appendonly="yes",
        key_load_delay="600",  # microseconds; it looks at its clients every 1,024 commands
    ) as server:
        async with redis_store(server.url) as store:
            with (
                redis.Redis.from_url(server.url) as admin,
                admin.pipeline(transaction=False) as pipeline,
            ):
                for number in range(6_000):
                    pipeline.set(f"filler-{number}", "x", ex=600)
                pipeline.execute()
            await settle(store, "before")
            server.kill()
            starting = asyncio.create_task(asyncio.to_thread(server.start))
            messages: set[str] = set()
            while not starting.done():
                try:
                    await store.claim(request("before"))
                except Unavailable as error:
                    messages.add(str(error))
                await asyncio.sleep(0.01)
            await starting
            assert [words for words in messages if "BusyLoadingError" in words], messages
            await settle(store, "after")
            await all_stand(store, ["before", "after"])


# --- what is cut, killed, forgotten or hung under load --------------------------------------------


async def test_a_lost_reply_is_repeated_and_the_end_is_written_once(own_redis: RedisServer) -> None:
    with redis.Redis.from_url(own_redis.url) as admin:
        async with RedisProxy(own_redis.port) as proxy, redis_store(proxy.url) as store:
            wanted = request("a1")
            reply = await store.claim(wanted)
            admin.config_resetstat()
            proxy.cut_after(b"EVALSHA")
            ended = result(text="text of a1")
            with pytest.raises(Unavailable):
                await store.finish(claim_of(wanted, reply), ended)
            assert proxy.cuts == 1
            before = admin.hgetall(KEYS.job("a1"))
            assert before[b"status"] == b"completed"  # although its reply was lost
            again = result(text="a text that came later")
            stands = await until_served(lambda: store.finish(claim_of(wanted, reply), again))
            assert stands == ended
            assert admin.hgetall(KEYS.job("a1")) == before
            called = admin.info("commandstats")
            assert called["cmdstat_evalsha"]["calls"] == 2
            await all_stand(store, ["a1"])


async def test_a_claim_whose_reply_is_lost_counts_one_delivery(own_redis: RedisServer) -> None:
    async with RedisProxy(own_redis.port) as proxy, redis_store(proxy.url) as store:
        proxy.cut_after(b"EVALSHA")
        assert await settle(store, "a1")
        assert proxy.cuts == 1
        await all_stand(store, ["a1"])


async def test_a_server_killed_and_restarted_under_load_loses_nothing(redis_installed: str) -> None:
    """With `appendfsync always`; with `everysec` an acknowledged write may not be on disk yet."""
    with RedisServer(binary=redis_installed, appendonly="yes", appendfsync="always") as server:
        async with redis_store(server.url) as store:
            jobs = [f"j{number}" for number in range(2_000)]
            load = asyncio.create_task(settle_all(store, jobs))
            for number in range(5):
                await settle(store, f"alive-{number}")
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            await load
            await all_stand(store, jobs)


async def test_connections_killed_and_scripts_flushed_under_load_mix_nothing_up(
    store: RedisStore, own_redis: RedisServer
) -> None:
    jobs = [f"j{number}" for number in range(500)]
    load = asyncio.create_task(settle_all(store, jobs))
    async with redis.asyncio.Redis.from_url(own_redis.url) as admin:
        killed = 0
        while not load.done():
            killed += await admin.client_kill_filter(_type="normal", skipme=True)
            await admin.script_flush()
            await asyncio.sleep(0.1)
    await load
    assert killed > 0
    await all_stand(store, jobs)


async def test_a_hung_server_holds_up_no_more_than_was_asked_and_then_serves_all(
    store: RedisStore, own_redis: RedisServer
) -> None:
    jobs = [f"j{number}" for number in range(1_000)]
    os.kill(own_redis.pid, signal.SIGSTOP)
    try:
        given_up = [
            asyncio.create_task(store.claim(request(f"g{number}"))) for number in range(500)
        ]
        load = asyncio.create_task(settle_all(store, jobs, at_once=500))
        with pytest.raises(Unavailable):
            await store.claim(request("anything"))
        for task in given_up:
            task.cancel()
        outcomes = await asyncio.gather(*given_up, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} <= {asyncio.CancelledError, Unavailable}
        assert not load.done()
    finally:
        os.kill(own_redis.pid, signal.SIGCONT)
    await load
    assert store.waiting == 0
    await all_stand(store, jobs)


async def test_storms_of_cancelled_calls_give_nobody_another_s_reply(store: RedisStore) -> None:
    """30 storms of 60 calls, half of them cancelled while under way."""
    chance = random.Random(27)
    jobs = [f"j{number}" for number in range(60)]
    await settle_all(store, jobs)

    async def read(job_id: str) -> tuple[str, Any]:
        reply = await store.claim(request(job_id))
        stored = result_in(job_id, reply)
        assert stored is not None
        return job_id, stored.translations[0].text

    answered = 0
    for _ in range(30):
        tasks = [asyncio.create_task(read(job_id)) for job_id in jobs]
        for task in chance.sample(tasks, 30):
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, asyncio.CancelledError)
                continue
            job_id, text = outcome
            assert text == f"text of {job_id}"
            answered += 1
    assert answered >= 30 * 30


@contextlib.asynccontextmanager
async def looking_for_cancels(store: RedisStore) -> AsyncIterator[None]:
    listening = asyncio.ensure_future(anext(store.cancels()))
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def test_a_hung_server_does_not_answer_an_idle_worker(
    store: RedisStore, own_redis: RedisServer
) -> None:
    async with looking_for_cancels(store):
        os.kill(own_redis.pid, signal.SIGSTOP)
        try:
            await eventually(lambda: not store.answers, timeout_s=30, what="the outage")
        finally:
            os.kill(own_redis.pid, signal.SIGCONT)
        await eventually(lambda: store.answers, timeout_s=30, what="an answer")


def test_an_idle_worker_is_not_ready_while_redis_is_away(
    kafka: KafkaBroker, own_redis: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic()
    kafka.create_topic(f"{name}-dead")
    with WorkerProcess(tmp_path, kafka=kafka.bootstrap, redis=own_redis.url, topic=name) as worker:
        worker.ready()
        own_redis.kill()
        away = (503, "not yet: replica 0: Redis\n")
        worker.wait_for(lambda: worker.get("/readyz") == away, timeout_s=30, what="not ready")
        own_redis.start()
        worker.wait_for(lambda: worker.get("/readyz")[0] == 200, timeout_s=30, what="ready")


async def test_a_key_of_another_type_for_cancels_is_an_answer(
    store: RedisStore, own_redis: RedisServer
) -> None:
    async with redis.asyncio.Redis.from_url(own_redis.url) as admin:
        await admin.set(KEYS.cancels, "no stream", ex=60)
        store.answers = False
        async with looking_for_cancels(store):
            await eventually(lambda: store.answers, timeout_s=30, what="an answer")


async def test_cancels_are_received_again_after_an_outage(
    store: RedisStore, own_redis: RedisServer
) -> None:
    notices: list[str | None] = []

    async def listen() -> None:
        async for notice in store.cancels():
            notices.append(notice.job_id)  # noqa: PERF401  one by one, as they come

    listening = asyncio.create_task(listen())
    async with redis.asyncio.Redis.from_url(own_redis.url) as admin:

        async def notified(job_id: str) -> bool:
            with contextlib.suppress(redis.ConnectionError):  # its connection died as well
                await admin.xadd(KEYS.cancels, {"job_id": job_id})
            return job_id in notices

        await eventually(lambda: notified("first"), timeout_s=30, what="the first cancel")
        assert store.answers
        await asyncio.to_thread(own_redis.kill)
        await eventually(lambda: not store.answers, timeout_s=30, what="the outage")
        await asyncio.to_thread(own_redis.start)
        await eventually(lambda: notified("second"), timeout_s=30, what="the second cancel")
        assert store.answers
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
