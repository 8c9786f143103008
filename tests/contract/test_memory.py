"""The memory contract: one suite in the process and on every kind of Redis, and trouble with it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import RedisSettings
from dragoman_schemas import scripts
from dragoman_schemas.approved import ApprovedTranslation, encode_approved
from dragoman_schemas.names import Keys
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import ApprovedQuery, Remembered
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.memory_outages import memory_problem
from dragoman_worker.stores.memory_values import shard_and_field
from dragoman_worker.stores.redis_memory import RedisMemory, estimated_bytes, hash_bytes
from support.fakes.local_memory import LocalMemory
from support.processes.waiting import eventually as eventually_true
from support.services.redis_clients import client_of
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

HALLO = Remembered("Hallo.")
CHECKS = {"glossary": {"verdict": "warn", "detail": "Hello"}}
WARNED = Remembered("Hällo „x“", "warn", ("glossary: Hello",), CHECKS)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    await eventually_true(condition, timeout_s=30, what="the memory's writes")


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")[::-1] + b"k" * 28


class Memories:
    """A memory with its counts, and a client of the same keys."""

    def __init__(
        self, memory: RedisMemory | LocalMemory, metrics: Metrics, url: str, prefix: str
    ) -> None:
        self.memory = memory
        self._metrics = metrics
        self.url = url
        self.keys = Keys(prefix)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the counts that are not 0."""
        found = {
            name: self._metrics.registry.get_sample_value("dragoman_memory_total", {"result": name})
            for name in self._metrics.memory_by_result
        }
        return {name: int(count) for name, count in found.items() if count}

    async def approve(self, *entries: ApprovedTranslation) -> None:
        if isinstance(self.memory, LocalMemory):
            self.memory.approve(*entries)
            return
        with client_of(self.url) as client:
            for one in entries:
                client.hset(self.keys.memory_approved(one.shard), one.field, encode_approved(one))

    async def remembered(self, *numbers: int) -> None:
        """Wait until the writes have arrived."""

        async def all_found() -> bool:
            return None not in await self.memory.recall([key(number) for number in numbers])

        await eventually(all_found)


@asynccontextmanager
async def opened(
    url: str, prefix: str = "", *, limit_s: float = 30.0, **settings: Any
) -> AsyncIterator[Memories]:
    """Open a memory; its limit is long, so that no test depends on the machine's pace."""
    metrics = Metrics(CollectorRegistry())
    prefix = prefix or f"t{uuid.uuid4().hex[:12]}:"
    redis = RedisSettings(url=url, key_prefix=prefix)
    async with redis_servers(redis) as servers:
        memory = RedisMemory(redis, servers, MemorySettings(**settings), metrics, limit_s=limit_s)
        await memory.start()
        try:
            yield Memories(memory, metrics, url, prefix)
        finally:
            await memory.close()


