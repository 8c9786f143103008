"""What does Redis say about jobs, and how is it told? (contract, section 3)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dragoman_producer.coalesce import Coalescer
from dragoman_producer.redis_link import RedisLink
from dragoman_producer.state import JobState
from dragoman_schemas import names, scripts
from dragoman_schemas.connections import RedisSettings
from dragoman_schemas.jobs import DocumentRef
from dragoman_schemas.redis_access.calls import Command
from dragoman_schemas.results import JobStatus, TranslationResult
from dragoman_schemas.wire import encode_result, now_rfc3339

_FIELDS: Final = [
    names.FIELD_STATUS,
    names.FIELD_RESULT,
    names.FIELD_REPLAYS,
    names.FIELD_FINGERPRINT,
]
_CALLS_A_PIPELINE: Final = 500
_EVENTS_A_READ: Final = 1000
_WAIT_FOR_EVENTS_MS: Final = 1000
_BEFORE_ALL_EVENTS: Final = "0-0"

Arguments = Sequence[str | bytes]


class JobStore:
    """The client's side of a job's key; every method may raise StoreUnreachable, StoreRefused.

    Concurrent calls of ``stub`` and ``state`` share pipelines. Everything may be repeated.
    """

    def __init__(self, settings: RedisSettings, *, connect_timeout_s: float) -> None:
        self._keys = names.Keys(settings.key_prefix)
        self._live_ttl_ms = settings.live_ttl_s * 1000
        self._link = RedisLink(settings, connect_timeout_s=connect_timeout_s)
        self._stubs = Coalescer(self._write_stubs, at_most=_CALLS_A_PIPELINE)
        self._states = Coalescer(self.read, at_most=_CALLS_A_PIPELINE)

    async def close(self) -> None:
        """End calls under way and every connection."""
        await self._stubs.close()
        await self._states.close()
        await self._link.close()

    # --- one job --------------------------------------------------------------------------------

    async def stub(self, job_id: str) -> bool:
        """Announce a job as queued; False if the id has a key already, which is left alone."""
        return await self._stubs.ask(job_id)

    async def state(self, job_id: str) -> JobState | None:
        """What the job's key says now; None without a key."""
        return await self._states.ask(job_id)

    async def cancel(self, job_id: str) -> JobStatus:
        """Cancel a job, telling the workers if it runs; the status that stands then."""
        now = now_rfc3339()
        result = TranslationResult.model_validate(
            {"job_id": job_id, "status": "cancelled", "timing": {"finished_at": now}}
        )
        arguments = scripts.cancel_args(
            now=now, live_ttl_ms=self._live_ttl_ms, result=encode_result(result)
        )
        (reply,) = await self._call(scripts.CANCEL, [(job_id, arguments)])
        answer = scripts.parse_cancel(reply)
        if answer.effect is scripts.CancelEffect.REQUESTED:
            await self._tell_workers({"job_id": job_id})
        return JobStatus(answer.status)

    async def fail(self, result: TranslationResult, *, ttl_ms: int) -> bool:
        """End a job that no worker will ever see; False if it has another end or owner by now."""
        arguments = scripts.finish_args(
            status=result.status,
            replays=0,
            result=encode_result(result),
            finished_at=result.timing.finished_at or now_rfc3339(),
            ttl_ms=ttl_ms,
            fingerprint=result.fingerprint or "",
            deliveries=0,
        )
        (reply,) = await self._call(scripts.FINISH, [(result.job_id, arguments)])
        written = scripts.parse_finish(reply).written
        if written:
            await self._announce(result)
        return written

    # --- documents ------------------------------------------------------------------------------

    async def cancel_document(self, document_id: str) -> None:
        """Cancel the jobs of a document, those that run and those yet to come."""
        key = self._keys.document_cancel(document_id)
        await self._link.ask("SET", key, now_rfc3339(), "PX", self._live_ttl_ms)
        await self._tell_workers({"document_id": document_id})

    # --- many jobs ------------------------------------------------------------------------------

    async def read(self, job_ids: Sequence[str]) -> list[JobState | None]:
        """The states of several jobs, in their order, by one pipeline a server."""
        calls = [[("HMGET", self._keys.job(job_id), *_FIELDS)] for job_id in job_ids]
        return [_state(self._link.checked(reply)) for (reply,) in await self._link.send(*calls)]

    async def newest_event(self) -> str:
        """The id of the newest event, or one before all events."""
        entries = await self._link.ask("XREVRANGE", self._keys.events, "+", "-", "COUNT", 1)
        return _text(entries[0][0]) if entries else _BEFORE_ALL_EVENTS

    async def events_after(self, event_id: str) -> tuple[str, list[str]]:
        """Wait a moment for events: the id to go on from, and the jobs they speak of."""
        streams = await self._link.ask(
            *("XREAD", "COUNT", _EVENTS_A_READ, "BLOCK", _WAIT_FOR_EVENTS_MS),
            *("STREAMS", self._keys.events, event_id),
        )
        entries = [entry for _, entries in streams or () for entry in entries]
        job_ids = [_text(fields.get(b"job_id", b"")) for _, fields in entries if fields]
        return (_text(entries[-1][0]) if entries else event_id), job_ids

    # --- inside ---------------------------------------------------------------------------------

    async def _write_stubs(self, job_ids: Sequence[str]) -> list[bool]:
        arguments = scripts.stub_args(queued_at=now_rfc3339(), live_ttl_ms=self._live_ttl_ms)
        replies = await self._call(scripts.STUB, [(job_id, arguments) for job_id in job_ids])
        return [scripts.parse_stub(reply).written for reply in replies]

    async def _call(
        self, script: scripts.Script, calls: Sequence[tuple[str, Arguments]]
    ) -> list[Any]:
        """Run a script on several jobs by one pipeline a server."""
        evalsha = [
            [("EVALSHA", script.sha1, 1, self._keys.job(job_id), *arguments)]
            for job_id, arguments in calls
        ]
        return [self._link.checked(reply) for (reply,) in await self._link.send(*evalsha)]

    async def _tell_workers(self, what: dict[str, str]) -> None:
        await self._link.ask(*_xadd(self._keys.cancels, names.CANCELS_MAXLEN, what))

    async def _announce(self, result: TranslationResult) -> None:
        """What follows every finish: the document's bitmap, then the event."""
        commands: list[Command] = []
        if isinstance(result.document, DocumentRef):
            bitmap = self._keys.document_ended(result.document.document_id)
            commands.append(("SETBIT", bitmap, result.document.index, 1))
            commands.append(("PEXPIRE", bitmap, self._live_ttl_ms))
        event = {"job_id": result.job_id, "status": str(result.status)}
        commands.append(_xadd(self._keys.events, names.EVENTS_MAXLEN, event))
        for reply in (await self._link.send(commands))[0]:
            self._link.checked(reply)


def _xadd(stream: str, at_most: int, what: dict[str, str]) -> Command:
    fields = [part for pair in what.items() for part in pair]
    return ("XADD", stream, "MAXLEN", "~", at_most, "*", *fields)


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
    return value.decode() if isinstance(value, bytes) else value or ""
