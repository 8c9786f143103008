"""`dragoman submit FILE.jsonl`: lines published in bounded memory, results printed as they end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import DragomanSettings
from dragoman_connections.terminal import counted
from dragoman_producer.cli import inputs
from dragoman_producer.cli.showing import one_line
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    print_json,
    print_line,
    print_note,
    progress,
)
from dragoman_producer.cli.waiting import Found, Waits
from dragoman_producer.client import TranslationClient
from dragoman_producer.errors import SubmitFailed
from dragoman_producer.handle import JobHandle
from dragoman_producer.operations.bulk import (
    OUTSTANDING,
    UNACKNOWLEDGED,
    BulkSubmission,
    JobLine,
    Submitted,
)
from dragoman_producer.operations.causes import Causes
from dragoman_producer.operations.glossaries import GlossaryError, GlossaryStore
from dragoman_producer.operations.workers import outlasting
from dragoman_producer.window import as_ended
from dragoman_schemas.jobs import DEFAULT_TTL_S
from dragoman_schemas.results import JobStatus, TranslationResult

_MOST_SHOWN: Final = 20
"""Lines and jobs that are refused and have a line of their own; all are counted."""


_LEAST_ESTIMATED: Final = 100


@dataclass(slots=True)
class Submission:
    """A file of jobs, how it is submitted, and how far that is."""

    path: Path
    wanted: inputs.JobDefaults
    total: int
    resubmit: bool
    wait: bool
    timeout_s: float | None
    as_json: bool
    refused: int = 0
    pending: int = 0
    """Jobs that had no result when the time was up."""
    was_cut: bool = False
    """Whether lines were left when the time was up."""
    done: int = 0
    failed: Causes = field(default_factory=Causes)
    bulk: BulkSubmission | None = None

    def told_interrupt(self) -> str:
        """Return what to say of an interruption."""
        published = 0 if self.bulk is None else self.bulk.published
        return f"; published so far: {published:,} (submitting them again is safe)"

    async def work(self, settings: DragomanSettings) -> int:
        """Submit all lines, print ids or results, and the summary; return the exit status."""
        waits = Waits("dragoman submit", self.timeout_s)
        glossaries = GlossaryStore(settings)
        async with TranslationClient(settings=settings) as client, AsyncExitStack() as stack:
            stack.push_async_callback(glossaries.close)
            if not self.wait and await client.in_box():
                print_note(
                    f"dragoman submit: {self.path}: the queue of this box is in memory, so jobs "
                    "that nobody waits for could be lost; give --wait, or use `dragoman translate`"
                )
                return USAGE_ERROR

            async def digest(name: str) -> str | None:
                try:
                    found = await waits.outage.over(partial(glossaries.read, name))
                except GlossaryError:  # the worker says what is wrong with it
                    return None
                return None if found is None else found.meta.digest

            bulk = self.bulk = BulkSubmission(
                client, digest, self._refuse_job, waits.outage, resubmit=self.resubmit
            )
            await self._warn(client)
            lines = inputs.jobs_of_file(self.path, self.wanted, self._refuse_line)
            async with aclosing(bulk.submitted(self._in_time(lines, waits))) as submitted:
                await (self._results if self.wait else self._ids)(submitted, waits)
        self._summarize(bulk)
        return self._status(bulk)

    async def _warn(self, client: TranslationClient) -> None:
        """Warn if the first results are gone before the last ones are there."""
        if self.total < _LEAST_ESTIMATED:
            return
        rate = sum(each.jobs_per_s for each in await client.workers())
        ttl_s = self.wanted.more.get("ttl_s") or DEFAULT_TTL_S
        if rate and (told := outlasting(self.total / rate, "the live workers", ttl_s)):
            print_note(f"dragoman submit: {told}: read them meanwhile, or give a longer --ttl")

    def _in_time(self, lines: Iterator[JobLine], waits: Waits) -> Iterator[JobLine]:
        for line in lines:
            if waits.are_over:
                self.was_cut = True
                return
            yield line

    async def _ids(self, submitted: AsyncIterator[Submitted], _: Waits) -> None:
        with progress("published", self.total) as advance:
            async for each in submitted:
                advance()
                if self.as_json:
                    status = str(each.handle.already or "queued")
                    print_json({"job_id": each.handle.job_id, "status": status})
                else:
                    print_line(each.handle.job_id)

    async def _results(self, submitted: AsyncIterator[Submitted], waits: Waits) -> None:
        most = OUTSTANDING - UNACKNOWLEDGED
        with progress("translated", self.total) as advance, waits.quiet():

            async def handles() -> AsyncIterator[JobHandle]:
                async for each in submitted:
                    if each.is_equal:
                        advance()
                    else:
                        yield each.handle

            async for job_id, found in as_ended(handles(), waits.result, in_flight=most):
                advance()
                self._ended(job_id, found)

    def _ended(self, job_id: str, found: Found) -> None:
        if isinstance(found, TranslationResult):
            self._count(found)
            print_result(found, as_json=self.as_json)
        elif isinstance(found, SubmitFailed):
            self._refuse_job(found)
        else:
            self.pending += 1
            if self.as_json:
                print_json({"job_id": job_id, "status": str(found or "unknown")})

    def _count(self, found: TranslationResult) -> None:
        if found.status == JobStatus.COMPLETED.value:
            self.done += 1
        else:
            self.failed.add(found.error.code if found.error else found.status, found.job_id)

    def _refuse_line(self, number: int, why: str) -> None:
        self._refuse(f"{self.path}:{number}: {why}")

    def _refuse_job(self, refused: SubmitFailed) -> None:
        self._refuse(f"dragoman submit: {refused}")

    def _refuse(self, what: str) -> None:
        self.refused += 1
        if self.refused <= _MOST_SHOWN:
            print_note(what)

    def _status(self, bulk: BulkSubmission) -> int:
        any_well = bulk.published or bulk.completed or bulk.ended.total
        if self.refused and not any_well:
            return FAILURE
        if self.refused or self.pending or self.was_cut:
            return PARTIAL
        return FAILURE if self.failed.total else SUCCESS

    def _summarize(self, bulk: BulkSubmission) -> None:
        """Print what is not as usual, and with --wait what became of all jobs."""
        if self.refused > _MOST_SHOWN:
            print_note(f"dragoman submit: {counted(self.refused, 'line')} refused")
        if bulk.ended.total:
            what = f"{counted(bulk.ended.total, 'job')} ended before and will not run again"
            print_note(f"dragoman submit: {what}: {bulk.ended.told()}; --resubmit runs them again")
        if bulk.equal or bulk.completed or self.wait:
            parts = (
                counted(bulk.published, "job") + " published",
                f"{counted(bulk.equal, 'line')} equal to an earlier one" if bulk.equal else "",
                f"{bulk.completed:,} completed before" if bulk.completed else "",
            )
            print_note("dragoman submit: " + ", ".join(filter(None, parts)))
        if self.wait:
            print_note("dragoman submit: " + self._outcome())

    def _outcome(self) -> str:
        failed = f", {self.failed.total:,} without translation: {self.failed.told()}"
        cut = "; lines are left, submit the file again" if self.was_cut else ""
        return (
            f"{self.done:,} translated"
            + (failed if self.failed.total else "")
            + (f", {self.pending:,} without a result yet" if self.pending else "")
            + cut
        )


def print_result(found: TranslationResult, *, as_json: bool) -> None:
    r"""Print one line: id, status and texts as JSON, or id and text with line ends as `\n`."""
    texts = [each.text for each in found.translations]
    if not as_json:
        if found.status == JobStatus.COMPLETED.value:
            print_line(f"{found.job_id}\t{one_line([text or '' for text in texts])}")
        return
    fields: dict[str, Any] = {"job_id": found.job_id, "status": found.status, "texts": texts}
    if found.error is not None:
        fields["error"] = {"code": found.error.code, "message": found.error.message}
    print_json(fields)
