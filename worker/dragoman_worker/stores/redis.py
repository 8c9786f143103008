"""Where do the states and results of jobs live? In Redis, changed by scripts alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError, ResponseError

from dragoman_schemas import names, scripts
from dragoman_schemas.connections import RedisSettings
from dragoman_schemas.results import JobStatus, TranslationResult
from dragoman_schemas.wire import decode_result, encode_result, now_rfc3339
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Conflict, Unreachable
from dragoman_worker.log import logger
from dragoman_worker.outcome import Take
from dragoman_worker.ports import CancelNotice, TakeReply, TakeRequest
from dragoman_worker.stores.durability import check_durability, configured, confirmation_for
from dragoman_worker.stores.pipeline import Command, Pipeline

SOCKET_TIMEOUT_S: Final = 5.0
CONNECT_TIMEOUT_S: Final = 2.0
CANCELS_BLOCK_MS: Final = 2_000
_BETWEEN_TRIES_S: Final = 1.0


class RedisTransport:
    """One Redis server, by pipelines without a transaction."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def send(self, commands: list[Command]) -> list[Any]:
        """See Transport."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
            return replies

    async def load_scripts(self) -> None:
        """See Transport."""
        for script in scripts.SCRIPTS:
            await self._redis.script_load(script.text)


class RedisStore:
    """The jobs' keys (contract, section 3). Concurrent calls are coalesced into pipelines."""

    def __init__(self, settings: RedisSettings, *, poison_after: int, want_results: bool) -> None:
        self._settings = settings
        self._keys = names.Keys(settings.key_prefix)
        self._live_ttl_ms = settings.live_ttl_s * 1000
        self._poison_after = poison_after
        self._want_results = want_results
        self._redis = _client(settings.url, socket_timeout_s=SOCKET_TIMEOUT_S)
        # XREAD blocks: it must not hold up, nor be cut by the time-out of, ordinary commands
        self._listener = _client(
            settings.url, socket_timeout_s=SOCKET_TIMEOUT_S + CANCELS_BLOCK_MS / 1000
        )
        self._transport = RedisTransport(self._redis)
        self._pipeline = Pipeline(self._transport, confirmation_for(settings.durability))

    async def start(self, within: Deadline) -> None:
        """Connect and load the scripts. Raises Unreachable, naming the address."""
        address = self.address
        while True:
            try:
                await self._transport.load_scripts()
                break
            except (RedisError, OSError) as error:
                if within.at_most(_BETWEEN_TRIES_S) < _BETWEEN_TRIES_S:
                    raise Unreachable(
                        f"Redis at {address} could not be used in time "
                        f"({type(error).__name__}: {str(error)[:120]}); is it running? "
                        "redis.url, connect_timeout_s"
                    ) from None
                logger().warning(
                    "waiting_for_redis",
                    address=address,
                    left_s=round(within.left_s),
                    error=type(error).__name__,
                )
                await asyncio.sleep(_BETWEEN_TRIES_S)
        await check_durability(self._redis, self._settings.durability, self.address)
        await self._warn_of_eviction()
        self._pipeline.start()

    async def close(self) -> None:
        """Disconnect."""
        await self._pipeline.close()
        await self._redis.aclose()
        await self._listener.aclose()

    @property
    def address(self) -> str:
        """Host and port, without credentials."""
        parts = urlsplit(self._settings.url)
        return parts.path if parts.scheme == "unix" else f"{parts.hostname}:{parts.port or 6379}"

    async def _warn_of_eviction(self) -> None:
        policy = await configured(self._redis, "maxmemory-policy", otherwise="noeviction")
        if policy != "noeviction":
            logger().warning("redis_may_evict_results", policy=policy, wanted="noeviction")

    # --- the port ---------------------------------------------------------------------------------

    async def take(self, request: TakeRequest) -> TakeReply:
        """Claim the job, or learn why not."""
        arguments = scripts.take_args(
            nonce=request.nonce,
            fingerprint=request.fingerprint,
            place=request.place,
            now=now_rfc3339(),
            live_ttl_ms=self._live_ttl_ms,
            queued_at=request.queued_at,
            replay=request.replay,
            poison_after=self._poison_after,
            alone=request.alone,
            want_result=self._want_results,
        )
        commands = [self._script(scripts.TAKE, request.job_id, arguments)]
        if request.document_id is not None:
            commands.append(("EXISTS", self._keys.document_cancel(request.document_id)))
        try:
            replies = await self._pipeline.call(commands)
        except ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            raise Conflict(
                f"the key {self._keys.job(request.job_id)} holds something that is no job; "
                "delete it, or give another redis.key_prefix"
            ) from None
        answer = scripts.parse_take(replies[0])
        return TakeReply(
            verdict=answer.verdict.value,
            deliveries=answer.deliveries,
            replays=answer.replays,
            queued_at=answer.queued_at,
            started_at=answer.started_at,
            status=None if answer.status is None else JobStatus(answer.status),
            result=None if answer.result is None else decode_result(answer.result),
            document_cancelled=len(replies) > 1 and replies[1] == 1,
        )

    async def release(self, take: Take) -> None:
        """Give the claim up."""
        arguments = scripts.release_args(nonce=take.nonce)
        await self._pipeline.call([self._script(scripts.RELEASE, take.job_id, arguments)])

    async def finish(self, take: Take, result: TranslationResult) -> bool:
        """Write the terminal state; what follows goes along in the same round trip."""
        arguments = scripts.finish_args(
            status=result.status,
            replays=take.replay,
            result=encode_result(result),
            finished_at=result.timing.finished_at or now_rfc3339(),
            ttl_ms=take.ttl_s * 1000,
            fingerprint=take.fingerprint,
            deliveries=result.deliveries,
            queued_at=result.timing.queued_at,
            started_at=result.timing.started_at,
        )
        finish = self._script(scripts.FINISH, take.job_id, arguments)
        commands = [finish, *self._what_follows(result)]
        replies = await self._pipeline.call(commands, confirmed=True)
        return scripts.parse_finish(replies[0]).written

    async def stored(self, job_id: str) -> TranslationResult | None:
        """The result that stands."""
        replies = await self._pipeline.call([("HGET", self._keys.job(job_id), names.FIELD_RESULT)])
        return None if replies[0] is None else decode_result(replies[0])

    async def announce(self, result: TranslationResult) -> None:
        """Repeat what follows a finish."""
        await self._pipeline.call(self._what_follows(result))

    async def cancels(self) -> AsyncIterator[CancelNotice]:
        """Cancellations as they come, from now on."""
        last: Any = None
        while True:
            try:
                if last is None:
                    newest = await self._listener.xrevrange(self._keys.cancels, count=1)
                    last = newest[0][0] if newest else b"0-0"
                streams = await self._listener.xread(
                    {self._keys.cancels: last}, count=1000, block=CANCELS_BLOCK_MS
                )
            except (RedisError, OSError):
                await asyncio.sleep(_BETWEEN_TRIES_S)
                continue
            for entry_id, fields in _entries(streams):
                last = entry_id
                if (notice := _notice(fields)) is not None:
                    yield notice

    # --- commands ---------------------------------------------------------------------------------

    def _script(self, script: scripts.Script, job_id: str, arguments: list[Any]) -> Command:
        return ("EVALSHA", script.sha1, 1, self._keys.job(job_id), *arguments)

    def _what_follows(self, result: TranslationResult) -> list[Command]:
        event: Command = (
            "XADD",
            self._keys.events,
            "MAXLEN",
            "~",
            names.EVENTS_MAXLEN,
            "*",
            "job_id",
            result.job_id,
            "status",
            result.status,
        )
        document = result.document
        if document is None:
            return [event]
        bitmaps = [self._keys.document_ended(document.document_id)]
        if result.status == "completed":
            bitmaps.append(self._keys.document_completed(document.document_id))
        commands: list[Command] = []
        for bitmap in bitmaps:
            commands.append(("SETBIT", bitmap, document.index, 1))
            commands.append(("PEXPIRE", bitmap, self._live_ttl_ms))
        return [*commands, event]


def _client(url: str, *, socket_timeout_s: float) -> Redis:
    """A client without retries of its own: only `retry.py` retries."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=8,
        timeout=SOCKET_TIMEOUT_S,
        socket_timeout=socket_timeout_s,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        health_check_interval=30,
    )
    return Redis.from_pool(pool)


def _entries(streams: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    if isinstance(streams, dict):  # RESP3
        streams = list(streams.items())
    return [entry for _, entries in streams or () for entry in _flat(entries)]


def _flat(entries: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    # RESP3 nests the entries of a stream once more than RESP2
    if entries and isinstance(entries[0], list) and entries[0] and isinstance(entries[0][0], tuple):
        return [entry for group in entries for entry in group]
    return list(entries)


def _notice(fields: dict[bytes, bytes]) -> CancelNotice | None:
    if (job_id := fields.get(b"job_id")) is not None:
        return CancelNotice(job_id=job_id.decode(errors="replace"))
    if (document_id := fields.get(b"document_id")) is not None:
        return CancelNotice(document_id=document_id.decode(errors="replace"))
    return None
