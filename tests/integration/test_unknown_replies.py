"""Replies of Redis that are in no list fail no job: the worker waits, or halts with a sentence."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis.asyncio

from dragoman_schemas import names, scripts
from dragoman_worker.errors import Halt
from dragoman_worker.job.outages import Outages
from support.builders.store_calls import redis_store
from support.fakes.core import Core, record
from support.processes.waiting import eventually
from support.services.redis_proxy import RedisProxy
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis
KEYS = names.Keys()
JOBS = [f"a{number}" for number in range(20)]


def core_with(store: Any) -> Core:
    core = Core(store=store, outages=Outages(0.05))
    for job_id in JOBS:
        core.consumer.append(record(job_id))
    return core


async def all_completed(core: Core, admin: Any) -> None:
    await core.all_completed()
    statuses = [await admin.hget(KEYS.job(job_id), "status") for job_id in JOBS]
    assert statuses == [b"completed"] * len(JOBS)
    assert core.dead_letters.letters == []


@pytest.mark.parametrize(
    "word",
    [b"EVALSHA", *(one.sha1.encode() for one in (scripts.CLAIM, scripts.FINISH)), b"SCRIPT"],
    ids=["every script", "claim", "finish", "loading"],
)
async def test_a_proxy_without_its_server_fails_no_job(own_redis: RedisServer, word: bytes) -> None:
    async with (
        redis.asyncio.Redis.from_url(own_redis.url) as admin,
        RedisProxy(own_redis.port) as proxy,
        redis_store(proxy.url) as store,
    ):
        core = core_with(store)
        await admin.script_flush()
        proxy.refuse(b"upstream failure", word)
        async with core.working():
            await eventually(lambda: proxy.refused > 100, timeout_s=30, what="many refusals")
            proxy.serve()
            await all_completed(core, admin)


async def test_a_connection_without_its_password_halts_and_touches_no_job(
    own_redis: RedisServer,
) -> None:
    """Without a password Redis answers a command of 14 words with a protocol error."""
    async with (
        redis.asyncio.Redis.from_url(own_redis.url) as admin,
        redis_store(own_redis.url) as store,
    ):
        core = core_with(store)
        await admin.config_set("requirepass", "secret")
        await admin.client_kill_filter(_type="normal", skipme=True)
        with pytest.raises(Halt, match="refuses its user or password"):
            async with core.working() as worker:
                await eventually(lambda: worker.state == "stopped", timeout_s=30, what="a halt")
        assert core.dead_letters.letters == []
        assert await admin.keys(f"{KEYS.job('')}*") == []


async def test_a_stream_of_events_that_is_exhausted_costs_its_events(
    own_redis: RedisServer,
) -> None:
    async with (
        redis.asyncio.Redis.from_url(own_redis.url) as admin,
        redis_store(own_redis.url) as store,
    ):
        last = f"{2**64 - 1}-{2**64 - 1}"
        await admin.xadd(KEYS.events, {"job_id": "x"}, id=last)
        core = core_with(store)
        async with core.working():
            await all_completed(core, admin)
        assert await admin.xlen(KEYS.events) == 1


async def test_a_missing_right_to_hints_costs_them(own_redis: RedisServer) -> None:
    async with redis.asyncio.Redis.from_url(own_redis.url) as admin:
        rights = ["+@all", "-xadd"]
        await admin.acl_setuser("w", enabled=True, passwords=["+p"], keys=["*"], commands=rights)
        async with redis_store(own_redis.url.replace("//", "//w:p@")) as store:
            core = core_with(store)
            async with core.working():
                await all_completed(core, admin)


async def test_cancels_survive_replies_that_are_none(own_redis: RedisServer) -> None:
    async with (
        redis.asyncio.Redis.from_url(own_redis.url) as admin,
        RedisProxy(own_redis.port) as proxy,
        redis_store(proxy.url) as store,
    ):
        proxy.refuse(b"ERR unsupported command", b"XREAD")
        listening = asyncio.ensure_future(anext(store.cancels()))
        await eventually(lambda: proxy.refused > 0, timeout_s=30, what="a refusal")
        proxy.serve()
        await admin.xadd(KEYS.cancels, {"job_id": "a1"})
        assert (await asyncio.wait_for(listening, 30)).job_id == "a1"
