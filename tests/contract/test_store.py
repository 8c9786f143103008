"""The store contract: one suite in memory, on a Redis server and on a Cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol, cast

import pytest
import redis.asyncio
from structlog.testing import capture_logs

from dragoman_connections.settings import RedisSettings
from dragoman_schemas import names, scripts
from dragoman_schemas.jobs import DocumentRef
from dragoman_schemas.results import (
    TerminalStatus,
    TranslationResult,
    cancelled_result,
)
from dragoman_schemas.scripts import Quarantine
from dragoman_schemas.wire import now_rfc3339
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Conflict, Unavailable, Unencodable, Unreachable
from dragoman_worker.ports import CancelNotice, Claim, Store
from support.builders.store_calls import (
    FINGERPRINT,
    RECORDED_AT,
    TIMEOUT_S,
    TTL_S,
    claim_of,
    claimed,
    idle_store,
    redis_store,
    request,
    result,
    result_in,
)
from support.fakes.local_jobs import LocalJobs
from support.processes.waiting import eventually
from support.services.document_bits import indexes
from support.services.ports import free_port
from support.services.redis_clients import async_client_of
from support.services.redis_cluster import RedisCluster
from support.services.redis_server import RedisServer

OTHER = "0" * 64
KEYS = names.Keys()
KINDS = {"redis": "server", "cluster": "cluster"}


class Client(Protocol):
    """Actions and views of clients on the same keys."""

    async def stub(self, job_id: str) -> None: ...

    async def cancel(self, job_id: str) -> str: ...

    async def cancel_document(self, document_id: str) -> None: ...

    async def fields(self, job_id: str) -> dict[str, Any] | None:
        """Return status, fingerprint, deliveries, replays and claims, None without a key."""
        ...

    async def ttl_s(self, job_id: str) -> float: ...

    async def progress(self, document_id: str) -> tuple[int, int]:
        """Return how many of a document's jobs have ended and how many are completed."""
        ...

    async def progress_ttl_s(self, document_id: str) -> float: ...

    async def events(self) -> list[tuple[str, str]]: ...

    async def listening(self) -> bool:
        """Return whether a cancellation sent now would be received."""
        ...


class MemoryClient:
    """Acts on a LocalJobs."""

    def __init__(self, store: LocalJobs) -> None:
        self._store = store

    async def stub(self, job_id: str) -> None:
        self._store.stub(job_id)

    async def cancel(self, job_id: str) -> str:
        return self._store.cancel(job_id)

    async def cancel_document(self, document_id: str) -> None:
        self._store.cancel_document(document_id)

    async def fields(self, job_id: str) -> dict[str, Any] | None:
        state = self._store.state(job_id)
        if state is None:
            return None
        return {
            "status": state.status,
            "fingerprint": state.fingerprint,
            "deliveries": state.deliveries,
            "replays": state.replays,
            "claims": len(state.claims),
        }

    async def ttl_s(self, job_id: str) -> float:
        state = self._store.state(job_id)
        assert state is not None
        return state.expires_at - self._store.now()

    async def progress(self, document_id: str) -> tuple[int, int]:
        progress = self._store.documents[document_id]
        return len(progress.ended), len(progress.completed)

    async def progress_ttl_s(self, document_id: str) -> float:
        return self._store.documents[document_id].expires_at - self._store.now()

    async def events(self) -> list[tuple[str, str]]:
        return self._store.events

    async def listening(self) -> bool:
        return self._store.listening


