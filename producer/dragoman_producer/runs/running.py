"""Second pass of a run: jobs submitted, their results into the manifest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from pydantic import ValidationError

from dragoman_producer.errors import (
    ClientClosed,
    DragomanError,
    ResultTimeout,
    SomeNotSubmitted,
    SubmitFailed,
    Unreachable,
)
from dragoman_producer.handle import JobHandle
from dragoman_producer.manifest.database import Manifest, NoSpace
from dragoman_producer.manifest.jobs import JobRows
from dragoman_producer.manifest.spent import add_spent
from dragoman_producer.operations.outage import PATIENCE_S, Outage
from dragoman_producer.operations.workers import LiveWorker
from dragoman_producer.runs.events import Event, Progressed, Waiting
from dragoman_producer.runs.planning import PlannedJob, RunPlanner
from dragoman_producer.watch import Quiet
from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import ItemResult, JobStatus, TranslationResult

GRACE_S: Final = 5.0
"""How long a run that was stopped waits for jobs in flight."""
_LOOK_S: Final = 30.0
_ROWS_PER_COMMIT: Final = 2_000
_COMMIT_S: Final = 0.5


Remove = Callable[[Sequence[str]], Awaitable[None]]


class Client(Protocol):
    """What a run needs of a TranslationClient."""

    async def submit(self, job: TranslationJob, *, reopened: set[str]) -> JobHandle: ...
    def submit_many(
        self, jobs: AsyncIterator[TranslationJob], *, in_flight: int, reopened: set[str]
    ) -> AsyncIterator[JobHandle]: ...
    async def cancel(self, *, document_id: str) -> None: ...
    async def workers(self) -> Sequence[LiveWorker]: ...
    async def glossary_terms(self, name: str) -> Mapping[str, Sequence[GlossaryEntry]] | None: ...


class Runner:
    """Keeps a number of segments in flight, and writes results in bulk."""

    def __init__(
        self,
        client: Client,
        manifest: Manifest,
        planner: RunPlanner,
        run: str,
        emit: Callable[[Event], None],
        *,
        in_flight: int,
        patience_s: float = PATIENCE_S,
        remove: Remove | None = None,
    ) -> None:
        """`remove` takes the ids of jobs whose results are in the manifest now."""
        self._client = client
        self._remove = remove
        self._removing: set[asyncio.Task[None]] = set()
        self._jobs = JobRows(manifest, run)
        self._manifest = manifest
        self._spent: list[tuple[Any, ...]] = []
        self._planner = planner
        self._run = run
        self._emit = emit
        self._outage = Outage(lambda line: emit(Waiting(line)), patience_s=patience_s)
        self._most = in_flight
        self._held = 0
        self._free = asyncio.Condition()
        self._unacknowledged: dict[str, PlannedJob] = {}
        self._reopened: set[str] = set()
        """Kept over outages, so that a cancellation that arrives during the run stays."""
        self._collecting: set[asyncio.Task[None]] = set()
        self._rows: list[tuple[Any, ...]] = []
        self._ended: list[tuple[str]] = []
        self._written_at = 0.0
        self._quiet = Quiet(lambda line: emit(Waiting(line)))
        self.stopping = asyncio.Event()
        self.failure: Exception | None = None
        self.stored = asyncio.Event()
        """Set whenever results were written."""
        self.segments = 0
        self.tokens = 0

    async def run(self, jobs: Iterable[PlannedJob]) -> None:
        """Submit jobs and store their results; return when all have one or the run stops."""
        waiting = iter(jobs)
        try:
            while not self.stopping.is_set() and await self._publish(waiting):
                pass
            await self._finish()
        finally:
            for task in self._collecting:
                task.cancel()
            await asyncio.gather(*self._collecting, return_exceptions=True)
            self._store()
            await asyncio.gather(*self._removing, return_exceptions=True)

    def stop(self) -> None:
        """Submit nothing more; `run` returns within GRACE_S."""
        self.stopping.set()

    async def _publish(self, waiting: Iterable[PlannedJob]) -> bool:
        """Publish jobs until none is left; return whether to try again after an outage."""
        again = list(self._unacknowledged.values())
        try:
            async for handle in self._client.submit_many(
                self._source(again, waiting),
                in_flight=max(1, self._most // 8),
                reopened=self._reopened,
            ):
                self._outage.reached()
                planned = self._unacknowledged.pop(handle.job_id)
                self._collect(planned, handle)
        except SomeNotSubmitted as some:
            for refused in some.refused:
                await self._give_up(refused.job_id)
        except Unreachable as error:
            return await self._outlasted(error)
        except (DragomanError, NoSpace) as error:
            self._fail(error)
        return False

    async def _source(
        self, again: list[PlannedJob], waiting: Iterable[PlannedJob]
    ) -> AsyncIterator[TranslationJob]:
        for planned in again:
            yield self._planner.job(planned)
        for planned in waiting:
            if (job := self._job(planned)) is None:
                continue
            if not await self._taken(len(planned.segments)):
                return
            self._unacknowledged[planned.job_id] = planned
            yield job

    def _job(self, planned: PlannedJob) -> TranslationJob | None:
        """Return the job of a plan; None for one that no worker takes, which is stored as failed.

        Of several segments each is planned again in a job of its own.
        """
        try:
            return self._planner.job(planned)
        except ValidationError:
            several = int(len(planned.segments) > 1)
            failed = (None, "fail", None, FailureCode.INVALID_JOB, several, 0, self._run)
            self._rows += [(planned.target.number, each, *failed) for each in planned.segments]
            self._ended.append((planned.job_id,))
            return None

    async def _taken(self, count: int) -> bool:
        """Wait until so many more segments may be in flight; return False if the run stops."""
        async with self._free:
            await self._free.wait_for(
                lambda: self.stopping.is_set() or not self._held or self._held + count <= self._most
            )
            if self.stopping.is_set():
                return False
            self._held += count
            return True

    async def _freed(self, count: int) -> None:
        async with self._free:
            self._held -= count
            self._free.notify_all()

    def _collect(self, planned: PlannedJob, handle: JobHandle) -> None:
        if not self._collecting:
            self._quiet.heard()
        task = asyncio.create_task(self._collected(planned, handle), name="dragoman-collect")
        self._collecting.add(task)
        task.add_done_callback(self._collecting.discard)

    async def _collected(self, planned: PlannedJob, handle: JobHandle) -> None:
        try:
            result = await self._result(planned, handle)
            if result is not None:
                self._add(planned, result)
        except SubmitFailed:
            self._ended.append((planned.job_id,))  # of another owner: planned again
        except (DragomanError, NoSpace) as error:
            self._fail(error)
        finally:
            await self._freed(len(planned.segments))

    async def _result(self, planned: PlannedJob, handle: JobHandle) -> TranslationResult | None:
        """Wait for a result, over outages; submit a job again whose key is lost."""
        lost = False
        while True:
            try:
                if lost:
                    job = self._planner.job(planned)
                    handle = await self._client.submit(job, reopened=self._reopened)
                result = await handle.result(_LOOK_S)
            except ResultTimeout as late:
                lost = late.status is None
                if late.status is JobStatus.QUEUED:
                    self._quiet.queued()
            except Unreachable as error:
                if not await self._outlasted(error):
                    return None
            else:
                self._outage.reached()
                self._quiet.heard()
                return result

    async def _outlasted(self, error: Unreachable) -> bool:
        """Wait a little during an outage; return False once the patience has ended."""
        if self.stopping.is_set() or not await self._outage.outlasts(error):
            self._fail(error)
            return False
        return True

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, ClientClosed):
            self.failure = self.failure or error
        self.stopping.set()

    async def _finish(self) -> None:
        """Wait for the jobs in flight; if the run stops, not for long."""
        stopping = asyncio.create_task(self.stopping.wait())
        try:
            while self._collecting and not stopping.done():
                await asyncio.wait(
                    {stopping, *self._collecting}, return_when=asyncio.FIRST_COMPLETED
                )
            if self._collecting and self.failure is None:
                await asyncio.wait(self._collecting, timeout=GRACE_S)
        finally:
            stopping.cancel()

    async def _give_up(self, job_id: str) -> None:
        """End a job that cannot be submitted; its segments are planned again."""
        planned = self._unacknowledged.pop(job_id)
        self._ended.append((job_id,))
        await self._freed(len(planned.segments))

    # --- results --------------------------------------------------------------------------------

    def _add(self, planned: PlannedJob, result: TranslationResult) -> None:
        self._ended.append((planned.job_id,))
        error = result.error
        items: Iterable[ItemResult | None] = result.translations
        if not result.translations:
            if error is None or result.status == "cancelled":
                self._store_soon()
                return  # missing: planned again
            items = [None] * len(planned.segments)
        last = len(planned.segments) == 1  # a job of its own is the second attempt
        for segment, item in zip(planned.segments, items, strict=True):
            code = error.code if error is not None else "internal"
            self._rows.append(
                (planned.target.number, segment, *_columns(item, code, last), self._run)
            )
        self.segments += len(planned.segments)
        self.tokens += result.usage.completion_tokens
        self._spend(planned, result)
        self._store_soon()

    def _spend(self, planned: PlannedJob, result: TranslationResult) -> None:
        """Count the tokens of answers that the engine wrote anew, for later estimates."""
        used = result.usage
        new = used.completion_tokens and not any(each.cached for each in result.translations)
        if new and used.source_chars:
            key = (planned.target.number, result.model or "", 1, used.source_chars)
            squared = (used.completion_tokens / used.source_chars) ** 2
            self._spent.append((*key, used.prompt_tokens, used.completion_tokens, squared))

    def _store_soon(self) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._rows) >= _ROWS_PER_COMMIT or now - self._written_at >= _COMMIT_S:
            self._written_at = now
            self._store()

    async def _removed(self, remove: Remove, job_ids: Sequence[str]) -> None:
        with suppress(DragomanError):  # what stays expires
            await remove(job_ids)

    def _store(self) -> None:
        rows, self._rows = self._rows, []
        ended, self._ended = self._ended, []
        spent, self._spent = self._spent, []
        self._jobs.end(rows, ended)
        if self._remove is not None and ended:
            removing = asyncio.create_task(self._removed(self._remove, [each for (each,) in ended]))
            self._removing.add(removing)
            removing.add_done_callback(self._removing.discard)
        if spent:
            add_spent(self._manifest, spent)
        self.stored.set()
        self._emit(Progressed(self.segments, self.tokens))


def _columns(item: ItemResult | None, code: str, last: bool) -> tuple[Any, ...]:
    """Return text, quality, notes, code, retry and cached of a translation."""
    if item is None or item.error is not None:
        code = item.error.code if item is not None and item.error is not None else code
        return None, "fail", None, code, int(code in RETRYABLE and not last), 0
    if item.fallback == "source" or item.text is None:
        return None, "fail", _notes(item), "quality_failed", 0, 0
    return item.text, item.quality, _notes(item), None, 0, int(item.cached)


def _notes(item: ItemResult) -> str | None:
    """Return the gates that spoke, as JSON: [[gate, verdict], ...]. No text of the item."""
    if not item.checks and not item.warnings:
        return None
    gates = [
        [gate[:40], str(detail.get("verdict"))[:40]]
        for gate, detail in item.checks.items()
        if isinstance(detail, dict) and detail.get("verdict") in {"warn", "fail"}
    ]
    words = ((warning.split() or ["?"])[0].rstrip(":") for warning in item.warnings)
    gates += [[word[:40], "warn"] for word in words]
    return json.dumps(gates) if gates else None
