"""Job states in Redis: the client's reads, scripts and events (docs/reference/scripts.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from dragoman_connections.batching import Batcher
from dragoman_connections.redis_access.calls import Command
from dragoman_connections.settings import RedisSettings
from dragoman_producer.errors import BrokenKey, DragomanError, Unreadable
from dragoman_producer.redis_link import RedisLink, is_wrong_type
from dragoman_producer.reopening import remove_cancellations
from dragoman_producer.state import JobState
from dragoman_schemas import box, names, scripts
from dragoman_schemas.hints import hints, stream_entry
from dragoman_schemas.results import JobStatus, TranslationResult, cancelled_result
from dragoman_schemas.wire import encode_result, now_rfc3339

_FIELDS: Final = [
    names.FIELD_STATUS,
    names.FIELD_RESULT,
    names.FIELD_REPLAYS,
    names.FIELD_FINGERPRINT,
]
_STUB_FIELDS: Final = [names.FIELD_STATUS, names.FIELD_QUEUED_AT]
_CALLS_PER_PIPELINE: Final = 500
_EVENTS_PER_READ: Final = 1000
_WAIT_FOR_EVENTS_MS: Final = 1000
_BEFORE_ALL_EVENTS: Final = "0-0"

Arguments = Sequence[str | bytes]
Answer = TypeVar("Answer")


class JobStore:
    """Client side of a job's key; every method may raise StoreUnreachable and StoreRefused.

    Concurrent calls of ``stub``, ``state`` and ``reopen`` share pipelines. Every method is
    idempotent.
    """

    def __init__(self, settings: RedisSettings, *, connect_timeout_s: float) -> None:
        self._keys = names.Keys(settings.key_prefix)
        self._live_ttl_ms = settings.live_ttl_s * 1000
        self._link = RedisLink(settings, connect_timeout_s=connect_timeout_s)
        self._stubs = Batcher[str, bool](
            self._write_stubs, at_most=_CALLS_PER_PIPELINE, name="dragoman-stubs"
        )
        self._reopened = Batcher[str, None](
            self._remove_cancellations, at_most=_CALLS_PER_PIPELINE, name="dragoman-reopened"
        )
        self._states = Batcher[str, JobState | None](
            self.read, at_most=_CALLS_PER_PIPELINE, name="dragoman-states"
        )

    async def close(self) -> None:
        """Cancel calls in progress and close every connection."""
        await self._reopened.close()
        await self._stubs.close()
        await self._states.close()
        await self._link.close()

    async def box_bound(self) -> int | None:
        """Return what a publisher may have in a partition of a box; None where there is no box."""
        ((reply,),) = await self._link.send([box.ask(self._keys)])
        return box.bound_in(reply)

    # --- one job --------------------------------------------------------------------------------

    async def stub(self, job_id: str) -> bool:
        """Write a job's stub as queued; return False if the id already has a key, left unchanged.

        Raises BrokenKey.
        """
        return await self._stubs.ask(job_id)

    async def state(self, job_id: str) -> JobState | None:
        """Return the current state of the job's key; None without a key. Raises BrokenKey."""
        return await self._states.ask(job_id)

    async def cancel(self, job_id: str) -> JobStatus:
        """Cancel a job, notifying the workers if it runs; return its status after that.

        Raises BrokenKey and Unreadable.
        """
        now = now_rfc3339()
        result = encode_result(cancelled_result(job_id, now))
        arguments = scripts.cancel_args(now=now, live_ttl_ms=self._live_ttl_ms, result=result)
        answer = await self._call_one(scripts.CANCEL, job_id, arguments, scripts.parse_cancel)
        if answer.effect is scripts.CancelEffect.REQUESTED:
            await self._notify_workers({"job_id": job_id})
        try:
            return JobStatus(answer.status)
        except ValueError:
            raise Unreadable(job_id, f"status {answer.status[:40]!r}") from None

    async def fail(self, result: TranslationResult, *, ttl_ms: int) -> bool:
        """Write the failure of an unpublished job.

        Return False if the key is terminal or has another owner by then.
        """
        encoded = encode_result(result)
        arguments = scripts.finish_args(
            status=result.status,
            replays=0,
            result=encoded,
            finished_at=result.timing.finished_at or now_rfc3339(),
            ttl_ms=ttl_ms,
            fingerprint=result.fingerprint or "",
            deliveries=0,
        )
        answer = await self._call_one(
            scripts.FINISH, result.job_id, arguments, scripts.parse_finish
        )
        written = answer.written or answer.result == encoded  # the repeat of a lost reply
        if written:
            await self._announce(result, ttl_ms)
        return written

    # --- documents ------------------------------------------------------------------------------

    async def cancel_document(self, document_id: str) -> None:
        """Cancel the jobs of a document, running ones and later ones."""
        # The removal of a submission that was cancelled would overtake it on another connection.
        await self._reopened.caught_up(lambda each: each == document_id)
        key = self._keys.document_cancel(document_id)
        await self._link.ask("SET", key, now_rfc3339(), "PX", self._live_ttl_ms)
        await self._notify_workers({"document_id": document_id})

    async def reopen(self, document_id: str) -> None:
        """Remove a document's cancellation, but none that arrives during the call."""
        await self._reopened.ask(document_id)

    # --- many jobs ------------------------------------------------------------------------------

    async def read(self, job_ids: Sequence[str]) -> list[JobState | DragomanError | None]:
        """Return the states of several jobs, in their order, by one pipeline per server.

        For a key that another program wrote, a BrokenKey takes the place of the state.
        """
        calls = [[("HMGET", self._keys.job(job_id), *_FIELDS)] for job_id in job_ids]
        replies = await self._link.send(*calls)
        return [
            self._parsed(job_id, reply, _state)
            for job_id, (reply,) in zip(job_ids, replies, strict=True)
        ]

    async def forget(self, job_ids: Sequence[str]) -> list[scripts.RemovalAnswer | DragomanError]:
        """Delete the keys of terminal jobs; answer for each job, or a BrokenKey."""
        calls = [self._evalsha(scripts.FORGET, job_id, ()) for job_id in job_ids]
        replies = await self._link.send(*calls)
        return [
            self._parsed(job_id, reply, scripts.parse_removal)
            for job_id, (reply,) in zip(job_ids, replies, strict=True)
        ]

    async def forget_document(self, document_id: str) -> None:
        """Delete a document's progress."""
        keys = (self._keys.document_completed, self._keys.document_ended)
        await self._link.send(*([("DEL", key(document_id))] for key in keys))

    async def forget_in_gateway(self, document_id: str) -> int:
        """Delete what the gateway keeps of a document; return how many keys that were."""
        removed: int = await self._link.ask("DEL", self._keys.gateway_document(document_id))
        return removed

    async def ended_bits(self, document_id: str) -> dict[bytes, bytes]:
        """Return the bits of a document's terminal jobs, by field."""
        found = await self._link.ask("HGETALL", self._keys.document_ended(document_id))
        return found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))

    async def newest_event(self) -> str:
        """Return the id of the newest event, or an id before all events."""
        entries = await self._link.ask("XREVRANGE", self._keys.events, "+", "-", "COUNT", 1)
        return _text(entries[0][0]) if entries else _BEFORE_ALL_EVENTS

    async def events_after(self, event_id: str) -> tuple[str, list[str]]:
        """Wait briefly for events; return the id to continue from, and the jobs they name."""
        streams = await self._link.ask(
            *("XREAD", "COUNT", _EVENTS_PER_READ, "BLOCK", _WAIT_FOR_EVENTS_MS),
            *("STREAMS", self._keys.events, event_id),
        )
        entries = [entry for _, entries in streams or () for entry in entries]
        job_ids = [_text(fields.get(b"job_id", b"")) for _, fields in entries if fields]
        return (_text(entries[-1][0]) if entries else event_id), job_ids

    # --- helpers --------------------------------------------------------------------------------

    async def _write_stubs(self, job_ids: Sequence[str]) -> list[bool | DragomanError]:
        queued_at = now_rfc3339()
        arguments = scripts.stub_args(queued_at=queued_at, live_ttl_ms=self._live_ttl_ms)
        calls = [self._evalsha(scripts.STUB, job_id, arguments) for job_id in job_ids]
        attempts = 0

        async def write() -> list[list[Any]]:
            nonlocal attempts
            attempts += 1
            return await self._link.send_once(*calls)

        replies = await self._link.run(write)
        written = [
            self._parsed(job_id, reply, lambda reply: scripts.parse_stub(reply).written)
            for job_id, (reply,) in zip(job_ids, replies, strict=True)
        ]
        if attempts == 1:
            return written
        # An attempt whose reply was lost may have written the stub that the last one found.
        reads = [[("HMGET", self._keys.job(job_id), *_STUB_FIELDS)] for job_id in job_ids]
        own = [b"queued", queued_at.encode()]
        found = await self._link.send(*reads)
        return [reply == own or one for one, (reply,) in zip(written, found, strict=True)]

    async def _remove_cancellations(self, document_ids: Sequence[str]) -> list[None]:
        await remove_cancellations(self._link, map(self._keys.document_cancel, document_ids))
        return [None] * len(document_ids)

    async def _call_one(
        self,
        script: scripts.Script,
        job_id: str,
        arguments: Arguments,
        parse: Callable[[Any], Answer],
    ) -> Answer:
        """Run a script on one job. Raises BrokenKey."""
        ((reply,),) = await self._link.send(self._evalsha(script, job_id, arguments))
        answer = self._parsed(job_id, reply, parse)
        if isinstance(answer, DragomanError):
            raise answer
        return answer

    def _evalsha(
        self, script: scripts.Script, job_id: str, arguments: Arguments
    ) -> Sequence[Command]:
        return [("EVALSHA", script.sha1, 1, self._keys.job(job_id), *arguments)]

    def _parsed(
        self, job_id: str, reply: Any, parse: Callable[[Any], Answer]
    ) -> Answer | DragomanError:
        """Return the parsed reply of one job, or its BrokenKey, so that other replies are kept."""
        if is_wrong_type(reply):
            return BrokenKey(job_id, self._keys.job(job_id), "is not a hash")
        try:
            return parse(self._link.checked(reply))
        except ValueError as error:  # UnicodeDecodeError included
            what = f"holds an unreadable field ({type(error).__name__})"
            return BrokenKey(job_id, self._keys.job(job_id), what)

    async def _notify_workers(self, what: dict[str, str]) -> None:
        await self._link.ask(*stream_entry(self._keys.cancels, names.CANCELS_MAXLEN, what))

    async def _announce(self, result: TranslationResult, ttl_ms: int) -> None:
        """Write the hints of every finish; what Redis refuses of them is lost without an error."""
        await self._link.send(hints(self._keys, result, ttl_ms=ttl_ms))


def _state(fields: Sequence[bytes | None]) -> JobState | None:
    status, result, replays, fingerprint = fields
    if status is None:
        return None
    return JobState(
        status=status.decode(),
        result=result,
        replays=int(replays or 0),
        fingerprint=fingerprint.decode() if fingerprint else None,
    )


def _text(value: bytes | str | None) -> str:
    """Decode an id of the events stream, which any program may write; never raise."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""