class RedisClient:
    """Acts on a real Redis as a program in any language would."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def _call(self, script: scripts.Script, job_id: str, args: Any) -> Any:
        return await self._client.eval(script.text, 1, KEYS.job(job_id), *args)

    async def stub(self, job_id: str) -> None:
        args = scripts.stub_args(queued_at=now_rfc3339(), live_ttl_ms=TTL_S * 1000)
        await self._call(scripts.STUB, job_id, args)

    async def cancel(self, job_id: str) -> str:
        result = cancelled_result(job_id, now_rfc3339()).model_dump_json(by_alias=True).encode()
        args = scripts.cancel_args(now=now_rfc3339(), live_ttl_ms=TTL_S * 1000, result=result)
        effect = scripts.parse_cancel(await self._call(scripts.CANCEL, job_id, args)).effect
        if effect is scripts.CancelEffect.REQUESTED:
            await self._client.xadd(KEYS.cancels, {"job_id": job_id})
        return effect

    async def cancel_document(self, document_id: str) -> None:
        await self._client.set(KEYS.document_cancel(document_id), "1", ex=TTL_S)
        await self._client.xadd(KEYS.cancels, {"document_id": document_id})

    async def fields(self, job_id: str) -> dict[str, Any] | None:
        found = await self._client.hgetall(KEYS.job(job_id))
        if not found:
            return None
        return {
            "status": found[b"status"].decode(),
            "fingerprint": found.get(b"fingerprint", b"").decode() or None,
            "deliveries": int(found.get(b"deliveries", 0)),
            "replays": int(found.get(b"replays", 0)),
            "claims": sum(name.startswith(b"claim:") for name in found),
        }

    async def ttl_s(self, job_id: str) -> float:
        milliseconds = await self._client.pttl(KEYS.job(job_id))
        return cast("int", milliseconds) / 1000

    async def progress(self, document_id: str) -> tuple[int, int]:
        ended = await self._client.hgetall(KEYS.document_ended(document_id))
        completed = await self._client.hgetall(KEYS.document_completed(document_id))
        return len(indexes(ended)), len(indexes(completed))

    async def progress_ttl_s(self, document_id: str) -> float:
        milliseconds = await self._client.pttl(KEYS.document_ended(document_id))
        return cast("int", milliseconds) / 1000

    async def events(self) -> list[tuple[str, str]]:
        entries = await self._client.xrange(KEYS.events)
        return [(found[b"job_id"].decode(), found[b"status"].decode()) for _, found in entries]

    async def listening(self) -> bool:
        # in a Cluster the one node's list is the owner's of the stream, where the reader blocks
        nodes: dict[str, Any] = {}
        if isinstance(self._client, redis.asyncio.RedisCluster):
            nodes = {"target_nodes": self._client.get_node_from_key(KEYS.cancels)}
        blocked = await self._client.client_list(**nodes)
        return any(connection["cmd"] == "xread" for connection in blocked)


@pytest.fixture(
    params=[
        "memory",
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("cluster", marks=pytest.mark.redis),
    ]
)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Store, Client]]:
    if request.param == "memory":
        memory = LocalJobs(live_ttl_s=TTL_S)
        yield memory, MemoryClient(memory)
        return
    server: RedisServer | RedisCluster = request.getfixturevalue(f"redis_{KINDS[request.param]}")
    async with redis_store(server.url) as store, async_client_of(server.url) as client:
        await client.flushall()
        yield store, RedisClient(client)
        async for key in client.scan_iter():
            assert await client.ttl(key) > 0 or await client.type(key) == b"stream"


@pytest.fixture
def store(pair: tuple[Store, Client]) -> Store:
    return pair[0]


@pytest.fixture
def client(pair: tuple[Store, Client]) -> Client:
    return pair[1]


async def ended(store: Store, status: TerminalStatus, **changes: Any) -> TranslationResult:
    written = result(status)
    assert await store.finish(await claimed(store, **changes), written) == written
    return written


async def status_of(client: Client, job_id: str = "a1") -> str | None:
    fields = await client.fields(job_id)
    return None if fields is None else fields["status"]


# --- claim ----------------------------------------------------------------------------------------


async def test_an_unknown_job_is_claimed(store: Store, client: Client) -> None:
    reply = await store.claim(request())
    assert (reply.verdict, reply.deliveries, reply.replays) == ("run", 1, 0)
    assert (reply.queued_at, reply.status) == (RECORDED_AT, "running")
    assert reply.started_at is not None
    assert not reply.document_cancelled
    assert await client.fields("a1") == {
        "status": "running",
        "fingerprint": FINGERPRINT,
        "deliveries": 1,
        "replays": 0,
        "claims": 1,
    }
    assert TTL_S - 60 < await client.ttl_s("a1") <= TTL_S


async def test_the_stub_s_time_has_precedence_over_the_record_s(
    store: Store, client: Client
) -> None:
    await client.stub("a1")
    reply = await store.claim(request())
    assert reply.verdict == "run"
    assert reply.queued_at != RECORDED_AT


async def test_a_repeated_claim_counts_once(store: Store, client: Client) -> None:
    wanted = request()
    assert await store.claim(wanted) == await store.claim(wanted)
    fields = await client.fields("a1")
    assert fields is not None
    assert (fields["deliveries"], fields["claims"]) == (1, 1)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "expired"])
async def test_an_ended_job_is_done_and_its_result_comes_along(
    status: TerminalStatus, store: Store
) -> None:
    written = await ended(store, status)
    reply = await store.claim(request())
    assert (reply.verdict, reply.status) == ("done", status)
    assert result_in("a1", reply) == written


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "expired"])
async def test_another_payload_never_gets_the_verdict_done(
    status: TerminalStatus, store: Store
) -> None:
    await ended(store, status)
    assert (await store.claim(request(fingerprint=OTHER))).verdict == "conflict"


async def test_another_payload_is_a_conflict_and_changes_nothing(
    store: Store, client: Client
) -> None:
    await claimed(store)
    before = await client.fields("a1")
    assert (await store.claim(request(fingerprint=OTHER))).verdict == "conflict"
    assert await client.fields("a1") == before


async def test_a_cancel_in_time_is_done_and_a_late_one_is_the_worker_s(
    store: Store, client: Client
) -> None:
    await client.stub("a1")
    assert await client.cancel("a1") == "cancelled"
    reply = await store.claim(request())
    assert (reply.verdict, reply.status) == ("done", "cancelled")
    assert reply.result is not None
    await claimed(store, job_id="a2")
    assert await client.cancel("a2") == "requested"
    assert (await store.claim(request("a2"))).verdict == "cancel"


@pytest.mark.parametrize(
    ("crashes", "verdicts"),
    [
        (1, ["run", "run", "run"]),
        (2, ["suspect", "run", "run"]),
        (3, ["suspect", "suspect", "run"]),
        (4, ["poisoned", "poisoned", "poisoned"]),
    ],
)
@pytest.mark.parametrize("quarantine", Quarantine)
async def test_claims_left_by_crashes_make_a_record_suspect_and_then_poisoned(
    quarantine: Quarantine, crashes: int, verdicts: list[str], store: Store, client: Client
) -> None:
    for _ in range(crashes):
        await claimed(store, quarantine=Quarantine.BY_ITSELF)
    before = await client.fields("a1")
    reply = await store.claim(request(quarantine=quarantine))
    assert reply.verdict == verdicts[quarantine]
    assert reply.suspicions == (0 if reply.verdict == "run" else crashes)
    if reply.verdict != "run":
        assert await client.fields("a1") == before


async def test_claims_of_other_records_raise_no_suspicion(store: Store) -> None:
    for offset in range(6):
        await claimed(store, origin=f"dragoman.jobs/0/{offset + 100}")
    assert (await store.claim(request())).verdict == "run"


async def test_a_claim_reports_that_its_document_is_cancelled(store: Store, client: Client) -> None:
    await client.cancel_document("d1")
    assert (await store.claim(request(document_id="d1"))).document_cancelled
    assert not (await store.claim(request("a2", document_id="d2"))).document_cancelled
    assert not (await store.claim(request("a3"))).document_cancelled


# --- release --------------------------------------------------------------------------------------


async def test_a_released_job_is_queued_again_and_no_suspicion_is_left(
    store: Store, client: Client
) -> None:
    for _ in range(6):
        claim = await claimed(store)
        await store.release(claim)
        await store.release(claim)
    fields = await client.fields("a1")
    assert fields is not None
    assert (fields["status"], fields["claims"], fields["deliveries"]) == ("queued", 0, 6)


async def test_a_job_claimed_by_another_worker_stays_running(store: Store, client: Client) -> None:
    first, second = await claimed(store), await claimed(store)
    await store.release(first)
    assert await status_of(client) == "running"
    await store.release(second)
    assert await status_of(client) == "queued"


async def test_releasing_an_unclaimed_or_ended_job_changes_nothing(
    store: Store, client: Client
) -> None:
    await store.release(Claim("nobody", FINGERPRINT, "n"))
    assert await client.fields("nobody") is None
    claim = await claimed(store)
    await store.finish(claim, result())
    await store.release(claim)
    assert await status_of(client) == "completed"


# --- finish ---------------------------------------------------------------------------------------


async def test_a_finished_job_keeps_its_result_for_its_ttl_and_no_claims(
    store: Store, client: Client
) -> None:
    await claimed(store)
    assert await store.finish(await claimed(store), result())
    fields = await client.fields("a1")
    assert fields is not None
    assert (fields["status"], fields["claims"], fields["deliveries"]) == ("completed", 0, 2)
    assert 0 < await client.ttl_s("a1") <= 60


@pytest.mark.parametrize("second", ["completed", "failed", "cancelled", "expired"])
@pytest.mark.parametrize("first", ["completed", "failed", "cancelled", "expired"])
async def test_the_first_terminal_state_wins(
    first: TerminalStatus, second: TerminalStatus, store: Store
) -> None:
    one, other = await claimed(store), await claimed(store)
    written = result(first, "first")
    assert await store.finish(one, written) is written
    assert await store.finish(other, result(second, "second")) == written
    assert result_in("a1", await store.claim(request())) == written


async def test_a_key_past_its_ttl_does_not_stop_a_finish(store: Store, client: Client) -> None:
    written = result()
    assert await store.finish(Claim("a1", FINGERPRINT, "n", ttl_s=60), written) is written
    assert await status_of(client) == "completed"


@pytest.mark.parametrize("status", ["running", "completed", "failed"])
async def test_a_finish_does_not_touch_another_payload_s_job_and_is_a_conflict(
    status: str, store: Store, client: Client
) -> None:
    """An id whose key expired while the job was in flight, and which was used again."""
    if status == "running":
        await claimed(store)
    else:
        await ended(store, cast("TerminalStatus", status))
    before = await client.fields("a1")
    stranger = Claim("a1", OTHER, "n", ttl_s=60)
    with pytest.raises(Conflict, match="belongs to another payload"):
        await store.finish(stranger, result(fingerprint=OTHER))
    assert await client.fields("a1") == before


async def test_a_result_with_a_lone_surrogate_is_refused_before_anything_is_written(
    store: Store, client: Client
) -> None:
    claim = await claimed(store)
    with pytest.raises(Unencodable):
        await store.finish(claim, result(text="a\ud800"))
    assert await status_of(client) == "running"


async def test_confirming_changes_nothing(store: Store, client: Client) -> None:
    assert await store.confirm("nobody")  # without durability nothing is looked up
    assert await client.fields("nobody") is None
    await ended(store, "failed")
    before = await client.fields("a1")
    assert await store.confirm("a1")
    assert await client.fields("a1") == before


async def test_an_event_follows_every_announcement(store: Store, client: Client) -> None:
    await ended(store, "failed")
    assert await client.events() == []
    for _ in range(2):
        await store.announce(result("failed"), TTL_S)
    assert await client.events() == [("a1", "failed")] * 2


async def test_a_document_s_progress_counts_each_index_once(store: Store, client: Client) -> None:
    for index, status in enumerate(["completed", "failed", "completed"]):
        document = DocumentRef(document_id="d1", index=index, total=3)
        stored = result(cast("TerminalStatus", status), job_id=f"d1.{index}", document=document)
        await store.finish(await claimed(store, job_id=f"d1.{index}"), stored)
        with capture_logs() as lines:
            for _ in range(2):
                await store.announce(stored, TTL_S)
        assert lines == [], "no hint was refused"
    assert await client.progress("d1") == (3, 2)


async def test_a_document_s_progress_lives_as_long_as_the_job_with_the_longest_ttl(
    store: Store, client: Client
) -> None:
    for index, ttl_s in enumerate([300, 900, 600]):
        document = DocumentRef(document_id="d1", index=index, total=3)
        await store.announce(result(document=document), ttl_s)
    assert 600 < await client.progress_ttl_s("d1") <= 900


# --- replay ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["failed", "cancelled", "expired"])
async def test_a_replay_reopens_what_ended_unwell(
    status: TerminalStatus, store: Store, client: Client
) -> None:
    await ended(store, status)
    reply = await store.claim(request(replay=2))
    assert (reply.verdict, reply.replays, reply.deliveries) == ("run", 2, 2)
    assert (await store.claim(request(replay=2, fingerprint=OTHER))).verdict == "conflict"
    assert await status_of(client) == "running"


async def test_a_replay_runs_once(store: Store) -> None:
    await ended(store, "failed")
    await ended(store, "failed", replay=1)
    assert (await store.claim(request(replay=1))).verdict == "done"
    assert (await store.claim(request(replay=2))).verdict == "run"


async def test_a_completed_job_is_never_reopened(store: Store) -> None:
    await ended(store, "completed")
    assert (await store.claim(request(replay=9))).verdict == "done"


async def test_a_finish_of_an_older_run_does_not_end_a_replay(store: Store, client: Client) -> None:
    old = await claimed(store)
    await ended(store, "failed")
    new = await claimed(store, replay=1)
    assert await store.finish(old, result("completed", "old")) is None
    assert await status_of(client) == "running"
    assert await store.finish(new, result("completed", "new"))


async def test_a_finish_ends_a_job_whose_key_has_lost_its_replay(
    store: Store, client: Client
) -> None:
    claim = await claimed(store)
    ended = result()
    assert await store.finish(claim._replace(replay=1), ended) == ended
    fields = await client.fields("a1")
    assert fields is not None
    assert (fields["status"], fields["replays"], fields["claims"]) == ("completed", 1, 0)


async def test_a_replay_of_a_poisoned_job_starts_without_suspicion(store: Store) -> None:
    for _ in range(4):
        await claimed(store, quarantine=Quarantine.BY_ITSELF)
    assert (await store.claim(request())).verdict == "poisoned"
    assert await store.finish(Claim("a1", FINGERPRINT, "n", ttl_s=60), result("failed"))
    assert (await store.claim(request(replay=1))).verdict == "run"


async def test_a_replay_forgets_a_cancel_of_the_run_before(store: Store, client: Client) -> None:
    claim = await claimed(store)
    await client.cancel("a1")
    await store.finish(claim, result("cancelled"))
    assert (await store.claim(request(replay=1))).verdict == "run"


# --- cancels --------------------------------------------------------------------------------------


async def test_cancellations_are_received_once_the_listener_runs(
    store: Store, client: Client
) -> None:
    heard: list[CancelNotice] = []

    async def listen() -> None:
        async for notice in store.cancels():
            heard.append(notice)  # noqa: PERF401  one by one, while the test looks on

    task = asyncio.create_task(listen())
    try:
        await eventually(client.listening, timeout_s=TIMEOUT_S, what="a listener")
        await claimed(store)
        await client.cancel("a1")
        await client.cancel_document("d1")
        await eventually(lambda: len(heard) == 2, timeout_s=TIMEOUT_S, what="two notices")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert heard == [CancelNotice(job_id="a1"), CancelNotice(document_id="d1")]


@pytest.mark.redis
async def test_a_cancellation_between_the_start_and_the_listener_is_received(
    redis_server: RedisServer,
) -> None:
    """A job can be claimed and cancelled while the listener's first read waits for Redis."""
    async with (
        redis_store(redis_server.url) as earlier,
        redis.asyncio.Redis.from_url(redis_server.url) as admin,
    ):
        await claimed(earlier, job_id="before")
        await RedisClient(admin).cancel("before")
        async with redis_store(redis_server.url) as store:
            await claimed(store)
            await RedisClient(admin).cancel("a1")
            async with asyncio.timeout(TIMEOUT_S):
                assert await anext(aiter(store.cancels())) == CancelNotice(job_id="a1")


