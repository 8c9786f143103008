"""No job is lost or done twice when a Sentinel or a Cluster replaces a primary."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman_connections.redis_access.slots import slot_of
from dragoman_connections.settings import DragomanSettings, RedisSettings, SettingsError
from dragoman_producer.operations.job_keys import JobKeys
from dragoman_producer.state import JobState
from dragoman_producer.store import JobStore
from dragoman_schemas import names
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unreachable
from support.builders.store_calls import (
    all_stand,
    idle_store,
    is_a_wrong_setting,
    redis_store,
    settle,
    settle_all,
)
from support.processes.waiting import eventually
from support.services.redis_clients import client_of
from support.services.redis_cluster import RedisCluster
from support.services.redis_sentinel import RedisSentinel
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

KEYS = names.Keys()
MOVED_SLOTS = 400
JOBS = [f"j{number}" for number in range(600)]


@pytest.fixture
def sentinel(redis_installed: str) -> Iterator[RedisSentinel]:
    del redis_installed
    with RedisSentinel(down_after_s=1) as made:
        yield made


@pytest.fixture
def cluster(redis_installed: str) -> Iterator[RedisCluster]:
    del redis_installed
    with RedisCluster(replicas=1, node_timeout_ms=1_000) as made:
        yield made


@asynccontextmanager
async def job_store(url: str) -> AsyncIterator[JobStore]:
    store = JobStore(RedisSettings(url=url), connect_timeout_s=30)
    try:
        yield store
    finally:
        await store.close()


# --- Sentinel -------------------------------------------------------------------------------------


async def test_no_confirmed_result_is_lost_with_a_sentinel_s_primary(
    sentinel: RedisSentinel,
) -> None:
    """With `wait:1` every confirmed result is on the replica that takes over.

    So it is on the server that returns, should that take over again: a slow machine makes the
    Sentinels do so.
    """
    async with redis_store(sentinel.url, durability="wait:1") as store:
        await settle(store, "before")
        first = sentinel.primary
        load = asyncio.create_task(settle_all(store, JOBS, at_once=16))
        with client_of(first.url) as admin:
            await eventually(lambda: admin.dbsize() > 200, timeout_s=30, what="a part of the load")
        await asyncio.to_thread(first.kill)
        await eventually(lambda: sentinel.primary is not first, timeout_s=30, what="the fail-over")
        await asyncio.to_thread(first.start)  # it returns as the replica that `wait:1` needs
        await load
        await all_stand(store, ["before", *JOBS])


async def test_a_hung_primary_is_replaced_and_comes_back_as_a_replica(
    sentinel: RedisSentinel,
) -> None:
    async with redis_store(sentinel.url) as store, job_store(sentinel.url) as client:
        assert await client.stub("stubbed")
        await settle(store, "before")
        first = sentinel.primary
        os.kill(first.pid, signal.SIGSTOP)
        try:
            await settle(store, "meanwhile")
            assert sentinel.primary is not first
            # without a confirmation a second fail-over, back to the first, might lose it
            await asyncio.to_thread(sentinel.tolerate, 60)
        finally:
            os.kill(first.pid, signal.SIGCONT)
        await settle(store, "after")

        async def followed() -> bool:
            # until the Sentinels demote it, the old primary answers its open connections
            states = await client.read(["meanwhile", "after"])
            statuses = [state.status for state in states if isinstance(state, JobState)]
            return statuses == ["completed"] * 2

        await eventually(followed, timeout_s=30, what="a client that sees the new primary")


async def test_an_unreachable_sentinel_is_skipped_and_all_unreachable_are_named(
    sentinel: RedisSentinel,
) -> None:
    known = sentinel.url.removeprefix("redis+sentinel://")
    async with redis_store(f"redis+sentinel://127.0.0.1:1,{known}") as store:
        await settle(store, "a1")
    settings = RedisSettings(url="redis+sentinel://user:secret@127.0.0.1:1,127.0.0.1:2/main")
    message = r"main of Sentinel 127\.0\.0\.1:1,127\.0\.0\.1:2 .*no Sentinel answered"
    async with idle_store(settings) as unreachable:
        with pytest.raises(Unreachable, match=message) as caught:
            await unreachable.start(Deadline.after(0.1))
    assert "secret" not in str(caught.value)


async def test_an_unknown_service_and_a_sentinel_named_as_a_server_are_reported_at_once(
    sentinel: RedisSentinel,
) -> None:
    url = sentinel.url.replace("dragoman-test", "unheard-of")
    message = "unheard-of of Sentinel .*no Sentinel knows a primary of 'unheard-of'"
    await is_a_wrong_setting(url, message)
    known = url.removeprefix("redis+sentinel://")
    settings = RedisSettings(url=f"redis+sentinel://127.0.0.1:1,{known}")
    async with idle_store(settings) as unreachable:
        with pytest.raises(Unreachable, match="no Sentinel answered"):  # port 1 may know it
            await unreachable.start(Deadline.after(0.1))
    await is_a_wrong_setting(f"redis://127.0.0.1:{sentinel.sentinel_ports[0]}/0", "unknown command")


async def test_every_server_behind_a_sentinel_must_have_what_durability_asks_for(
    sentinel: RedisSentinel,
) -> None:
    primary, replica = sentinel.servers
    for server in (primary, replica):
        with client_of(server.url) as admin:
            admin.config_set("appendonly", "no" if server is replica else "yes")
    with pytest.raises(SettingsError, match="appendonly no"):
        async with redis_store(sentinel.url, durability="aof"):
            pass
    with client_of(replica.url) as admin:
        admin.config_set("appendonly", "yes")
    async with redis_store(sentinel.url, durability="aof") as store:
        await settle(store, "a1")


# --- Cluster --------------------------------------------------------------------------------------


async def test_no_confirmed_result_is_lost_with_a_cluster_s_primary(cluster: RedisCluster) -> None:
    """A shard whose only replica was promoted has none: its results wait for the lost server."""
    async with redis_store(cluster.url, durability="wait:1") as store:
        await settle(store, "before")
        victim = cluster.owner(KEYS.events)
        load = asyncio.create_task(settle_all(store, JOBS, at_once=16))
        with client_of(victim.url) as admin:
            await eventually(lambda: admin.dbsize() > 80, timeout_s=30, what="a part of the load")
        await asyncio.to_thread(victim.kill)
        await eventually(
            lambda: cluster.owner(KEYS.events) is not victim, timeout_s=30, what="the fail-over"
        )
        await asyncio.to_thread(victim.start)
        await load
        await all_stand(store, ["before", *JOBS])


async def test_the_client_follows_a_cluster_through_a_fail_over(cluster: RedisCluster) -> None:
    settings = DragomanSettings(redis=RedisSettings(url=cluster.url))
    async with redis_store(cluster.url) as store, job_store(cluster.url) as client:
        assert all(await asyncio.gather(*(client.stub(job_id) for job_id in JOBS[:300])))
        last = await client.newest_event()
        await asyncio.to_thread(cluster.owner(KEYS.events).kill)
        await settle(store, "new")
        assert "new" in (await client.events_after(last))[1]
        keys = JobKeys(settings)
        found = await keys.read(["new", "unknown"])
        await keys.close()
        assert [key and key.status for key in found] == ["completed", None]
        assert await client.cancel(JOBS[0]) in {"cancelled", "running"}
        await client.cancel_document("d1")


async def test_slots_that_move_under_load_lose_and_duplicate_nothing(redis_installed: str) -> None:
    """Real MOVED and ASK: hundreds of slots move while jobs in them are settled."""
    del redis_installed
    with RedisCluster(primaries=2) as two:
        async with redis_store(two.url) as store:
            source, target = two.primaries
            moving = asyncio.create_task(
                asyncio.to_thread(_move_slots, source, target, range(MOVED_SLOTS))
            )
            settled: list[str] = []
            while not moving.done():
                batch = [f"j{len(settled) + number}" for number in range(100)]
                await settle_all(store, batch, at_once=16)
                settled += batch
            await moving
            assert any(slot_of(KEYS.job(job_id)) < MOVED_SLOTS for job_id in settled)
            await all_stand(store, settled)


def _move_slots(source: RedisServer, target: RedisServer, slots: range) -> None:
    with client_of(source.url) as giving, client_of(target.url) as taking:
        source_id, target_id = (_node_id(one) for one in (giving, taking))
        for slot in slots:
            taking.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
            giving.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
            while keys := giving.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
                where = ("127.0.0.1", target.port, "", 0, 5000)
                giving.execute_command("MIGRATE", *where, "KEYS", *keys)
            for one in (taking, giving):
                one.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target_id)


def _node_id(client: Any) -> str:
    reply = client.execute_command("CLUSTER", "MYID")
    return reply.decode() if isinstance(reply, bytes) else str(reply)


async def test_a_cluster_named_as_one_server_is_reported(cluster: RedisCluster) -> None:
    with pytest.raises(SettingsError, match=r"is a Redis Cluster; give redis\+cluster://"):
        async with redis_store(cluster.servers[0].url):
            pass


async def test_one_server_named_as_a_cluster_is_reported(redis_server: RedisServer) -> None:
    place = redis_server.url.removeprefix("redis://")
    await is_a_wrong_setting(f"redis+cluster://{place}", "cluster support disabled")
    await is_a_wrong_setting(f"redis+sentinel://{place.partition('/')[0]}/main", "unknown command")
