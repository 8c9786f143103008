"""Waits of commands for results: one limit of time for all, and a note if no result comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman_producer.cli.terminal import print_note
from dragoman_producer.errors import ResultTimeout, SubmitFailed
from dragoman_producer.handle import JobHandle
from dragoman_producer.watch import NO_RESULT, QUIET_S
from dragoman_schemas.results import JobStatus, TranslationResult

Found = TranslationResult | JobStatus | SubmitFailed | None
"""Of a job: its result; its status while it has none, None for unknown; why it cannot be read."""


class Waits:
    """The waits of one command, made inside its event loop."""

    def __init__(self, command: str, timeout_s: float | None) -> None:
        """`timeout_s` is for all waits together, from now; None waits without a limit."""
        self._loop = asyncio.get_running_loop()
        self._command = command
        self._until = None if timeout_s is None else self._loop.time() + timeout_s
        self._note: asyncio.TimerHandle | None = None

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
        """Wait for a result; return the id with what is known when it comes or the time is up."""
        left = None if self._until is None else max(0.0, self._until - self._loop.time())
        try:
            found: Found = await handle.result(left)
        except ResultTimeout as late:
            return handle.job_id, late.status
        except SubmitFailed as error:
            found = error
        if self._note is not None:
            self._note.cancel()
        return handle.job_id, found