# --- many at once ---------------------------------------------------------------------------------


async def test_each_of_many_concurrent_calls_gets_its_own_answer(
    store: Store, client: Client
) -> None:
    wanted = [request(f"j{number}") for number in range(300)]
    replies = await asyncio.gather(*map(store.claim, wanted))
    assert {reply.verdict for reply in replies} == {"run"}
    finishes = [
        store.finish(
            claim_of(ask), result(job_id=ask.claim.job_id, text=f"text of {ask.claim.job_id}")
        )
        for ask in wanted
    ]
    assert all(await asyncio.gather(*finishes))
    again = await asyncio.gather(*(store.claim(request(ask.claim.job_id)) for ask in wanted))
    for ask, reply in zip(wanted, again, strict=True):
        stored = result_in(ask.claim.job_id, reply)
        assert stored is not None
        assert stored.translations[0].text == f"text of {ask.claim.job_id}"


async def test_of_many_that_finish_one_job_exactly_one_wins(store: Store) -> None:
    claim = await claimed(store)
    written = [result(text=f"text {number}") for number in range(50)]
    stands = await asyncio.gather(*(store.finish(claim, one) for one in written))
    (winner,) = {one.translations[0].text for one in stands if one is not None}
    assert [one.translations[0].text for one in stands if one in written].count(winner) == 50
    assert sum(one is mine for one, mine in zip(stands, written, strict=True)) == 1