@pytest.fixture(params=["local", "redis"])
async def both(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[Memories]:
    if request.param == "local":
        metrics = Metrics(CollectorRegistry())
        yield Memories(LocalMemory(metrics), metrics, "", "")
        return
    async with opened(redis_url) as memories:
        yield memories


# --- the machine tier -----------------------------------------------------------------------------


@pytest.mark.every_redis
async def test_what_is_remembered_is_recalled_by_its_key_alone(both: Memories) -> None:
    memory = both.memory
    assert await memory.recall([key(1), key(2)]) == [None, None]
    memory.remember(key(1), HALLO)
    memory.remember(key(2), WARNED)
    await both.remembered(1, 2)
    assert await memory.recall([key(2), key(3), key(1)]) == [WARNED, None, HALLO]
    assert await memory.recall([]) == []


async def test_hits_and_misses_are_counted(both: Memories) -> None:
    both.memory.remember(key(1), HALLO)
    await both.remembered(1)
    before = both.counts
    await both.memory.recall([key(1), key(1), key(2)])
    after = both.counts
    assert after["hit"] - before.get("hit", 0) == 2
    assert after["miss"] - before.get("miss", 0) == 1


@pytest.mark.every_redis
async def test_last_translation_of_a_key_stands(both: Memories) -> None:
    for text in ("a", "b", "c"):
        both.memory.remember(key(1), Remembered(text))
    await both.remembered(1)
    assert await both.memory.recall([key(1)]) == [Remembered("c")]
    both.memory.remember(key(1), WARNED)

    async def replaced() -> bool:
        return await both.memory.recall([key(1)]) == [WARNED]

    await eventually(replaced)


@pytest.mark.parametrize(
    "text", ["o", '{"t":"x","q":"ok"}', "\x00\ufeff\u202e", "á" * 3_000, "\U0001f600"]
)
async def test_odd_texts_come_back_unchanged(both: Memories, text: str) -> None:
    both.memory.remember(key(9), Remembered(text))
    await both.remembered(9)
    assert await both.memory.recall([key(9)]) == [Remembered(text)]


@pytest.mark.every_redis
async def test_concurrent_jobs_recall_their_own(redis_url: str) -> None:
    async with opened(redis_url) as memories:
        for number in range(600):
            memories.memory.remember(key(number), Remembered(f"text {number}"))
        await memories.remembered(*range(600))
        jobs = [memories.memory.recall([key(n), key(n + 1_000)]) for n in range(600)]
        found = await asyncio.gather(*jobs)
        assert found == [[Remembered(f"text {n}"), None] for n in range(600)]


# --- the approved tier ----------------------------------------------------------------------------

SAVE = ApprovedTranslation("Save", "Speichern", "de", "en")


@pytest.mark.every_redis
async def test_approved_translation_is_found_by_text_and_languages(both: Memories) -> None:
    await both.approve(SAVE)
    asked = [
        ApprovedQuery("Save", "de", "en"),
        ApprovedQuery("Save", "de", "fr"),
        ApprovedQuery("Save", "fr", "en"),
        ApprovedQuery("save", "de", "en"),
        ApprovedQuery("Save", "de"),
    ]
    found = await both.memory.approved(asked)
    assert found[0] == Remembered(
        "Speichern", checks={"memory": {"origin": "approved"}}, approved=True
    )
    assert found[1:] == [None] * 4


async def texts(memories: Memories, *asked: ApprovedQuery) -> list[str | None]:
    found = await memories.memory.approved(asked)
    return [one.text if one else None for one in found]


async def test_translation_in_its_context_comes_before_one_without(both: Memories) -> None:
    dance = ApprovedTranslation("Save", "Parade", "de", "en", "football")
    await both.approve(SAVE, dance)
    in_context = ApprovedQuery("Save", "de", "en", "football")
    elsewhere = ApprovedQuery("Save", "de", "en", "a menu")
    assert await texts(both, in_context, elsewhere) == ["Parade", "Speichern"]


async def test_translation_in_a_context_is_not_used_without_it(both: Memories) -> None:
    await both.approve(ApprovedTranslation("Save", "Parade", "de", "en", "football"))
    assert await texts(both, ApprovedQuery("Save", "de", "en")) == [None]


async def test_exact_tags_come_before_their_language(both: Memories) -> None:
    await both.approve(
        ApprovedTranslation("Bus", "ônibus", "pt-BR", "en"),
        ApprovedTranslation("Bus", "autocarro", "pt", "en"),
    )
    brazil, portugal = ApprovedQuery("Bus", "pt-BR", "en-US"), ApprovedQuery("Bus", "pt-PT", "en")
    assert await texts(both, brazil, portugal) == ["ônibus", "autocarro"]


async def test_translation_in_another_script_is_not_used(both: Memories) -> None:
    await both.approve(
        ApprovedTranslation("Save", "保存", "zh", "en"),
        ApprovedTranslation("Save", "Сачувај", "sr"),
    )
    asked = [ApprovedQuery("Save", tag, "en") for tag in ("zh-TW", "zh-CN", "sr-Latn", "sr")]
    assert await texts(both, *asked) == [None, "保存", None, "Сачувај"]


async def test_translation_without_source_language_fits_every_one(both: Memories) -> None:
    await both.approve(ApprovedTranslation("OK", "Ok", "de"))
    asked = [ApprovedQuery("OK", "de", source) for source in (None, "en", "pt-BR")]
    assert await texts(both, *asked) == ["Ok", "Ok", "Ok"]


async def test_blanks_around_the_item_are_kept(both: Memories) -> None:
    await both.approve(SAVE)
    assert await texts(both, ApprovedQuery("\n Save\t", "de", "en")) == ["\n Speichern\t"]


# --- generations ----------------------------------------------------------------------------------


def hashes(memories: Memories, shard: int) -> tuple[int, int]:
    """Return how many entries the newer and the older hash of a shard have."""
    with client_of(memories.url) as client:
        new = client.hlen(memories.keys.memory(shard, "new"))
        old = client.hlen(memories.keys.memory(shard, "old"))
    return max(0, new - 1), max(0, old - 1)


def on_shard(shard: int, number: int) -> bytes:
    return bytes([shard]) + number.to_bytes(31, "little")


def call_script(
    client: Any, memories: Memories, most: int, ttl_ms: int, *pairs: bytes
) -> list[int]:
    keys = [memories.keys.memory(0, "new"), memories.keys.memory(0, "old")]
    reply: list[int] = client.eval(scripts.REMEMBER.text, 2, *keys, most, ttl_ms, *pairs)
    return reply


@pytest.mark.every_redis
async def test_full_hash_becomes_the_older_one_and_the_oldest_is_dropped(redis_url: str) -> None:
    async with opened(redis_url, max_mb=1) as memories:
        value = Remembered("x" * 100)
        fits = hash_bytes(1) // estimated_bytes(b"o" + b"x" * 100)
        for number in range(2 * fits + 1):
            memories.memory.remember(on_shard(0, number), value)
        await eventually_found(memories, on_shard(0, 2 * fits))
        assert hashes(memories, 0) == (1, fits)
        found = await memories.memory.recall([on_shard(0, n) for n in range(2 * fits + 1)])
        assert found == [None] * fits + [value] * (fits + 1)


async def eventually_found(memories: Memories, wanted: bytes) -> None:
    async def found() -> bool:
        return await memories.memory.recall([wanted]) != [None]

    await eventually(found)


async def test_translation_in_use_moves_to_the_newer_hash(redis_url: str) -> None:
    async with opened(redis_url) as memories:
        shard, field = shard_and_field(key(0))
        client = client_of(redis_url)
        client.hset(memories.keys.memory(shard, "old"), field, b"oHallo.")
        assert await memories.memory.recall([key(0)]) == [HALLO]

        async def moved() -> bool:
            return bool(client.hexists(memories.keys.memory(shard, "new"), field))

        await eventually(moved)
        client.close()


async def test_hash_that_has_reached_the_ttl_becomes_the_older_one(redis_url: str) -> None:
    async with opened(redis_url) as memories:
        client = client_of(redis_url)
        new, old = memories.keys.memory(0, "new"), memories.keys.memory(0, "old")
        assert call_script(client, memories, 10**6, 60_000, b"a" * 23, b"o1")[0] == 0
        assert 60_000 < client.pttl(new) <= 120_000
        client.pexpire(new, 59_999)  # as after a TTL
        assert call_script(client, memories, 10**6, 60_000, b"b" * 23, b"o2")[0] == 1
        assert client.hget(old, b"a" * 23) == b"o1"
        assert client.pttl(old) <= 60_000
        assert client.hexists(new, b"a" * 23) is False
        assert client.pttl(new) > 60_000
        client.close()


async def test_repeated_write_keeps_the_entry_and_every_hash_has_a_ttl(redis_url: str) -> None:
    async with opened(redis_url) as memories:
        client = client_of(redis_url)
        for _ in range(3):
            call_script(client, memories, 250, 60_000, b"a" * 23, b"o1", b"b" * 23, b"o2")
        new, old = memories.keys.memory(0, "new"), memories.keys.memory(0, "old")
        assert {**client.hgetall(old), **client.hgetall(new)}.keys() >= {b"a" * 23, b"b" * 23}
        assert all(client.pttl(name) > 0 for name in (new, old))
        client.close()


async def test_bytes_stay_within_the_limit_as_redis_counts_them(redis_url: str) -> None:
    async with opened(redis_url, max_mb=2) as memories:
        for number in range(16_000):
            memories.memory.remember(os.urandom(32), Remembered(f"{number:0{number % 300 + 1}d}"))
        client = client_of(redis_url)

        async def written() -> bool:
            return memories.memory.waiting == 0  # type: ignore[union-attr]

        await eventually(written)
        names = list(client.scan_iter(f"{memories.keys.prefix}*", count=1_000))
        used = sum(client.memory_usage(name, samples=0) for name in names)
        assert 1_000_000 < used < 2_100_000
        client.close()


async def test_entry_that_would_drop_many_others_is_not_written(redis_url: str) -> None:
    async with opened(redis_url, max_mb=1) as memories:
        memories.memory.remember(on_shard(1, 1), Remembered("x" * 100_000))
        memories.memory.remember(on_shard(1, 2), HALLO)
        await eventually_found(memories, on_shard(1, 2))
        assert await memories.memory.recall([on_shard(1, 1)]) == [None]


# --- trouble --------------------------------------------------------------------------------------


@pytest.mark.every_redis
async def test_key_of_another_type_costs_its_shard_alone(redis_url: str) -> None:
    async with opened(redis_url) as memories:
        client = client_of(redis_url)
        client.set(memories.keys.memory(0, "new"), "a string")
        client.set(memories.keys.memory_approved(SAVE.shard), "a string")
        memories.memory.remember(key(0), HALLO)
        memories.memory.remember(key(1), HALLO)
        await memories.remembered(1)
        assert await memories.memory.recall([key(0), key(1)]) == [None, HALLO]
        assert await memories.memory.approved([ApprovedQuery("Save", "de", "en")]) == [None]
        assert memories.counts["error"] >= 3  # the write and both look-ups
        client.close()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"o\xff\xfe",
        b"{",
        b"{}",
        b"[]",
        b"null",
        b'{"t":1,"q":"ok"}',
        b"[" * 100_000,
        b'{"t":"x","q":"fail"}',
        b'{"t":"x","q":"ok","w":[1]}',
        b'{"t":"x","q":"ok","c":[]}',
    ],
)
async def test_unreadable_value_is_a_miss(redis_url: str, value: bytes) -> None:
    async with opened(redis_url) as memories:
        client = client_of(redis_url)
        shard, field = shard_and_field(key(3))
        client.hset(memories.keys.memory(shard, "new"), field, value)
        client.hset(memories.keys.memory_approved(SAVE.shard), SAVE.field, value)
        assert await memories.memory.recall([key(3)]) == [None]
        assert await memories.memory.approved([ApprovedQuery("Save", "de", "en")]) == [None]
        assert memories.counts == {"error": 2}
        client.close()


