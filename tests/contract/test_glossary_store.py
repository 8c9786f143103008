"""The client's store of glossaries, on a Redis server and on a Cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from dragoman_connections.settings import DragomanSettings, RedisSettings
from dragoman_producer.operations.glossaries import GlossaryError, GlossaryStore
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.glossaries import RedisGlossaries
from support.services.redis_clients import async_client_of, client_of
from support.services.redis_cluster import RedisCluster
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

GATE = GlossaryEntry("gate", ("Tor",))


@pytest.fixture(params=["server", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty Redis."""
    if request.param == "cluster":
        cluster = cast(RedisCluster, request.getfixturevalue("redis_cluster"))
        cluster.flush()
        return cluster.url
    server = cast(RedisServer, request.getfixturevalue("redis_server"))
    with client_of(server.url) as client:
        client.flushall()
    return server.url


@pytest.fixture
async def store(url: str) -> AsyncIterator[GlossaryStore]:
    opened = GlossaryStore(DragomanSettings(redis=RedisSettings(url=url), connect_timeout_s=5))
    yield opened
    await opened.close()


async def test_names_are_found_among_many_other_keys(store: GlossaryStore, url: str) -> None:
    client = async_client_of(url)
    for number in range(300):
        await client.set(f"dragoman:job:{number}", "x", ex=60)
        await client.set(f"dragoman:glossar[{number}", "x", ex=60)
    for name in ("ui", "legal", "a.b-c:d"):
        await store.replace(name, None, "en", {"de": [GATE]})
    assert await store.names() == ["a.b-c:d", "legal", "ui"]
    await client.aclose()


async def test_the_second_of_two_concurrent_changes_is_refused(store: GlossaryStore) -> None:
    await store.replace("ui", None, "en", {"de": [GATE]})
    read = await store.read("ui")
    changes = [
        store.replace("ui", read, "en", {"de": [GlossaryEntry("gate", (target,))]})
        for target in ("Schranke", "Pforte")
    ]
    results = await asyncio.gather(*changes, return_exceptions=True)
    refused = [one for one in results if isinstance(one, GlossaryError)]
    assert len(refused) == 1
    assert "changed it meanwhile" in str(refused[0])


async def test_what_the_command_stores_is_what_the_worker_finds(
    store: GlossaryStore, url: str
) -> None:
    entry = GlossaryEntry("Gate", ("Tor", "Schranke"), True, "at airports")
    await store.replace("ui", None, "en", {"zh-Hant": [entry], "de": []})
    settings = RedisSettings(url=url)
    async with redis_servers(settings) as servers:
        glossaries = RedisGlossaries(settings, servers, refresh_s=5)
        found = await glossaries.find("ui", "zh-TW")
        await glossaries.close()
    assert found is not None
    (term,) = found.terms.find("The Gate.")
    assert (term.source, term.targets, term.case_sensitive, term.note) == tuple(entry)