# --- only on a real server -----------------------------------------------------------------------


@pytest.mark.redis
async def test_a_server_that_forgot_the_scripts_learns_them_again(
    own_redis: RedisServer,
) -> None:
    async with redis_store(own_redis.url) as store:
        own_redis.kill()
        with pytest.raises(Unavailable):
            await store.claim(request())
        own_redis.start()
        reply = await store.claim(request())
        assert reply.verdict == "run"


@pytest.mark.redis
async def test_a_full_memory_is_waited_for(own_redis: RedisServer) -> None:
    async with (
        redis_store(own_redis.url) as store,
        redis.asyncio.Redis.from_url(own_redis.url) as admin,
    ):
        claim = await claimed(store)
        await admin.config_set("maxmemory", 1)
        for call in (lambda: store.claim(request("a2")), lambda: store.finish(claim, result())):
            with pytest.raises(Unavailable):
                await call()
        await admin.config_set("maxmemory", 0)
        assert await store.finish(claim, result())


@pytest.mark.redis
async def test_a_replica_is_waited_for_until_it_is_the_primary(own_redis: RedisServer) -> None:
    async with (
        redis_store(own_redis.url) as store,
        redis.asyncio.Redis.from_url(own_redis.url) as admin,
    ):
        await admin.replicaof("127.0.0.1", str(free_port()))
        with pytest.raises(Unavailable):
            await store.claim(request())
        await admin.replicaof("NO", "ONE")
        assert (await store.claim(request())).verdict == "run"