@pytest.mark.parametrize(
    "other",
    [
        ApprovedTranslation("Delete", "Löschen", "de", "en"),
        ApprovedTranslation("Save", "Enregistrer", "fr", "en"),
        ApprovedTranslation("Save", "Speichern", "de", "nl"),
        ApprovedTranslation("Save", "Speichern", "de", "en", context="menu"),
    ],
)
async def test_approved_value_under_the_field_of_another_one_is_ignored(
    redis_url: str, other: ApprovedTranslation
) -> None:
    async with opened(redis_url) as memories:
        client = client_of(redis_url)
        client.hset(memories.keys.memory_approved(SAVE.shard), SAVE.field, encode_approved(other))
        assert await memories.memory.approved([ApprovedQuery("Save", "de", "en")]) == [None]
        client.close()


async def test_full_redis_refuses_writes_and_still_answers() -> None:
    with RedisServer() as server, client_of(server.url) as client:
        async with opened(server.url) as memories:
            memories.memory.remember(key(1), HALLO)
            await memories.remembered(1)
            client.config_set("maxmemory", 1)
            memories.memory.remember(key(2), HALLO)

            async def counted() -> bool:
                return memories.counts.get("error", 0) == 1

            await eventually(counted)
            assert await memories.memory.recall([key(1), key(2)]) == [HALLO, None]
            client.config_set("maxmemory", 0)
            memories.memory.remember(key(2), HALLO)
            await memories.remembered(2)


