"""The contract of stored glossaries: in memory, on a Redis server and on a Cluster."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, Protocol, cast

import pytest

from dragoman_connections.settings import RedisSettings
from dragoman_schemas import names, scripts
from dragoman_schemas.glossaries import (
    MOST_TERMS,
    GlossaryEntry,
    GlossaryMeta,
    digest_of,
    encode_meta,
    encode_terms,
    fields_of,
)
from dragoman_text.terms import Term
from dragoman_worker.errors import Unavailable
from dragoman_worker.ports import Glossaries, StoredGlossary
from dragoman_worker.stores import glossaries as stored
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.glossaries import RedisGlossaries
from support.fakes.local_glossaries import LocalGlossaries
from support.services.ports import free_port
from support.services.redis_clients import async_client_of, client_of
from support.services.redis_cluster import RedisCluster
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

KEY: Final = names.Keys().glossary("ui")
GATE: Final = GlossaryEntry("gate", ("Tor", "Schranke"))
Terms = dict[str, list[GlossaryEntry]]


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Writer(Protocol):
    """What a client does to stored glossaries."""

    async def put(self, name: str, terms: Terms, source_lang: str | None = None) -> None: ...

    async def remove(self, name: str) -> None: ...


class MemoryWriter:
    """Writes into the glossaries in memory."""

    def __init__(self, glossaries: LocalGlossaries) -> None:
        self._glossaries = glossaries

    async def put(self, name: str, terms: Terms, source_lang: str | None = None) -> None:
        found = {tag: [Term(*entry) for entry in some] for tag, some in terms.items()}
        self._glossaries.put(name, found, source_lang)

    async def remove(self, name: str) -> None:
        self._glossaries.remove(name)


class RedisWriter:
    """Calls the script as a client of another language does; then lets the refresh time pass."""

    def __init__(self, client: Any, clock: Clock) -> None:
        self.client = client
        self._clock = clock

    async def put(self, name: str, terms: Terms, source_lang: str | None = None) -> None:
        key = names.Keys().glossary(name)
        read = await self.client.hget(key, "meta")
        version = json.loads(read)["version"] + 1 if read else 1
        meta, fields = encoded(terms, source_lang, version)
        arguments = scripts.glossary_args(read=read, meta=meta, fields=fields)
        reply = await self.client.eval(scripts.GLOSSARY.text, 1, key, *arguments)
        assert scripts.parse_glossary(reply).written
        self._clock.now += 10

    async def remove(self, name: str) -> None:
        await self.client.delete(names.Keys().glossary(name))
        self._clock.now += 10


def encoded(
    terms: Terms, source_lang: str | None = None, version: int = 1
) -> tuple[bytes, list[str | bytes]]:
    """Return `meta` and the fields of a glossary."""
    found = {tag: encode_terms(some) for tag, some in terms.items()}
    meta = GlossaryMeta(
        version=version,
        digest=digest_of(source_lang, found),
        source_lang=source_lang,
        counts={tag: len(some) for tag, some in terms.items()},
        created_at="2030-01-01T00:00:00.000Z",
        updated_at="2030-01-01T00:00:00.000Z",
    )
    return encode_meta(meta), fields_of(found)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "server", "cluster"])
async def both(
    request: pytest.FixtureRequest, clock: Clock
) -> AsyncIterator[tuple[Glossaries, Writer]]:
    if request.param == "memory":
        glossaries = LocalGlossaries()
        yield glossaries, MemoryWriter(glossaries)
        return
    if request.param == "cluster":
        cluster = cast(RedisCluster, request.getfixturevalue("redis_cluster"))
        cluster.flush()
        url = cluster.url
    else:
        url = cast(RedisServer, request.getfixturevalue("redis_server")).url
    async with on_redis(url, clock) as redis, aclosing(async_client_of(url)) as client:
        await client.delete(KEY)  # of an earlier test: this fixture's servers are not emptied
        yield redis, RedisWriter(client, clock)


@pytest.fixture
async def server(
    redis_server: RedisServer, clock: Clock
) -> AsyncIterator[tuple[RedisGlossaries, RedisWriter]]:
    """Glossaries on one server, and a writer whose client may also write what is no glossary."""
    url = redis_server.url
    async with on_redis(url, clock) as glossaries, aclosing(async_client_of(url)) as client:
        yield glossaries, RedisWriter(client, clock)


@asynccontextmanager
async def on_redis(
    url: str, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[RedisGlossaries]:
    settings = RedisSettings(url=url)
    async with redis_servers(settings) as servers:
        glossaries = RedisGlossaries(settings, servers, refresh_s=5, clock=clock)
        yield glossaries
        await glossaries.close()


# --- the port -------------------------------------------------------------------------------------


async def test_an_unknown_name_has_no_glossary(both: tuple[Glossaries, Writer]) -> None:
    assert await both[0].find("ui", "de") is None


async def test_the_terms_of_the_language_are_found(both: tuple[Glossaries, Writer]) -> None:
    glossaries, writer = both
    await writer.put("ui", {"de": [GATE], "fr": [GlossaryEntry("gate", ("portail",))]}, "en")
    found = await glossaries.find("ui", "de")
    assert found is not None
    assert (found.name, found.source_lang, len(found.terms)) == ("ui", "en", 1)
    assert found.terms.find("the gate is open") == (Term("gate", ("Tor", "Schranke")),)


@pytest.mark.parametrize(
    ("stored_tags", "target", "used"),
    [
        (["zh-TW", "zh-Hant", "zh"], "zh-TW", "zh-TW"),
        (["zh-Hant", "zh"], "zh-TW", "zh-Hant"),
        (["zh", "zh-Hans"], "zh-TW", None),
        (["zh"], "zh-SG", "zh"),
        (["sr"], "sr-Latn", None),
        (["pt"], "pt-BR", "pt"),
        (["zh-Hans"], "zh", "zh-Hans"),
        (["pt-PT"], "pt-BR", None),
        (["de"], "fr", None),
    ],
)
async def test_look_up_is_by_tag_then_script_then_language_of_that_script(
    both: tuple[Glossaries, Writer], stored_tags: list[str], target: str, used: str | None
) -> None:
    glossaries, writer = both
    await writer.put("ui", {tag: [GlossaryEntry("gate", (tag,))] for tag in stored_tags})
    found = await glossaries.find("ui", target)
    assert found is not None
    wanted = () if used is None else (Term("gate", (used,)),)
    assert found.terms.find("gate") == wanted


async def test_terms_in_another_script_are_reported_and_not_used(
    both: tuple[Glossaries, Writer],
) -> None:
    glossaries, writer = both
    await writer.put("ui", {tag: [GlossaryEntry("gate", (tag,))] for tag in ("zh", "de")})
    for target, other in (("zh-TW", "zh"), ("fr", None), ("zh", None), ("de-AT", None)):
        found = await glossaries.find("ui", target)
        assert found is not None
        assert found.other_script == other


async def test_an_edited_glossary_has_another_version(both: tuple[Glossaries, Writer]) -> None:
    glossaries, writer = both
    await writer.put("ui", {"de": [GATE]})
    before = await glossaries.find("ui", "de")
    await writer.put("ui", {"de": [GlossaryEntry("gate", ("Pforte",))]})
    after = await glossaries.find("ui", "de")
    assert before is not None
    assert after is not None
    assert before.version != after.version
    assert after.terms.find("gate") == (Term("gate", ("Pforte",)),)


async def test_a_removed_glossary_is_unknown_and_one_added_again_is_another(
    both: tuple[Glossaries, Writer],
) -> None:
    glossaries, writer = both
    await writer.put("ui", {"de": [GATE]})
    await glossaries.find("ui", "de")
    await writer.remove("ui")
    assert await glossaries.find("ui", "de") is None
    await writer.put("ui", {"de": [GlossaryEntry("gate", ("Pforte",))]})
    again = await glossaries.find("ui", "de")
    assert again is not None
    assert again.terms.find("gate") == (Term("gate", ("Pforte",)),)


# --- Redis: refresh, cache, outages ---------------------------------------------------------------


async def test_redis_is_read_again_only_after_the_refresh_time(
    server: tuple[RedisGlossaries, RedisWriter], clock: Clock
) -> None:
    glossaries, writer = server
    await writer.put("ui", {"de": [GATE]})
    await glossaries.find("ui", "de")
    await writer.client.delete(KEY)
    clock.now += 4.9
    assert await glossaries.find("ui", "de") is not None
    clock.now += 0.2
    assert await glossaries.find("ui", "de") is None


async def test_an_unknown_name_is_not_looked_up_for_every_job(
    server: tuple[RedisGlossaries, RedisWriter],
) -> None:
    glossaries, writer = server
    await glossaries.find("ui", "de")
    before = await commands(writer)
    for _ in range(50):
        assert await glossaries.find("ui", "de") is None
    assert await commands(writer) == before


async def test_unchanged_terms_are_indexed_once(
    server: tuple[RedisGlossaries, RedisWriter], clock: Clock
) -> None:
    glossaries, writer = server
    await writer.put("ui", {"de": [GATE]})
    first = await glossaries.find("ui", "de")
    clock.now += 10
    second = await glossaries.find("ui", "de")
    assert first is not None
    assert second is not None
    assert first.terms is second.terms


async def test_concurrent_finds_share_one_load(
    server: tuple[RedisGlossaries, RedisWriter],
) -> None:
    glossaries, writer = server
    await writer.put("ui", {"de": [GATE]})
    found = await asyncio.gather(*(glossaries.find("ui", "de") for _ in range(100)))
    assert len({id(one.terms) for one in found if one is not None}) == 1


async def test_a_cancelled_find_does_not_fail_the_others(
    server: tuple[RedisGlossaries, RedisWriter],
) -> None:
    glossaries, writer = server
    await writer.put("ui", {"de": [GATE]})
    finds = [asyncio.create_task(glossaries.find("ui", "de")) for _ in range(3)]
    await asyncio.sleep(0)
    finds[0].cancel()
    found = await asyncio.gather(*finds, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(isinstance(one, StoredGlossary) for one in found[1:])


async def test_the_oldest_indexes_are_dropped_beyond_the_limits(
    server: tuple[RedisGlossaries, RedisWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    glossaries, writer = server
    monkeypatch.setattr(stored, "MOST_INDEXED_TERMS", 2)
    for name in ("a", "b", "c"):
        await writer.put(name, {"de": [GATE]})
    first = await glossaries.find("a", "de")
    for name in ("b", "c"):
        await glossaries.find(name, "de")
    again = await glossaries.find("a", "de")
    assert first is not None
    assert again is not None
    assert first.terms is not again.terms
    assert len(glossaries._indexes) == 2


async def test_while_redis_is_down_every_find_is_unavailable() -> None:
    async with on_redis(f"redis://127.0.0.1:{free_port()}/0") as glossaries:
        for _ in range(2):
            with pytest.raises(Unavailable):
                await glossaries.find("ui", "de")


async def commands(writer: RedisWriter) -> int:
    """Return how many reads of hashes the server has executed."""
    stats = await writer.client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("hget", "hmget"))


# --- Redis: what is no glossary -------------------------------------------------------------------

META, _FIELDS = encoded({"de": [GATE]})
BAD_TERMS: Final = {
    "not UTF-8": b"\xff\xfe",
    "not JSON": b"[[",
    "nothing": b"",
    "an object": b'{"gate": "Tor"}',
    "no list of rows": b'["gate", "Tor"]',
    "no targets": b'[["gate", []]]',
    "a number as a term": b'[["gate", [7]]]',
    "a long term": json.dumps([["x" * 201, ["y"]]]).encode(),
    "no comma": b'[["a",["b"]] ["c",["d"]]]',
    "no end": b'[["a",["b"]],',
    "four parts": b'[["a",["b"],{},1]]',
    "deep": b"[" * 100_000,
    "too many terms": b"[" + b",".join([b'["a",["b"]]'] * (MOST_TERMS + 1)) + b"]",
}


@pytest.mark.parametrize("terms", BAD_TERMS.values(), ids=BAD_TERMS)
async def test_terms_that_cannot_be_read_are_an_unknown_glossary(
    server: tuple[RedisGlossaries, RedisWriter], terms: bytes
) -> None:
    glossaries, writer = server
    await writer.client.hset(KEY, mapping={"meta": META, "terms:de": terms})
    assert await glossaries.find("ui", "de") is None


@pytest.mark.parametrize(
    "meta",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        META.replace(b'"version":1', b'"version":"x"'),
        b"[" * 10_000,
        META + b" " * 70_000,
    ],
)
async def test_a_meta_that_cannot_be_read_is_an_unknown_glossary(
    server: tuple[RedisGlossaries, RedisWriter], meta: bytes
) -> None:
    glossaries, writer = server
    await writer.client.hset(KEY, mapping={"meta": meta, "terms:de": b"[]"})
    assert await glossaries.find("ui", "de") is None


async def test_a_key_of_another_type_is_an_unknown_glossary(
    server: tuple[RedisGlossaries, RedisWriter],
) -> None:
    glossaries, writer = server
    await writer.client.set(KEY, "mine")
    assert await glossaries.find("ui", "de") is None


async def test_terms_that_meta_counts_and_the_hash_lacks_are_an_unknown_glossary(
    server: tuple[RedisGlossaries, RedisWriter],
) -> None:
    glossaries, writer = server
    await writer.client.hset(KEY, "meta", META)
    assert await glossaries.find("ui", "de") is None


async def test_terms_that_are_too_large_are_not_fetched(
    server: tuple[RedisGlossaries, RedisWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    glossaries, writer = server
    await writer.put("ui", {"de": [GATE]})
    monkeypatch.setattr(stored, "MOST_TERM_BYTES", 10)
    await writer.client.config_resetstat()
    assert await glossaries.find("ui", "de") is None
    assert (await writer.client.info("commandstats")).get("cmdstat_hmget") is None


@pytest.mark.parametrize("name", ["", "{}", "a b\n", "*", "ü" * 128, "'; FLUSHALL"])
async def test_any_name_is_only_a_name(
    server: tuple[RedisGlossaries, RedisWriter], name: str
) -> None:
    assert await server[0].find(name, "de") is None


# --- the script -----------------------------------------------------------------------------------


@pytest.mark.every_redis
class TestGlossaryScript:
    @pytest.fixture
    def hash_of(self, redis_url: str) -> Any:
        with client_of(redis_url) as client:
            client.delete(KEY)
            yield client
            client.delete(KEY)

    def call(self, client: Any, read: bytes | None, terms: Terms, version: int = 1) -> bool:
        meta, fields = encoded(terms, version=version)
        arguments = scripts.glossary_args(read=read, meta=meta, fields=fields)
        return scripts.parse_glossary(
            client.eval(scripts.GLOSSARY.text, 1, KEY, *arguments)
        ).written

    def test_replaces_every_language_and_leaves_no_ttl(self, hash_of: Any) -> None:
        assert self.call(hash_of, None, {"de": [GATE], "fr": [GATE]})
        hash_of.pexpire(KEY, 60_000)
        read = hash_of.hget(KEY, "meta")
        assert self.call(hash_of, read, {"de": [GATE]}, version=2)
        assert set(hash_of.hkeys(KEY)) == {b"meta", b"terms:de"}
        assert hash_of.pttl(KEY) == -1

    def test_changes_nothing_if_another_client_was_first(self, hash_of: Any) -> None:
        self.call(hash_of, None, {"de": [GATE]})
        before = hash_of.hgetall(KEY)
        assert not self.call(hash_of, None, {"fr": [GATE]}, version=2)
        assert not self.call(hash_of, b"{}", {"fr": [GATE]}, version=2)
        assert hash_of.hgetall(KEY) == before

    def test_repeated_is_written_too(self, hash_of: Any) -> None:
        assert self.call(hash_of, None, {"de": [GATE]})
        assert self.call(hash_of, None, {"de": [GATE]})

    def test_a_full_server_leaves_the_glossary_as_it_was(self, hash_of: Any) -> None:
        self.call(hash_of, None, {"de": [GATE]})
        before = hash_of.hgetall(KEY)
        cluster = hasattr(hash_of, "PRIMARIES")
        nodes = {"target_nodes": hash_of.PRIMARIES} if cluster else {}
        hash_of.config_set("maxmemory", 1, **nodes)
        try:
            with pytest.raises(Exception, match=r"(?i)oom|memory"):
                self.call(hash_of, before[b"meta"], {"fr": [GATE]}, version=2)
        finally:
            hash_of.config_set("maxmemory", 0, **nodes)
        assert hash_of.hgetall(KEY) == before
