"""Waits of commands for results: one limit of time for all, and a note if no result comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from dragoman_producer.cli.terminal import print_note
from dragoman_producer.errors import ResultTimeout, SubmitFailed
from dragoman_producer.handle import JobHandle
from dragoman_producer.operations.outage import PATIENCE_S, Outage
from dragoman_producer.watch import NO_RESULT, QUIET_S
from dragoman_schemas.results import JobStatus, TranslationResult

Found = TranslationResult | JobStatus | SubmitFailed | None
"""Of a job: its result; its status while it has none, None for unknown; why it cannot be read."""


class Waits:
    """The waits of one command, made inside its event loop."""

    def __init__(self, command: str, timeout_s: float | None) -> None:
        """`timeout_s` is for all waits together, from now.

        None waits without a limit; 0 reads each job once, whenever it is asked for.
        """
        self._loop = asyncio.get_running_loop()
        self._command = command
        self._until = None if timeout_s is None else self._loop.time() + timeout_s
        self._note: asyncio.TimerHandle | None = None
        self.outage = Outage(self._tell, until=self._until if timeout_s else None)

    @property
    def are_over(self) -> bool:
        """Whether the time is up."""
        return self._until is not None and self._loop.time() >= self._until

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Say once that no result has come, if none comes in the first seconds."""
        what = f"{self._command}: {NO_RESULT}"
        self._note = self._loop.call_later(QUIET_S, print_note, what)
        try:
            yield
        finally:
            self._note.cancel()

    async def result(self, handle: JobHandle) -> tuple[str, Found]:
        """Wait for a result; return the id with what is known when it comes or the time is up.

        An outage delays it. Raises the errors that concern all jobs, such as Unreachable.
        """
        found = await self.outage.over(partial(self._found, handle))
        if self._note is not None and not isinstance(found, JobStatus | None):
            self._note.cancel()
        return handle.job_id, found

    async def _found(self, handle: JobHandle) -> Found:
        left = None if self._until is None else max(0.0, self._until - self._loop.time())
        try:
            return await handle.result(left)
        except ResultTimeout as late:
            return late.status
        except SubmitFailed as error:
            return error

    def _tell(self, why: str) -> None:
        print_note(f"{self._command}: {why}; waiting for it for up to {PATIENCE_S / 60:g} minutes")