async def test_denied_keys_are_misses() -> None:
    with RedisServer() as server, client_of(server.url) as client:
        client.execute_command(
            *("ACL", "SETUSER", "w", "on", "nopass", "resetkeys", "~jobs:*", "resetchannels")
        )
        client.execute_command("ACL", "SETUSER", "w", "+@all")
        url = server.url.replace("redis://", "redis://w:x@")
        async with opened(url, "memory-is-not-granted:") as memories:
            memories.memory.remember(key(1), HALLO)
            assert await memories.memory.recall([key(1), key(2)]) == [None, None]
            assert memories.counts["error"] >= 2
            assert "miss" not in memories.counts


async def test_a_slow_reply_is_waited_for_while_other_jobs_look_up_too() -> None:
    with RedisServer() as server:
        async with opened(server.url, limit_s=0.01) as memories:
            memories.memory.remember(key(1), HALLO)
            await memories.remembered(1)
            os.kill(server.pid, signal.SIGSTOP)
            try:
                jobs = [asyncio.ensure_future(memories.memory.recall([key(1)])) for _ in range(9)]
                await asyncio.wait(jobs, timeout=0.3)  # thirty times the limit of a single job
                assert not any(job.done() for job in jobs)
            finally:
                os.kill(server.pid, signal.SIGCONT)
            assert await asyncio.gather(*jobs) == [[HALLO]] * 9


