"""Unit tests of the result watch, with keys and events in an order that the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dragoman_producer import watch
from dragoman_producer.errors import ResultTimeout, StoreUnreachable
from dragoman_producer.state import Expected, JobState
from dragoman_producer.watch import ResultWatch
from support.processes.waiting import eventually

_DONE = JobState("completed")


class Keys:
    """Key and events of one job, which becomes terminal during the call ``ends_during``."""

    def __init__(self, ends_during: str = "") -> None:
        self.ends_during = ends_during
        self.ended = False
        self.reads = 0
        self.failing: Exception | None = None
        self._hints: asyncio.Queue[str] = asyncio.Queue()
        self._event = 0

    def end(self, *, hint: bool = True) -> None:
        self.ended = True
        if hint:
            self._event += 1
            self._hints.put_nowait("job")

    async def state(self, job_id: str) -> JobState | None:
        return (await self.read([job_id]))[0]

    async def read(self, job_ids: Sequence[str]) -> list[JobState | None]:
        self.reads += 1
        if self.failing:
            raise self.failing
        answer = _DONE if self.ended else None
        await asyncio.sleep(0)
        if self.ends_during == "read":
            self.end()
        return [answer for _ in job_ids]

    async def newest_event(self) -> str:
        for _ in range(5):  # the first read is over before this returns
            await asyncio.sleep(0)
        if self.ends_during == "newest_event" and not self.ended:
            self.end()
        while not self._hints.empty():
            self._hints.get_nowait()  # earlier events are not delivered
        return str(self._event)

    async def events_after(self, event_id: str) -> tuple[str, list[str]]:
        if self.ends_during == "events_after" and not self.ended:
            self.end()
        return str(self._event), [await self._hints.get()]


@pytest.fixture(autouse=True)
def no_second_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_FIRST_REREAD_S", 1000.0)


@pytest.mark.parametrize("moment", ["read", "newest_event", "events_after"])
async def test_a_result_written_during_any_call_is_seen_without_a_second_read(moment: str) -> None:
    following = ResultWatch(Keys(ends_during=moment))
    async with asyncio.timeout(5):
        result = await following.wait_for_result(Expected("job"), None)
    assert result.status == "completed"
    await following.close()


async def test_without_a_hint_the_key_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_FIRST_REREAD_S", 0.05)
    keys = Keys()
    following = ResultWatch(keys)
    waiting = asyncio.create_task(following.wait_for_result(Expected("job"), 10))
    await eventually(lambda: keys.reads >= 2, timeout_s=30, what="the first reads")
    keys.end(hint=False)
    assert (await waiting).status == "completed"
    await following.close()


async def test_an_idle_wait_reads_the_key_rarely() -> None:
    keys = Keys()
    following = ResultWatch(keys)
    with pytest.raises(ResultTimeout):
        await following.wait_for_result(Expected("job"), 1.0)
    assert keys.reads <= 4  # the first read, the listener's, and the last
    await following.close()


async def test_an_unavailable_store_fails_every_wait_and_later_waits_start_anew() -> None:
    keys = Keys()
    following = ResultWatch(keys)
    keys.failing = StoreUnreachable("unavailable")
    waits = [
        asyncio.create_task(following.wait_for_result(Expected("job"), None)) for _ in range(3)
    ]
    async with asyncio.timeout(5):
        for waiting in waits:
            with pytest.raises(StoreUnreachable):
                await waiting
    keys.failing = None
    keys.end()
    async with asyncio.timeout(5):
        assert (await following.wait_for_result(Expected("job"), None)).status == "completed"
    await following.close()


async def test_a_bug_in_the_watch_fails_its_waits() -> None:
    keys = Keys()
    keys.failing = RuntimeError("bug")
    following = ResultWatch(keys)
    async with asyncio.timeout(5):
        with pytest.raises(RuntimeError, match="bug"):
            await following.wait_for_result(Expected("job"), None)
        keys.failing = None
        keys.end()
        assert (await following.wait_for_result(Expected("job"), None)).status == "completed"
    await following.close()