@pytest.mark.redis
async def test_a_key_that_is_no_job_belongs_to_somebody_else(redis_server: RedisServer) -> None:
    async with (
        redis_store(redis_server.url) as store,
        redis.asyncio.Redis.from_url(redis_server.url) as admin,
    ):
        await admin.set(KEYS.job("a1"), "not ours", ex=60)
        with pytest.raises(Conflict, match="is not a job"):
            await store.claim(request())


@pytest.mark.redis
async def test_a_key_that_became_something_else_is_a_conflict_and_holds_no_claim(
    redis_server: RedisServer,
) -> None:
    async with (
        redis_store(redis_server.url, durability="wait:1") as store,
        redis.asyncio.Redis.from_url(redis_server.url) as admin,
    ):
        claim = await claimed(store)
        await admin.set(KEYS.job("a1"), "not ours", ex=60)
        with pytest.raises(Conflict, match="is not a job"):
            await store.finish(claim, result())
        with pytest.raises(Conflict, match="is not a job"):
            await store.confirm("a1")
        await store.release(claim)
        assert await admin.get(KEYS.job("a1")) == b"not ours"


@pytest.mark.redis
async def test_one_bad_key_costs_the_calls_beside_it_nothing(redis_server: RedisServer) -> None:
    async with (
        redis_store(redis_server.url) as store,
        redis.asyncio.Redis.from_url(redis_server.url) as admin,
    ):
        await admin.set(KEYS.job("text"), "not ours", ex=60)
        garbage: dict[Any, Any] = dict.fromkeys(
            ("status", "queued_at", "started_at", "deliveries", "replays", "result"), b"\xff\xfe"
        )
        await admin.hset(KEYS.job("bytes"), mapping=garbage)
        calls = [store.claim(request(job_id)) for job_id in ("a1", "text", "bytes", "a2")]
        replies = await asyncio.gather(*calls, return_exceptions=True)
        verdicts = [getattr(reply, "verdict", type(reply).__name__) for reply in replies]
        assert verdicts == ["run", "Conflict", "run", "run"]


