"""Waits for the terminal states of many jobs, without busy polling and without missing one.

The key is the truth, the events stream a hint. A waiter is registered first and its key is read
then, so an earlier terminal state is seen in the key and a later one in the stream. One reader
serves all waiters of a client. A key without a hint is read again after 1 s, growing to 5 s, so a
lost hint, a trimmed stream or a restarted Redis costs latency and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Final, Protocol

from dragoman_producer.errors import (
    ClientClosed,
    DragomanError,
    ResultTimeout,
    StoreUnreachable,
)
from dragoman_producer.state import Expected, JobState
from dragoman_schemas.results import TranslationResult

_FIRST_REREAD_S: Final = 1.0
_LAST_REREAD_S: Final = 5.0
_FINAL_READ_S: Final = 1.0
_TICK_S: Final = 0.25
_KEYS_PER_READ: Final = 500
_PAUSE_AFTER_OUTAGE_S: Final = 0.5


class WatchedKeys(Protocol):
    """Keys and events that the watch reads; each method may raise Unreachable and StoreRefused."""

    async def read(self, job_ids: Sequence[str]) -> Sequence[JobState | DragomanError | None]:
        """Return the states of several jobs, in their order; an error for an unreadable key."""
        ...

    async def state(self, job_id: str) -> JobState | None:
        """Return the state of one job; concurrent calls share a round trip."""
        ...

    async def newest_event(self) -> str:
        """Return the id of the newest event, or an id before every event."""
        ...

    async def events_after(self, event_id: str) -> tuple[str, list[str]]:
        """Wait briefly for events; return the id to continue from, and the jobs they name."""
        ...


class _Waiter:
    """Wait of one caller: the expected run, and when its key is read again without a hint."""

    __slots__ = ("expected", "outcome", "pause_s", "reread_at")

    def __init__(self, expected: Expected, now: float) -> None:
        self.expected = expected
        self.outcome: asyncio.Future[TranslationResult] = asyncio.get_running_loop().create_future()
        self.pause_s = _FIRST_REREAD_S
        self.reread_at = now + self.pause_s

    def schedule_reread(self, now: float) -> None:
        """Schedule the next read of the key, with a growing pause."""
        self.reread_at = now + self.pause_s
        self.pause_s = min(self.pause_s * 1.5, _LAST_REREAD_S)

    def judge(self, state: JobState | DragomanError | None) -> None:
        """Finish the wait if the state is the expected result, unreadable, or of another owner."""
        if self.outcome.done():
            return
        try:
            if isinstance(state, DragomanError):
                raise state
            result = self.expected.result_in(state)
        except DragomanError as error:
            self.outcome.set_exception(error)
        else:
            if result is not None:
                self.outcome.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Finish the wait with an error."""
        if not self.outcome.done():
            self.outcome.set_exception(error)


