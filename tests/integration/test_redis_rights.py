"""The Redis rights of docs/how-to/security.md suffice for each role, and each one is needed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from prometheus_client import CollectorRegistry
from redis.exceptions import NoPermissionError

from dragoman_connections.redis_access.calls import Servers
from dragoman_connections.settings import DragomanSettings, RedisSettings
from dragoman_producer.operations.glossaries import GlossaryStore
from dragoman_producer.operations.job_keys import JobKeys
from dragoman_producer.operations.memory import MemoryStore
from dragoman_producer.operations.workers import live_workers
from dragoman_producer.store import JobStore
from dragoman_schemas.approved import ApprovedTranslation
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_schemas.jobs import DocumentRef
from dragoman_worker.deadline import Deadline
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import ApprovedQuery, Remembered
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores.announcements import announcement_problem
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.glossaries import RedisGlossaries
from dragoman_worker.stores.memory_outages import memory_problem
from dragoman_worker.stores.redis import RedisStore
from dragoman_worker.stores.redis_memory import RedisMemory
from support.builders.store_calls import claim_of, request, result, settle
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

PAGE = Path(__file__).parents[2] / "docs/how-to/security.md"
GLOSSARY = "terms"
UNUSED_KEY = b"k" * 32
PATIENCE_S = 60.0


async def submit_and_read(settings: DragomanSettings) -> None:
    """Do all that the client does: submit, read, wait, cancel, and fail what is too large."""
    store, glossaries = JobStore(settings.redis, connect_timeout_s=5), GlossaryStore(settings)
    try:
        last = await store.newest_event()
        await store.cancel_document("d1")
        await store.reopen("d1")
        assert await store.stub("c1")
        assert await store.stub("c2")
        assert await store.state("c1") is not None
        document = DocumentRef(document_id="d1", index=0, total=1)
        failed = result("failed", job_id="c1", document=document)
        assert await store.fail(failed, ttl_ms=60_000)
        assert await store.cancel("c2") == "cancelled"
        assert await store.cancel("c3") == "running"
        assert (await store.events_after(last))[1]
        await glossaries.read(GLOSSARY)
        await live_workers(settings)
    finally:
        await store.close()
        await glossaries.close()


async def translate(settings: DragomanSettings) -> None:
    """Do all that a worker does: check, claim, release, finish, look up and remember."""
    given = settings.redis.model_copy(update={"durability": "aof"})
    async with redis_servers(given) as servers:
        await _translate(given, servers)


async def _translate(given: RedisSettings, servers: Servers) -> None:
    store = RedisStore(given, servers, poison_after=4, want_results=True)
    metrics = Metrics(CollectorRegistry())
    memory = RedisMemory(given, servers, MemorySettings(), metrics, limit_s=30)
    glossaries = RedisGlossaries(given, servers, refresh_s=5)
    following = asyncio.ensure_future(_follow(store))
    try:
        await store.start(Deadline.after(5))
        assert await settle(store, "w1")
        await store.confirm("w1")
        wanted = request("w2", document_id="d2")
        await store.release(claim_of(wanted, await store.claim(wanted)))
        again = request("w2", document_id="d2")
        reply = await store.claim(again)
        document = DocumentRef(document_id="d2", index=0, total=1)
        ended = result(job_id="w2", document=document)
        claim = claim_of(again, reply)
        await store.finish(claim, ended)
        await store.announce(ended, claim.ttl_s)
        problem = await memory_problem(given)
        assert problem is None, problem
        problem = await announcement_problem(given)
        assert problem is None, problem
        memory.remember(UNUSED_KEY, Remembered("Text"))
        await memory.recall([UNUSED_KEY])
        await memory.approved([ApprovedQuery("Save", "de")])
        assert await glossaries.find(GLOSSARY, "de") is not None
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await glossaries.close()
        await memory.close()
        await store.close()


async def _follow(store: RedisStore) -> None:
    async for _ in store.cancels():
        pass


async def operate(settings: DragomanSettings) -> None:
    """Do all that operators do: audit, replay, and keep glossaries and the memory."""
    keys, glossaries, memory = JobKeys(settings), GlossaryStore(settings), MemoryStore(settings)
    jobs = JobStore(settings.redis, connect_timeout_s=5)
    try:
        await keys.read(["w1", "none"])
        await keys.reopen("d1")
        await glossaries.replace("own", None, "en", {"de": [GlossaryEntry("gate", ("Tor",))]})
        assert "own" in await glossaries.names()
        stored = await glossaries.read("own")
        assert stored is not None
        assert await glossaries.terms(stored, "de")
        assert await glossaries.remove("own")
        await memory.add([ApprovedTranslation("Save", "Speichern", "de")])
        assert await memory.find("Save")
        tier = await memory.approved()
        assert tier.size is not None
        await memory.add([ApprovedTranslation("Open", "Offen", "de")])
        assert await memory.remove("Open") == 1
        assert await memory.clear(approved=True) == 1
        await live_workers(settings)
        await jobs.forget(["none"])
        await jobs.ended_bits("d1")
        await jobs.forget_document("d1")
        await jobs.forget_in_gateway("d1")
    finally:
        await jobs.close()
        await keys.close()
        await glossaries.close()
        await memory.close()


Work = Callable[[DragomanSettings], Awaitable[None]]
ROLES: dict[str, Work] = {"client": submit_and_read, "worker": translate, "operator": operate}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A Redis with one user per role."""

    server: RedisServer
    admin: Any

    def allow(self, role: str, rules: list[str], *withheld: str) -> None:
        self.admin.execute_command("ACL", "DELUSER", role)
        self.admin.execute_command("ACL", "SETUSER", role, *rules, *withheld)
        self.admin.execute_command("ACL", "LOG", "RESET")

    async def prepare(self) -> None:
        """Leave what the roles find: one running job, one glossary, and no script."""
        self.admin.flushdb()
        self.admin.script_flush()
        self.admin.hset("dragoman:job:c3", mapping={"status": "running"})
        glossaries = GlossaryStore(DragomanSettings(redis=RedisSettings(url=self.server.url)))
        await glossaries.replace(GLOSSARY, None, "en", {"de": [GlossaryEntry("gate", ("Tor",))]})
        await glossaries.close()
        self.admin.script_flush()

    def settings(self, role: str) -> DragomanSettings:
        given = {"url": self.server.url, "username": role, "password": "PASSWORD"}
        return DragomanSettings(redis=RedisSettings.model_validate(given), connect_timeout_s=5)

    def refused(self) -> set[str]:
        """Return the commands and keys that Redis refused; redis-py's own SETINFO is optional."""
        entries: Any = self.admin.acl_log()
        return {str(entry["object"]) for entry in entries} - {"client|setinfo"}