@pytest.mark.redis
async def test_a_hint_s_key_of_another_type_costs_no_job(redis_server: RedisServer) -> None:
    async with (
        redis_store(redis_server.url) as store,
        redis.asyncio.Redis.from_url(redis_server.url) as admin,
    ):
        await admin.delete(KEYS.events)
        await admin.set(KEYS.events, "not ours", ex=60)
        await admin.set(KEYS.document_ended("d1"), "a text", ex=60)
        document = DocumentRef(document_id="d1", index=0, total=1)
        for _ in range(2):
            await store.announce(result(document=document), TTL_S)
        await admin.delete(KEYS.events)
        await store.announce(result(), TTL_S)
        assert await admin.xlen(KEYS.events) == 1


UNDECODABLE = {
    "absent": None,
    "empty": b"",
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe",
    "of another job": b'{"job_id":"a2","status":"cancelled"}',
    "of another status": b'{"job_id":"a1","status":"completed"}',
    "of a document that is none": b'{"job_id":"a1","status":"cancelled","document":{"index":7}}',
}


@pytest.mark.redis
@pytest.mark.parametrize("value", UNDECODABLE.values(), ids=UNDECODABLE.keys())
async def test_a_stored_result_that_cannot_be_decoded_counts_as_its_status(
    redis_server: RedisServer, value: bytes | None
) -> None:
    """A canceller in another language may write only the status."""
    minimal = TranslationResult(job_id="a1", status="cancelled")
    async with (
        redis_store(redis_server.url) as store,
        redis.asyncio.Redis.from_url(redis_server.url) as admin,
    ):
        claim = await claimed(store)
        fields: dict[Any, Any] = {"status": "cancelled", "finished_at": "yesterday"}
        await admin.hset(KEYS.job("a1"), mapping=fields | ({"result": value} if value else {}))
        reply = await store.claim(request())
        assert (reply.verdict, reply.status) == ("done", "cancelled")
        assert result_in("a1", reply) == (minimal if value else None)
        assert await store.finish(claim, result()) == minimal