async def test_hanging_redis_costs_one_short_wait_then_nothing_until_it_answers() -> None:
    with RedisServer() as server:
        async with opened(server.url, limit_s=0.05) as memories:
            memories.memory.remember(key(1), HALLO)
            await memories.remembered(1)
            os.kill(server.pid, signal.SIGSTOP)
            try:
                jobs = [memories.memory.recall([key(1)]) for _ in range(300)]
                waited = await timed(lambda: asyncio.gather(*jobs))
                assert waited < 4.0  # 0.05 s for all together; a reply may take 5 s elsewhere
                loop_turns = await timed(lambda: many_recalls(memories, 1_000))
                assert loop_turns < 25.0  # 50 s if each waited
                memories.memory.remember(key(2), HALLO)
            finally:
                os.kill(server.pid, signal.SIGCONT)
            await memories.remembered(1)
            memories.memory.remember(key(2), HALLO)
            await memories.remembered(2)


async def timed(act: Callable[[], Any]) -> float:
    started = time.perf_counter()
    await act()
    return time.perf_counter() - started


async def many_recalls(memories: Memories, count: int) -> None:
    for _ in range(count):
        assert await memories.memory.recall([key(1)]) == [None]


async def test_redis_that_is_not_there_delays_neither_start_nor_jobs() -> None:
    async with opened("redis://127.0.0.1:1") as memories:
        assert await timed(lambda: many_recalls(memories, 1_000)) < 25.0
        memories.memory.remember(key(1), HALLO)
        assert memories.counts == {"error": 1_001}


async def test_restarted_redis_without_scripts_is_written_to_again() -> None:
    with RedisServer() as server:
        async with opened(server.url) as memories:
            memories.memory.remember(key(1), HALLO)
            await memories.remembered(1)
            server.kill()
            await memories.memory.recall([key(1)])
            server.start()

            async def written() -> bool:
                memories.memory.remember(key(2), HALLO)
                return await memories.memory.recall([key(2)]) == [HALLO]

            await eventually(written)


async def test_queue_of_writes_is_bounded_while_redis_hangs() -> None:
    with RedisServer() as server:
        async with opened(server.url) as memories:
            os.kill(server.pid, signal.SIGSTOP)
            try:
                big = Remembered("x" * 50_000)
                for number in range(1_000):  # 50 MB
                    memories.memory.remember(key(number), big)
                assert memories.counts["error"] >= 800
                assert memories.memory.waiting <= 200  # type: ignore[union-attr]
            finally:
                os.kill(server.pid, signal.SIGCONT)


async def test_cancelled_look_up_leaves_the_others_their_answers(redis_url: str) -> None:
    async with opened(redis_url) as memories:
        memories.memory.remember(key(1), HALLO)
        await memories.remembered(1)
        tasks = [asyncio.create_task(memories.memory.recall([key(1)])) for _ in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(one == [HALLO] for one in done[1::2])
        assert await memories.memory.recall([key(1)]) == [HALLO]


async def test_what_waits_is_written_when_the_worker_stops(redis_url: str) -> None:
    prefix = f"t{uuid.uuid4().hex[:12]}:"
    async with opened(redis_url, prefix) as memories:
        for number in range(2_000):
            memories.memory.remember(key(number), HALLO)
    async with opened(redis_url, prefix) as memories:
        assert await memories.memory.recall([key(0), key(1_999)]) == [HALLO, HALLO]


@pytest.mark.every_redis
async def test_check_finds_nothing_wrong_with_full_rights(redis_url: str) -> None:
    settings = RedisSettings(url=redis_url, key_prefix=f"t{uuid.uuid4().hex[:12]}:")
    assert await memory_problem(settings) is None
    assert await memory_problem(settings) is None  # also while the keys of the first one live
    with client_of(redis_url) as client:
        assert all(0 < client.pttl(key) <= 1_000 for key in client.scan_iter("t*{check}*"))


@pytest.mark.parametrize("right", ["-rename", "-unlink", "-pttl", "-hmget", "-evalsha"])
async def test_check_names_a_missing_right(right: str) -> None:
    with RedisServer() as server, client_of(server.url) as client:
        client.execute_command("ACL", "SETUSER", "w", "on", ">x", "~*", "+@all", right)
        problem = await memory_problem(
            RedisSettings(url=server.url.replace("redis://", "redis://w:x@"))
        )
        assert problem is not None
        assert any(word in problem for word in ("permission", "can't run", "ACL"))


async def test_check_of_a_redis_that_is_not_there_is_one_line() -> None:
    problem = await memory_problem(RedisSettings(url="redis://127.0.0.1:1"))
    assert problem is not None
    assert "\n" not in problem
