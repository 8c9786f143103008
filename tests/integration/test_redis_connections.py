"""All stores of a replica share one pool: its connections to Redis have a documented number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import DragomanSettings, RedisSettings
from dragoman_producer.operations.glossaries import GlossaryStore
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_worker.deadline import Deadline
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Remembered
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores.connection import MAX_CONNECTIONS, redis_servers
from dragoman_worker.stores.glossaries import RedisGlossaries
from dragoman_worker.stores.redis import RedisStore
from dragoman_worker.stores.redis_memory import RedisMemory
from support.builders.store_calls import settle
from support.services.redis_clients import async_client_of
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

DOCS = Path(__file__).parents[2] / "docs/explanation"
JOBS = 400
GLOSSARIES = 20


@dataclass
class Replica:
    """The stores of one replica."""

    store: RedisStore
    memory: RedisMemory
    glossaries: RedisGlossaries

    async def work(self) -> None:
        """Use all of them at once."""
        following = asyncio.create_task(self._follow())
        await asyncio.gather(*map(self._job, range(JOBS)))
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    async def _job(self, number: int) -> None:
        key = number.to_bytes(4, "big") * 8
        glossary = self.glossaries.find(f"g{number % GLOSSARIES}", "de")
        found, _ = await asyncio.gather(glossary, self.memory.recall([key]))
        assert found is not None
        self.memory.remember(key, Remembered("x" * 20_000))
        assert await settle(self.store, f"j{number}")

    async def _follow(self) -> None:
        async for _ in self.store.cancels():
            pass


@asynccontextmanager
async def replica(settings: RedisSettings) -> AsyncIterator[Replica]:
    async with redis_servers(settings) as servers:
        store = RedisStore(settings, servers, poison_after=4, want_results=False)
        metrics = Metrics(CollectorRegistry())
        memory = RedisMemory(settings, servers, MemorySettings(), metrics, limit_s=30)
        glossaries = RedisGlossaries(settings, servers, refresh_s=5)
        await store.start(Deadline.after(30))
        await memory.start()
        yield Replica(store, memory, glossaries)
        await glossaries.close()
        await memory.close()
        await store.close()


async def write_glossaries(url: str) -> None:
    settings = DragomanSettings.model_validate({"redis": {"url": url}})
    glossaries = GlossaryStore(settings)
    terms = [GlossaryEntry(f"term {number}", (f"Wort {number}",)) for number in range(500)]
    for number in range(GLOSSARIES):
        await glossaries.replace(f"g{number}", None, "en", {"de": terms})
    await glossaries.close()


async def test_a_replica_at_work_has_no_more_connections_than_documented(
    own_redis: RedisServer,
) -> None:
    await write_glossaries(own_redis.url)
    client: Any = async_client_of(own_redis.url)
    most = 0
    async with replica(RedisSettings(url=own_redis.url)) as stores:
        work = asyncio.create_task(stores.work())
        while not work.done():
            most = max(most, len(await client.client_list()) - 1)
        await work
    await client.aclose()
    assert 5 <= most <= MAX_CONNECTIONS


@pytest.mark.parametrize("page", ["recovery.md", "scaling.md"])
def test_the_documented_number_of_connections_is_the_pool_s(page: str) -> None:
    assert f"up to {MAX_CONNECTIONS}" in (DOCS / page).read_text()