@pytest.fixture
def guarded(redis_installed: str) -> Iterator[Guarded]:
    with (
        RedisServer(binary=redis_installed, appendonly="yes") as server,
        redis.Redis.from_url(server.url, decode_responses=True) as admin,
    ):
        yield Guarded(server, admin)


def rules_of(role: str) -> list[str]:
    """Return the rules that the page gives a role."""
    found = re.search(rf"^ACL SETUSER {role} (.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_needs_each_of_its_documented_rights_and_no_other(
    guarded: Guarded, role: str
) -> None:
    rules = rules_of(role)
    await guarded.prepare()
    guarded.allow(role, rules)
    await ROLES[role](guarded.settings(role))
    assert guarded.refused() == set()
    for right in [rule for rule in rules if rule.startswith("+")]:
        await guarded.prepare()
        guarded.allow(role, rules, f"-{right[1:]}")
        assert await refused_until_granted(guarded, role, right) == {right[1:]}


async def refused_until_granted(guarded: Guarded, role: str, right: str) -> set[str]:
    """Do a role's work, grant the right once Redis has refused a command, and return which."""
    work = asyncio.ensure_future(ROLES[role](guarded.settings(role)))
    async with asyncio.timeout(PATIENCE_S):
        while not work.done() and not guarded.refused():
            await asyncio.wait([work], timeout=0.02)
        guarded.admin.execute_command("ACL", "SETUSER", role, right)
        await asyncio.wait([work])
    work.exception()  # some calls wait for the right, others fail
    return guarded.refused()


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_reaches_no_other_key(guarded: Guarded, role: str) -> None:
    guarded.allow(role, rules_of(role))
    url = guarded.settings(role).redis.address.url_of(("127.0.0.1", guarded.server.port))
    with redis.Redis.from_url(url) as client, pytest.raises(NoPermissionError):
        client.hget("another:key", "field")
    denied = {"client": "memory:{00}:new", "worker": "other", "operator": "cancels"}
    with redis.Redis.from_url(url) as client, pytest.raises(NoPermissionError):
        client.hget(f"dragoman:{denied[role]}", "field")
