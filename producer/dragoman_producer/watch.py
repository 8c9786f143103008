"""How do many wait for the ends of jobs without polling busily and without missing one?

The key is the truth, the events stream a hint. A waiter is registered first and its key looked at
then, so an end before that is seen in the key and an end after it in the stream. One reader serves
all waiters of a client; a key that no hint spoke of is looked at again after 1 s, growing to 5 s,
so a lost hint, a trimmed stream or a restarted Redis cost latency and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine, Iterable, Sequence
from typing import Final, Protocol

from dragoman_producer.errors import (
    ClientClosed,
    DragomanError,
    ResultTimeout,
    StoreUnreachable,
)
from dragoman_producer.state import Expected, JobState
from dragoman_schemas.results import TranslationResult

_FIRST_LOOK_AGAIN_S: Final = 1.0
_LAST_LOOK_AGAIN_S: Final = 5.0
_LAST_LOOK_S: Final = 1.0
_TICK_S: Final = 0.25
_KEYS_A_LOOK: Final = 500
_PAUSE_AFTER_OUTAGE_S: Final = 0.5


class Keys(Protocol):
    """What the watch reads; each method may raise Unreachable and StoreRefused."""

    async def read(self, job_ids: Sequence[str]) -> Sequence[JobState | DragomanError | None]:
        """The states of several jobs, in their order; an error for a key that is not readable."""
        ...

    async def state(self, job_id: str) -> JobState | None:
        """The state of one job; concurrent calls share a round trip."""
        ...

    async def newest_event(self) -> str:
        """The id of the newest event, or one that is before every event."""
        ...

    async def events_after(self, event_id: str) -> tuple[str, list[str]]:
        """Wait a moment for events: the id to go on from, and the jobs they speak of."""
        ...


class _Waiter:
    """One caller's wait: what for, and when the key is looked at again without a hint."""

    __slots__ = ("ended", "expected", "look_again_at", "pause_s")

    def __init__(self, expected: Expected, now: float) -> None:
        self.expected = expected
        self.ended: asyncio.Future[TranslationResult] = asyncio.get_running_loop().create_future()
        self.pause_s = _FIRST_LOOK_AGAIN_S
        self.look_again_at = now + self.pause_s

    def looked(self, now: float) -> None:
        """Look again later than the last time."""
        self.look_again_at = now + self.pause_s
        self.pause_s = min(self.pause_s * 1.5, _LAST_LOOK_AGAIN_S)

    def judge(self, state: JobState | DragomanError | None) -> None:
        """End the wait if the state is the end waited for, not readable, or another owner's."""
        if self.ended.done():
            return
        try:
            if isinstance(state, DragomanError):
                raise state
            result = self.expected.end_in(state)
        except DragomanError as error:
            self.ended.set_exception(error)
        else:
            if result is not None:
                self.ended.set_result(result)

    def fail(self, error: BaseException) -> None:
        """End the wait without a result."""
        if not self.ended.done():
            self.ended.set_exception(error)


class ResultWatch:
    """Ends of jobs for all handles of one client; idle, without tasks, until the first wait."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._waiters: dict[str, list[_Waiter]] = {}
        self._due: dict[str, None] = {}
        self._something_due = asyncio.Event()
        self._somebody_waits = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    async def end(self, expected: Expected, timeout_s: float | None) -> TranslationResult:
        """The result of the expected run. Raises ResultTimeout, IdTaken, ClientClosed."""
        if timeout_s is None:
            return await self._wait(expected)
        if timeout_s <= 0:
            return await self._look_once(expected, 0.0)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._wait(expected)
        except TimeoutError:
            return await self._last_look(expected, timeout_s)

    async def _wait(self, expected: Expected) -> TranslationResult:
        waiter = self._register(expected)
        try:
            return await waiter.ended
        finally:
            self._unregister(waiter)

    async def close(self) -> None:
        """End the reader and every wait with ClientClosed."""
        self._closed = True
        self._fail_all(ClientClosed("the client was closed before the job ended"))
        self._end_tasks()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _last_look(self, expected: Expected, timeout_s: float) -> TranslationResult:
        """The key once more, briefly: an end in the last moment is not missed."""
        try:
            async with asyncio.timeout(_LAST_LOOK_S):
                return await self._look_once(expected, timeout_s)
        except (TimeoutError, StoreUnreachable) as error:
            raise ResultTimeout(expected.job_id, timeout_s, None, readable=False) from error

    async def _look_once(self, expected: Expected, timeout_s: float) -> TranslationResult:
        state = await self._keys.state(expected.job_id)
        result = expected.end_in(state)
        if result is None:
            raise ResultTimeout(expected.job_id, timeout_s, expected.status_in(state))
        return result

    def _register(self, expected: Expected) -> _Waiter:
        if self._closed:
            raise ClientClosed("the client is closed")
        waiter = _Waiter(expected, asyncio.get_running_loop().time())
        self._waiters.setdefault(expected.job_id, []).append(waiter)
        self._look_at([expected.job_id])
        self._somebody_waits.set()
        if not self._tasks or any(task.done() for task in self._tasks):
            self._end_tasks()
            self._tasks = [self._own(self._look(), "look"), self._own(self._listen(), "listen")]
        return waiter

    def _unregister(self, waiter: _Waiter) -> None:
        waiters = self._waiters[waiter.expected.job_id]
        waiters.remove(waiter)
        if not waiters:
            del self._waiters[waiter.expected.job_id]
            self._due.pop(waiter.expected.job_id, None)
        if not self._waiters:
            self._somebody_waits.clear()

    # --- the two tasks --------------------------------------------------------------------------

    def _own(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"dragoman-watch-{name}")
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """A bug in a task must not leave its waiters hanging."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail_all(error)

    async def _look(self) -> None:
        """Read the keys that are due, in batches, and end the waits they end."""
        while True:
            await self._somebody_waits.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await self._something_due.wait()
            self._something_due.clear()
            self._look_at(self._overdue(asyncio.get_running_loop().time()))
            due, self._due = list(self._due), {}
            for first in range(0, len(due), _KEYS_A_LOOK):
                await self._look_at_keys(due[first : first + _KEYS_A_LOOK])

    async def _look_at_keys(self, job_ids: Sequence[str]) -> None:
        try:
            states = await self._keys.read(job_ids)
        except DragomanError as error:
            self._fail_all(error)
            return
        now = asyncio.get_running_loop().time()
        for job_id, state in zip(job_ids, states, strict=True):
            for waiter in self._waiters.get(job_id, ()):
                waiter.looked(now)
                waiter.judge(state)

    async def _listen(self) -> None:
        """Follow the events stream while somebody waits."""
        while True:
            await self._somebody_waits.wait()
            try:
                newest = await self._keys.newest_event()
                self._look_at(self._waiters)  # for ends between their last look and `newest`
                while self._waiters:
                    newest, job_ids = await self._keys.events_after(newest)
                    self._look_at(job_id for job_id in job_ids if job_id in self._waiters)
            except DragomanError:
                await asyncio.sleep(_PAUSE_AFTER_OUTAGE_S)  # the keys are looked at meanwhile

    def _overdue(self, now: float) -> list[str]:
        waiters = itertools.chain.from_iterable(self._waiters.values())
        return [waiter.expected.job_id for waiter in waiters if waiter.look_again_at <= now]

    def _look_at(self, job_ids: Iterable[str]) -> None:
        self._due.update(dict.fromkeys(job_ids))
        if self._due:
            self._something_due.set()

    def _fail_all(self, error: BaseException) -> None:
        for waiter in itertools.chain.from_iterable(self._waiters.values()):
            waiter.fail(error)
