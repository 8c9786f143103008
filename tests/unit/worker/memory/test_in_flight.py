"""Coalescing of equal units: who generates, who waits, and what a cancellation leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.memory.in_flight import Coalesced
from dragoman_worker.ports import Remembered

KEY, OTHER = b"k" * 32, b"o" * 32
HALLO = Remembered("Hallo.")


class Units:
    """Units of one key; `generates` lists those that lead, in the order of their turns."""

    def __init__(self) -> None:
        self.joined = 0
        self.coalesced = Coalesced(self._count)
        self.generates: list[str] = []
        self.answers: dict[str, asyncio.Future[Remembered]] = {}

    def _count(self) -> None:
        self.joined += 1

    async def unit(self, name: str, *, key: bytes = KEY, quarantined: bool = False) -> Remembered:
        answer: asyncio.Future[Remembered] = asyncio.get_running_loop().create_future()
        self.answers[name] = answer
        async with self.coalesced.enter(key, quarantined=quarantined) as turn:
            if turn.shared is not None:
                return turn.shared
            self.generates.append(name)
            translation = await answer
            turn.share(translation)
            return translation

    async def start(self, *names: str, **options: Any) -> list[asyncio.Task[Remembered]]:
        tasks = [asyncio.create_task(self.unit(name, **options)) for name in names]
        await settle()
        return tasks


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def cancelled(task: asyncio.Task[Remembered]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settle()


async def test_equal_units_share_the_first_ones_answer() -> None:
    units = Units()
    tasks = await units.start("a", "b", "c")
    assert units.generates == ["a"]
    units.answers["a"].set_result(HALLO)
    assert await asyncio.gather(*tasks) == [HALLO, HALLO, HALLO]
    assert units.joined == 2
    assert len(units.coalesced) == 0


async def test_units_of_other_keys_do_not_wait() -> None:
    units = Units()
    one, other = await units.start("a"), await units.start("b", key=OTHER)
    assert units.generates == ["a", "b"]
    for name in "ab":
        units.answers[name].set_result(HALLO)
    await asyncio.gather(*one, *other)


async def test_unit_that_enters_after_the_answer_shares_it_while_the_leader_is_inside() -> None:
    coalesced = Coalesced()
    async with coalesced.enter(KEY) as leader:
        leader.share(HALLO)
        async with coalesced.enter(KEY) as turn:
            assert turn.shared is HALLO
    async with coalesced.enter(KEY) as turn:
        assert turn.shared is None  # by now the memory has it


async def test_cancelled_leader_is_followed_by_the_next_alone() -> None:
    units = Units()
    a, b, c = await units.start("a", "b", "c")
    await cancelled(a)
    assert units.generates == ["a", "b"]
    units.answers["b"].set_result(HALLO)
    assert [await b, await c] == [HALLO, HALLO]
    assert units.joined == 1
    assert len(units.coalesced) == 0


async def test_leader_past_its_deadline_is_followed_by_the_next() -> None:
    units = Units()

    async def with_deadline() -> None:
        async with asyncio.timeout(0):
            await units.unit("a")

    leader = asyncio.create_task(with_deadline())
    (b,) = await units.start("b")
    with pytest.raises(TimeoutError):
        await leader
    await settle()
    units.answers["b"].set_result(HALLO)
    assert await b == HALLO


@pytest.mark.parametrize("quality", ["fail", "unchecked"])
async def test_answer_that_did_not_pass_is_not_shared(quality: str) -> None:
    units = Units()
    a, b = await units.start("a", "b")
    units.answers["a"].set_result(Remembered("?", quality))  # type: ignore[arg-type]
    assert (await a).text == "?"
    await settle()
    assert units.generates == ["a", "b"]
    units.answers["b"].set_result(HALLO)
    assert await b == HALLO


async def test_warned_answer_is_shared_with_its_warnings() -> None:
    units = Units()
    warned = Remembered("Hallo.", "warn", ("glossary: Hello",), {"glossary": "Hello"})
    tasks = await units.start("a", "b")
    units.answers["a"].set_result(warned)
    assert await asyncio.gather(*tasks) == [warned, warned]


async def test_leader_that_fails_is_followed_by_two_so_that_failures_do_not_queue() -> None:
    units = Units()
    a, *rest = await units.start("a", "b", "c", "d", "e", "f", "g")
    units.answers["a"].set_exception(ValueError())
    with pytest.raises(ValueError, match=r"^$"):
        await a
    await settle()
    assert units.generates == ["a", "b", "c"]
    for name in "bc":
        units.answers[name].set_exception(ValueError())
    await settle()
    assert units.generates == list("abcdefg")
    for name in "defg":
        units.answers[name].set_result(HALLO)
    await asyncio.gather(*rest, return_exceptions=True)
    assert len(units.coalesced) == 0


async def test_cancelled_follower_leaves_the_others_unharmed() -> None:
    units = Units()
    a, b, c = await units.start("a", "b", "c")
    await cancelled(b)
    units.answers["a"].set_result(HALLO)
    assert [await a, await c] == [HALLO, HALLO]


async def test_follower_cancelled_in_the_moment_it_becomes_leader_hands_over() -> None:
    units = Units()
    a, b, c = await units.start("a", "b", "c")
    a.cancel()
    await asyncio.sleep(0)  # a has left and promoted b, which has not run since
    b.cancel()
    await settle()
    assert units.generates == ["a", "c"]
    units.answers["c"].set_result(HALLO)
    assert await c == HALLO
    assert b.cancelled()
    assert len(units.coalesced) == 0


async def test_quarantined_unit_neither_follows_nor_leads() -> None:
    units = Units()
    (a,) = await units.start("a")
    (suspect,) = await units.start("suspect", quarantined=True)
    assert units.generates == ["a", "suspect"]  # it does not wait for a
    await cancelled(a)
    (c,) = await units.start("c")
    assert units.generates[-1] == "c"  # it does not wait for the suspect
    units.answers["suspect"].set_result(Remembered("of the suspect"))
    await suspect
    units.answers["c"].set_result(HALLO)
    assert await c == HALLO


_STEP = st.tuples(st.sampled_from(["ok", "fail", "cancel", "start"]), st.integers(0, 30))


@given(st.lists(_STEP, max_size=40), st.integers(1, 12))
def test_every_unit_ends_with_an_answer_whatever_happens_to_the_others(
    steps: list[tuple[str, int]], count: int
) -> None:
    asyncio.run(_played(steps, count))


async def _played(steps: list[tuple[str, int]], count: int) -> None:
    units = Units()
    tasks = {
        str(number): task for number, task in enumerate(await units.start(*map(str, range(count))))
    }
    doers: dict[str, Callable[[str], Awaitable[None]]] = {
        "ok": lambda name: _answer(units, name, HALLO),
        "fail": lambda name: _answer(units, name, Remembered("?", "fail")),
        "cancel": lambda name: _cancel(tasks[name]),
    }
    for do, number in steps:
        if do == "start":
            name = str(len(tasks))
            tasks[name] = (await units.start(name))[0]
        else:
            await doers[do](str(number % len(tasks)))
    for _ in range(len(tasks)):  # each round ends one unit at least
        for name in tasks:
            await _answer(units, name, HALLO)
    done, pending = await asyncio.wait(tasks.values(), timeout=0)
    assert not pending
    assert all(task.cancelled() or task.result().text in {"Hallo.", "?"} for task in done)
    assert len(units.coalesced) == 0


async def _answer(units: Units, name: str, translation: Remembered) -> None:
    if name in units.generates and not units.answers[name].done():
        units.answers[name].set_result(translation)
    await asyncio.sleep(0)


async def _cancel(task: asyncio.Task[Remembered]) -> None:
    task.cancel()
    await asyncio.sleep(0)
