"""A worker's usual calls of its store, for tests of every store."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from dragoman_connections.settings import RedisSettings, SettingsError
from dragoman_producer.errors import WrongStore
from dragoman_producer.store import JobStore
from dragoman_schemas.results import (
    ErrorInfo,
    ItemResult,
    TerminalStatus,
    Timing,
    TranslationResult,
    as_terminal,
)
from dragoman_schemas.scripts import ClaimAnswer
from dragoman_schemas.wire import now_rfc3339, stored_result
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unavailable
from dragoman_worker.ports import Claim, ClaimRequest, Store
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.redis import RedisStore

TIMEOUT_S = 10.0
RECORDED_AT = "2030-01-01T00:00:00.000Z"
FINGERPRINT = "f" * 64
PLACE = "dragoman.jobs/0/7"
TTL_S = 600
_NONCES = itertools.count()
_CLAIM_FIELDS = {*Claim._fields}
_PATIENCE_S = 90.0
_KEPT_S = 3_600
"""How long `settle` keeps a result: on a slow machine a test of an outage outlasts a minute."""

T = TypeVar("T")


@asynccontextmanager
async def redis_store(
    url: str, *, durability: str = "none", **options: Any
) -> AsyncIterator[RedisStore]:
    """Open a started store; `options` are its arguments beside the settings."""
    settings = RedisSettings(url=url, live_ttl_s=TTL_S, durability=durability)
    async with redis_servers(settings) as servers:
        store = RedisStore(
            settings, servers, **{"poison_after": 4, "want_results": True, **options}
        )
        try:
            await store.start(Deadline.after(TIMEOUT_S))
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def idle_store(settings: RedisSettings) -> AsyncIterator[RedisStore]:
    """Open a store that a test starts itself."""
    async with redis_servers(settings) as servers:
        store = RedisStore(settings, servers, poison_after=4, want_results=False)
        yield store
        await store.close()


async def is_a_wrong_setting(url: str, reported: str) -> str:
    """Check that worker and client refuse a URL at once; return both messages."""
    settings, patience_s = RedisSettings(url=url), 60.0
    client = JobStore(settings, connect_timeout_s=patience_s)
    started = time.monotonic()
    async with idle_store(settings) as store:
        with pytest.raises(SettingsError, match=r"^redis\.url: .*" + reported) as worker_s:
            await store.start(Deadline.after(patience_s))
    with pytest.raises(WrongStore, match=r"redis\.url") as client_s:
        await client.stub("a1")
    assert time.monotonic() - started < patience_s / 2
    await client.close()
    return f"{worker_s.value} {client_s.value}"


def request(job_id: str = "a1", **changes: Any) -> ClaimRequest:
    """Return a request to claim a job, with a unique nonce."""
    claim = Claim(job_id, FINGERPRINT, f"n{next(_NONCES)}", ttl_s=60)
    of_claim = {name: changes.pop(name) for name in _CLAIM_FIELDS & changes.keys()}
    wanted: dict[str, Any] = {"origin": PLACE, "queued_at": RECORDED_AT}
    return ClaimRequest(claim._replace(**of_claim), **(wanted | changes))


def claim_of(wanted: ClaimRequest, answer: ClaimAnswer | None = None) -> Claim:
    """Return the claim that is outstanding after the answer."""
    return wanted.claim if answer is None else wanted.claim._replace(replay=answer.replays)


def result(
    status: TerminalStatus = "completed", text: str = "Hallo.", **changes: Any
) -> TranslationResult:
    """Return a terminal result of the job that `request` claims."""
    error = None if status == "completed" else ErrorInfo(code="engine_failed", message="never")
    return TranslationResult(
        **{
            "job_id": "a1",
            "status": status,
            "fingerprint": FINGERPRINT,
            "translations": [ItemResult(text=text)],
            "error": error,
            "deliveries": 1,
            "timing": Timing(finished_at=now_rfc3339()),
            **changes,
        }
    )


def result_in(job_id: str, answer: ClaimAnswer) -> TranslationResult | None:
    """Return the result that came with the answer."""
    status = as_terminal(answer.status)
    if status is None or answer.result is None:
        return None
    return stored_result(job_id, status, answer.result)


async def claimed(store: Store, **changes: Any) -> Claim:
    """Claim a job that is free."""
    wanted = request(**changes)
    reply = await store.claim(wanted)
    assert reply.verdict == "run"
    return claim_of(wanted, reply)


async def until_served(call: Callable[[], Awaitable[T]], pause_s: float = 0.02) -> T:
    """Repeat a call until the store is available, like the worker but without back-off."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(pause_s)


async def settle(store: Store, job_id: str) -> bool:
    """Claim a job, finish it with a unique text and announce it."""
    wanted = request(job_id, ttl_s=_KEPT_S)
    reply = await until_served(lambda: store.claim(wanted))
    assert (reply.verdict, reply.deliveries) == ("run", 1)
    ended = result(job_id=job_id, text=f"text of {job_id}")
    stands = await until_served(lambda: store.finish(claim_of(wanted, reply), ended))
    await until_served(lambda: store.announce(ended, _KEPT_S))
    return stands == ended


async def settle_all(store: Store, jobs: list[str], at_once: int = 32) -> None:
    """Settle many jobs, `at_once` at a time."""
    slots = asyncio.Semaphore(at_once)

    async def one(job_id: str) -> None:
        async with slots:
            await settle(store, job_id)

    await asyncio.gather(*map(one, jobs))


async def all_stand(store: Store, jobs: list[str]) -> None:
    """Check that every job has its own text and was delivered once."""

    async def look(job_id: str) -> tuple[Any, ...]:
        reply = await until_served(lambda: store.claim(request(job_id)))
        stored = result_in(job_id, reply)
        text = stored.translations[0].text if stored else None
        return reply.verdict, reply.status, reply.deliveries, text

    found = dict(zip(jobs, await asyncio.gather(*map(look, jobs)), strict=True))
    expected = {job_id: ("done", "completed", 1, f"text of {job_id}") for job_id in jobs}
    wrong = {job_id: one for job_id, one in found.items() if one != expected[job_id]}
    assert not wrong, f"{len(wrong)} of {len(jobs)}: {dict(itertools.islice(wrong.items(), 5))}"