@pytest.mark.redis
async def test_results_come_along_only_if_they_are_wanted(redis_server: RedisServer) -> None:
    async with redis_store(redis_server.url, want_results=False) as store:
        await ended(store, "failed")
        reply = await store.claim(request())
        assert (reply.verdict, reply.status, reply.result) == ("done", "failed", None)


@pytest.mark.redis
async def test_a_release_never_overtakes_a_cancelled_claim(
    redis_server: RedisServer,
) -> None:
    """A drain cancels jobs and then releases their claims: none may stay outstanding."""
    async with (
        redis_store(redis_server.url) as store,
        redis.asyncio.Redis.from_url(redis_server.url) as admin,
    ):
        for number in range(50):
            wanted = request(f"j{number}")
            task = asyncio.create_task(store.claim(wanted))
            for _ in range(number % 8):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await store.release(claim_of(wanted))
        client = RedisClient(admin)
        for number in range(50):
            fields = await client.fields(f"j{number}")
            assert fields is None or fields["claims"] == 0


async def test_an_unreachable_redis_is_named_at_the_start() -> None:
    port = free_port()
    settings = RedisSettings(url=f"redis://user:secret@127.0.0.1:{port}/0")
    async with idle_store(settings) as store:
        with pytest.raises(Unreachable, match=rf"127\.0\.0\.1:{port}.*redis\.url") as caught:
            await store.start(Deadline.after(0.1))
    assert "secret" not in str(caught.value)
