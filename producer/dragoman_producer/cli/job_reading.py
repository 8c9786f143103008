"""Reads the results or states of the jobs that a command is about, and sums up those of many."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dragoman_connections.settings import DragomanSettings
from dragoman_connections.terminal import counted
from dragoman_producer.cli.job_ids import ChosenJobs
from dragoman_producer.cli.showing import UNKNOWN, one_line, print_status, report, show, show_error
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    print_json,
    print_line,
    print_note,
    progress,
)
from dragoman_producer.cli.verdicts import Totals
from dragoman_producer.cli.waiting import Found, Waits
from dragoman_producer.client import TranslationClient
from dragoman_producer.handle import JobHandle
from dragoman_producer.operations.bulk import OUTSTANDING
from dragoman_producer.operations.causes import Causes
from dragoman_producer.operations.result_file import ResultFile
from dragoman_producer.window import as_ended, in_order
from dragoman_schemas.results import JobStatus, TranslationResult
from dragoman_schemas.wire import encode_result

_AT_ONCE: Final = 1_000
_UNREADABLE: Final = "unreadable"


@dataclass(slots=True)
class JobReading:
    """What to read, how long to wait, and what came of it."""

    command: str
    jobs: ChosenJobs
    wait: bool
    timeout_s: float | None
    as_json: bool
    found: Causes = field(default_factory=Causes)
    """Jobs by status; of a failed one by its code too."""

    async def results(self, settings: DragomanSettings, *, check: bool) -> int:
        """Print translations, or verdicts; return the exit status."""
        totals, status = Totals(), SUCCESS
        async for job_id, found in self._read(settings):
            if isinstance(found, TranslationResult):
                totals.add(found)
            if self.jobs.is_batch and not check:
                shown = self._print(job_id, found)
            else:
                shown = report(job_id, found, as_json=self.as_json, check=check)
            status = max(status, shown)
        if check and not self.as_json and totals.jobs > 1:
            for line in totals.lines():
                print_line(line)
        self._summarize()
        return status

    async def export(self, settings: DragomanSettings, out: Path) -> int:
        """Append whole results to a file, without those that it has; return the exit status."""
        status = SUCCESS
        with ResultFile(out) as file:
            if file.kept:
                print_note(f"{self.command}: {out} already has {counted(file.kept, 'result')}")
            async for _, found in self._read(settings, file.lacks):
                if isinstance(found, TranslationResult):
                    file.add(encode_result(found))
                status = max(status, _status_of(found))
        self._summarize()
        return status

    async def states(self, settings: DragomanSettings) -> int:
        """Print the status of each job; return the exit status."""
        status = SUCCESS
        async for job_id, found in self._read(settings):
            if isinstance(found, Exception):
                status = max(status, show_error(job_id, found, as_json=self.as_json))
                continue
            is_result = isinstance(found, TranslationResult)
            name = found.status if isinstance(found, TranslationResult) else found or UNKNOWN
            print_status(job_id, name, as_json=self.as_json)
            if name == UNKNOWN or (self.wait and not is_result):
                status = max(status, PARTIAL)
        self._summarize()
        return status

    async def _read(
        self, settings: DragomanSettings, is_wanted: Callable[[str], bool] = lambda _: True
    ) -> AsyncGenerator[tuple[str, Found]]:
        """Yield each job with what is known of it: in their order, or of a batch as they end."""
        waits = Waits(self.command, self.timeout_s if self.wait else 0.0)
        ordered = as_ended if self.wait and (self.as_json or self.jobs.is_batch) else in_order
        most = OUTSTANDING if self.wait else _AT_ONCE
        async with TranslationClient(settings=settings) as client:

            async def handles() -> AsyncIterator[JobHandle]:
                async for job_id in self.jobs.ids(settings):
                    if is_wanted(job_id):
                        yield client.job(job_id)

            total = None if self.jobs.is_batch else 1
            async with aclosing(ordered(handles(), waits.result, in_flight=most)) as outcomes:
                with progress("read", total) as advance, waits.quiet():
                    async for job_id, found in outcomes:
                        advance()
                        self._count(job_id, found)
                        yield job_id, found

    def _count(self, job_id: str, found: Found) -> None:
        if isinstance(found, Exception):
            self.found.add(_UNREADABLE, job_id)
        elif isinstance(found, TranslationResult):
            code = f" ({found.error.code})" if found.error and found.status == "failed" else ""
            self.found.add(f"{found.status}{code}", job_id)
        else:
            self.found.add(str(found or UNKNOWN), job_id)

    def _print(self, job_id: str, found: Found) -> int:
        """Print one job of many; failures without JSON are only counted."""
        if isinstance(found, Exception):
            return show_error(job_id, found, as_json=self.as_json)
        if not isinstance(found, TranslationResult):
            if self.as_json:
                print_json({"job_id": job_id, "status": str(found or UNKNOWN)})
        elif self.as_json:
            return show(found, as_json=True)
        elif found.status == JobStatus.COMPLETED.value:
            print_line(f"{job_id}\t{one_line([each.text or '' for each in found.translations])}")
        return _status_of(found)

    def _summarize(self) -> None:
        if self.jobs.is_batch:
            print_note(f"{self.command}: {self.found.told() or 'no jobs found'}")


def _status_of(found: Found) -> int:
    if isinstance(found, TranslationResult):
        return SUCCESS if found.status == JobStatus.COMPLETED.value else FAILURE
    return FAILURE if isinstance(found, Exception) else PARTIAL