class ResultWatch:
    """Waits for results, for all handles of one client; has no tasks until the first wait."""

    def __init__(self, keys: WatchedKeys) -> None:
        self._keys = keys
        self._waiters: dict[str, list[_Waiter]] = {}
        self._due: dict[str, None] = {}
        self._has_due = asyncio.Event()
        self._has_waiters = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    async def wait_for_result(
        self, expected: Expected, timeout_s: float | None
    ) -> TranslationResult:
        """Wait for the result of the expected run. Raises ResultTimeout, IdTaken, ClientClosed."""
        if timeout_s is None:
            return await self._wait(expected)
        if timeout_s <= 0:
            return await self._read_once(expected, 0.0)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._wait(expected)
        except TimeoutError:
            return await self._final_read(expected, timeout_s)

    async def _wait(self, expected: Expected) -> TranslationResult:
        waiter = self._register(expected)
        try:
            return await waiter.outcome
        finally:
            self._unregister(waiter)

    async def close(self) -> None:
        """Stop the tasks, and finish every wait with ClientClosed."""
        self._closed = True
        self._fail_all(ClientClosed("the client was closed before the job ended"))
        self._cancel_tasks()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _final_read(self, expected: Expected, timeout_s: float) -> TranslationResult:
        """Read the key once more, briefly, so that a result of the last moment is not missed."""
        try:
            async with asyncio.timeout(_FINAL_READ_S):
                return await self._read_once(expected, timeout_s)
        except (TimeoutError, StoreUnreachable) as error:
            raise ResultTimeout(expected.job_id, timeout_s, None, readable=False) from error

    async def _read_once(self, expected: Expected, timeout_s: float) -> TranslationResult:
        state = await self._keys.state(expected.job_id)
        result = expected.result_in(state)
        if result is None:
            raise ResultTimeout(expected.job_id, timeout_s, expected.status_in(state))
        return result

    def _register(self, expected: Expected) -> _Waiter:
        if self._closed:
            raise ClientClosed("the client is closed")
        waiter = _Waiter(expected, asyncio.get_running_loop().time())
        self._waiters.setdefault(expected.job_id, []).append(waiter)
        self._mark_due([expected.job_id])
        self._has_waiters.set()
        if not self._tasks or any(task.done() for task in self._tasks):
            self._cancel_tasks()
            self._tasks = [self._own(self._read_due(), "read"), self._own(self._listen(), "listen")]
        return waiter

    def _unregister(self, waiter: _Waiter) -> None:
        waiters = self._waiters[waiter.expected.job_id]
        waiters.remove(waiter)
        if not waiters:
            del self._waiters[waiter.expected.job_id]
            self._due.pop(waiter.expected.job_id, None)
        if not self._waiters:
            self._has_waiters.clear()

    # --- the two tasks --------------------------------------------------------------------------

    def _own(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"dragoman-watch-{name}")
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[None]) -> None:
        """Fail all waits if a task raised, so that a bug leaves no caller waiting."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail_all(error)

    async def _read_due(self) -> None:
        """Read due keys in batches, and finish the waits whose result is there."""
        while True:
            await self._has_waiters.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await self._has_due.wait()
            self._has_due.clear()
            self._mark_due(self._overdue(asyncio.get_running_loop().time()))
            due, self._due = list(self._due), {}
            for first in range(0, len(due), _KEYS_PER_READ):
                await self._read_keys(due[first : first + _KEYS_PER_READ])

    async def _read_keys(self, job_ids: Sequence[str]) -> None:
        try:
            states = await self._keys.read(job_ids)
        except DragomanError as error:
            self._fail_all(error)
            return
        now = asyncio.get_running_loop().time()
        for job_id, state in zip(job_ids, states, strict=True):
            for waiter in self._waiters.get(job_id, ()):
                waiter.schedule_reread(now)
                waiter.judge(state)

    async def _listen(self) -> None:
        """Follow the events stream while there are waiters."""
        while True:
            await self._has_waiters.wait()
            try:
                newest = await self._keys.newest_event()
                self._mark_due(self._waiters)  # for results between their last read and `newest`
                while self._waiters:
                    newest, job_ids = await self._keys.events_after(newest)
                    self._mark_due(job_id for job_id in job_ids if job_id in self._waiters)
            except DragomanError:
                await asyncio.sleep(_PAUSE_AFTER_OUTAGE_S)  # the keys are still read meanwhile

    def _overdue(self, now: float) -> list[str]:
        waiters = itertools.chain.from_iterable(self._waiters.values())
        return [waiter.expected.job_id for waiter in waiters if waiter.reread_at <= now]

    def _mark_due(self, job_ids: Iterable[str]) -> None:
        self._due.update(dict.fromkeys(job_ids))
        if self._due:
            self._has_due.set()

    def _fail_all(self, error: BaseException) -> None:
        for waiter in itertools.chain.from_iterable(self._waiters.values()):
            waiter.fail(error)


QUIET_S: Final = 30.0
NO_RESULT: Final = (
    f"no result for {QUIET_S:g} s; if no worker runs, start one "
    "(`dragoman topics show` prints the jobs that wait)"
)


class Quiet:
    """Reports NO_RESULT once if a job is queued and `quiet_s` seconds bring no result."""

    def __init__(self, report: Callable[[str], None], quiet_s: float = QUIET_S) -> None:
        """Begin now; `report` gets the line."""
        self._report = report
        self._quiet_s = quiet_s
        self.heard()

    def heard(self) -> None:
        """Note that a result came, or that waiting begins."""
        self._since = time.monotonic()
        self._reported = False

    def queued(self) -> None:
        """Note that a job is still queued."""
        if not self._reported and time.monotonic() - self._since >= self._quiet_s:
            self._reported = True
            self._report(NO_RESULT)
