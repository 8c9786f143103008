"""The store of job states and results in Redis, changed by scripts alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

from pydantic_core import PydanticSerializationError
from redis.exceptions import RedisError, ResponseError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, retry_if_exception_type

from dragoman_connections.redis_access.calls import Call, Command, Servers, lasting
from dragoman_connections.redis_access.redis_py import ERRORS, Misfit, UnusableFile
from dragoman_connections.settings import RedisSettings, SettingsError
from dragoman_schemas import box, names, scripts
from dragoman_schemas.hints import hints
from dragoman_schemas.results import TERMINAL_STATUSES, TranslationResult, as_terminal
from dragoman_schemas.scripts import ClaimAnswer
from dragoman_schemas.wire import encode_result, now_rfc3339, stored_result
from dragoman_worker import errors
from dragoman_worker.backoff import backoff
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Conflict, Unavailable, Unencodable, UnknownReply, Unreachable
from dragoman_worker.log import logger
from dragoman_worker.ports import CancelNotice, Claim, ClaimRequest
from dragoman_worker.stores.durability import (
    check_durability,
    check_kind,
    configured,
    confirmation_for,
    missing_replicas,
)
from dragoman_worker.stores.pipeline import Pipeline
from dragoman_worker.stores.refusals import forbidden, shown, wrong_type

CANCELS_BLOCK_MS: Final = 2_000
_Entries = list[tuple[bytes, dict[bytes, bytes]]]
_NO_CANCELS: Final = (RedisError, OSError, TypeError, ValueError)
"""An outage, a refusal, or a reply that XREAD does not give."""


class RedisStore:
    """The jobs' keys (docs/reference/scripts.md). Concurrent calls are coalesced into pipelines."""

    def __init__(
        self, settings: RedisSettings, servers: Servers, *, poison_after: int, want_results: bool
    ) -> None:
        """`servers` are those of the settings; the caller closes them."""
        self._settings = settings
        self._keys = names.Keys(settings.key_prefix)
        self._live_ttl_ms = settings.live_ttl_s * 1000
        self._poison_after = poison_after
        self._want_results = want_results
        self._servers = servers
        self.missing_replicas = 0
        """Replicas that `redis.durability` needed beyond those that were connected at the start."""
        self.in_box = False
        """Whether this Redis belongs to a box, whose broker keeps its queue in memory."""
        self.answers = True
        """Whether Redis answered the last look for cancellations, also of an idle worker."""
        confirmation = confirmation_for(settings.durability)
        self._pipeline = Pipeline(self._servers, confirmation, address=settings.address.shown)
        self._last_cancel: Any = b"0-0"
        self._hint_refused = False
        """Whether it was logged: one key of another type refuses the hints of every job."""

    async def start(self, within: Deadline) -> None:
        """Connect, load the scripts and check the servers' settings.

        Raises Unreachable, naming the address, and SettingsError for what waiting does not cure.
        """
        wait = backoff()
        retrying = AsyncRetrying(
            wait=lambda state: within.at_most(wait(state)),
            stop=lambda _: within.passed,
            retry=retry_if_exception(_is_outage),
            before_sleep=partial(self._log_wait, within),
            reraise=True,
        )
        try:
            await retrying(self._prepare)
        except (RedisError, OSError) as error:
            if not _is_outage(error):
                raise SettingsError(self._misfit(error)) from None
            raise Unreachable(
                f"Redis at {self.address} could not be used in time "
                f"({type(error).__name__}: {str(error)[:200]}); is it running? "
                "redis.url, connect_timeout_s"
            ) from None

    async def close(self) -> None:
        """Cancel the calls under way and their callers."""
        await self._pipeline.close()

    @property
    def address(self) -> str:
        """The address of Redis, without credentials."""
        return self._settings.address.shown

    @property
    def waiting(self) -> int:
        """Calls that have not been sent to Redis yet."""
        return self._pipeline.waiting

    async def _prepare(self) -> None:
        await self._servers.load_scripts()
        await check_kind(self._servers, self._settings.address)
        await check_durability(self._servers, self._settings.durability, self.address)
        await self._warn_of_eviction()
        await self._find_last_cancel()
        with suppress(ResponseError):  # a user without this right is no user of a box
            self.in_box = box.bound_in(await self._read(*box.ask(self._keys))) is not None
        durability = self._settings.durability
        self.missing_replicas = missing = await missing_replicas(self._servers, durability)
        if missing:
            logger().warning("redis_replicas_missing", durability=durability, missing=missing)

    async def _find_last_cancel(self) -> None:
        """Find where the cancellations of jobs that are claimed from now on begin."""
        with suppress(ResponseError):  # a key of another type: nobody can write cancellations
            newest = await self._read("XREVRANGE", self._keys.cancels, "+", "-", "COUNT", 1)
            self._last_cancel = newest[0][0] if newest else b"0-0"

    def _misfit(self, error: Exception) -> str:
        if isinstance(error, UnusableFile):
            return f"redis.url: {error}"
        what = (
            "refuses its user or password"
            if isinstance(error, ERRORS.refused)
            else "is not the kind of server that redis.url names"
        )
        return f"redis.url: Redis at {self.address} {what}: {str(error)[:300]}"

    def _log_wait(self, within: Deadline, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        logger().warning(
            "waiting_for_redis",
            address=self.address,
            left_s=round(within.left_s),
            error=type(error).__name__,
        )

    async def _warn_of_eviction(self) -> None:
        for policy in await configured(self._servers, "maxmemory-policy") - {"noeviction"}:
            logger().warning("redis_may_evict_results", policy=policy, wanted="noeviction")

    # --- the port ---------------------------------------------------------------------------------

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        """Claim the job, or return why not."""
        claim = request.claim
        arguments = scripts.claim_args(
            nonce=claim.nonce,
            fingerprint=claim.fingerprint,
            place=request.origin,
            now=now_rfc3339(),
            live_ttl_ms=self._live_ttl_ms,
            queued_at=request.queued_at,
            replay=claim.replay,
            poison_after=self._poison_after,
            quarantine=request.quarantine,
            want_result=self._want_results,
        )
        commands = [self._script(scripts.CLAIM, claim.job_id, arguments)]
        if request.document_id is not None:
            commands.append(("EXISTS", self._keys.document_cancel(request.document_id)))
        replies = await self._call(claim.job_id, commands)
        return scripts.parse_claim(replies[0], document_cancelled=replies[1:] == [1])

    async def release(self, claim: Claim) -> None:
        """Remove the claim."""
        # The claim of a cancelled job may be under way on another connection: never overtake it.
        await self._pipeline.caught_up(self._keys.job(claim.job_id))
        arguments = scripts.release_args(nonce=claim.nonce)
        with suppress(Conflict):  # a key that is not a job holds no claim
            await self._call(claim.job_id, [self._script(scripts.RELEASE, claim.job_id, arguments)])

    async def finish(self, claim: Claim, result: TranslationResult) -> TranslationResult | None:
        """Write the terminal state and return the one that stands."""
        arguments = scripts.finish_args(
            status=result.status,
            replays=claim.replay,
            result=encoded(result),
            finished_at=result.timing.finished_at or now_rfc3339(),
            ttl_ms=claim.ttl_s * 1000,
            fingerprint=claim.fingerprint,
            deliveries=result.deliveries,
            queued_at=result.timing.queued_at,
            started_at=result.timing.started_at,
        )
        command = self._script(scripts.FINISH, claim.job_id, arguments)
        replies = await self._call(claim.job_id, [command], confirmed=True)
        answer = scripts.parse_finish(replies[0])
        if answer.written:
            return result
        if not answer.owned:
            raise Conflict(errors.REUSED)
        return _stands(claim.job_id, answer.status, answer.result)

    async def confirm(self, job_id: str) -> bool:
        """Return whether the stored state is terminal and durable; free without durability."""
        if not self._pipeline.confirms:
            return True
        command = self._script(scripts.CONFIRM, job_id, scripts.confirm_args())
        replies = await self._call(job_id, [command], confirmed=True)
        return scripts.parse_confirm(replies[0]).status in TERMINAL_STATUSES

    async def announce(self, result: TranslationResult, ttl_s: int) -> None:
        """Write the hints after a finish. What Redis refuses of them is lost, never the job.

        Raises Unavailable while Redis serves nobody.
        """
        try:
            await self._pipeline.call(hints(self._keys, result, ttl_ms=ttl_s * 1000))
        except (Conflict, ResponseError, UnknownReply) as error:
            self._lose_hint(result.job_id, error)
        except Unavailable as error:
            if not forbidden(error):
                raise
            self._lose_hint(result.job_id, error)

    def _lose_hint(self, job_id: str, error: Exception) -> None:
        if not self._hint_refused:
            self._hint_refused = True
            words = str(error) if isinstance(error, UnknownReply) else shown(error)
            logger().warning("hint_refused", job_id=job_id, error=words)

    async def cancels(self) -> AsyncIterator[CancelNotice]:
        """Yield the cancellations since the start."""
        last = self._last_cancel
        retrying = AsyncRetrying(wait=backoff(), retry=retry_if_exception_type(_NO_CANCELS))
        while True:
            entries: _Entries = await retrying(self._cancels_after, last)
            for entry_id, fields in entries:
                last = entry_id
                if (notice := _notice(fields or {})) is not None:
                    yield notice

    async def _cancels_after(self, last: Any) -> _Entries:
        """Return the entries after `last`, waiting up to `CANCELS_BLOCK_MS` for one."""
        try:
            streams = await self._read(
                *("XREAD", "COUNT", 1000, "BLOCK", CANCELS_BLOCK_MS, "STREAMS"),
                *(self._keys.cancels, last),
            )
            entries = [(at, fields) for _, found in streams or () for at, fields in found]
        except _NO_CANCELS as error:
            self.answers = isinstance(error, ResponseError)
            raise
        self.answers = True
        return entries

    async def _read(self, *command: Any) -> Any:
        """Send one command outside the pipelines, which a blocking one must not hold up."""
        (answer,) = await self._servers.send([Call([command])])
        (reply,) = answer.replies
        if isinstance(reply, Exception):
            raise reply
        return reply

    # --- commands ---------------------------------------------------------------------------------

    async def _call(
        self, job_id: str, commands: list[Command], *, confirmed: bool = False
    ) -> list[Any]:
        try:
            return await self._pipeline.call(commands, confirmed=confirmed)
        except ResponseError as error:
            if not wrong_type(error):
                raise
            raise Conflict(
                f"the key {self._keys.job(job_id)} is not a job; "
                "delete it, or give another redis.key_prefix"
            ) from None

    def _script(self, script: scripts.Script, job_id: str, arguments: list[Any]) -> Command:
        return ("EVALSHA", script.sha1, 1, self._keys.job(job_id), *arguments)


def encoded(result: TranslationResult) -> bytes:
    """Return the result as JSON in UTF-8. Raises Unencodable, whose message holds no text."""
    try:
        return encode_result(result)
    except PydanticSerializationError:  # its message quotes the text
        raise Unencodable("the result holds what JSON in UTF-8 cannot encode") from None


def _is_outage(error: BaseException) -> bool:
    """Whether waiting may help: Redis at `redis.url` is not reached, or not ready."""
    if not isinstance(error, RedisError | OSError):
        return False
    return not isinstance(error, Misfit) and not lasting(error, ERRORS)


def _stands(job_id: str, status: str | None, value: bytes | None) -> TranslationResult | None:
    """Return the result of a terminal key, whatever its field holds; None if not terminal."""
    terminal = as_terminal(status)
    return None if terminal is None else stored_result(job_id, terminal, value)


def _notice(fields: dict[bytes, bytes]) -> CancelNotice | None:
    if (job_id := fields.get(b"job_id")) is not None:
        return CancelNotice(job_id=job_id.decode(errors="replace"))
    if (document_id := fields.get(b"document_id")) is not None:
        return CancelNotice(document_id=document_id.decode(errors="replace"))
    return None
