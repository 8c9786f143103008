"""Who enters the engine, and in what order, whatever is cancelled in between?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from dragoman_worker.flow.permits import Draining, Permit, Permits


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(20):
        await asyncio.sleep(0)


def line_up(permits: Permits, line: str, tokens: int = 1, **options: Any) -> asyncio.Task[Permit]:
    return asyncio.create_task(permits.acquire(line, tokens, **options))


async def test_no_more_items_enter_than_there_is_room_for() -> None:
    permits = Permits(items=2, tokens=100)
    tasks = [line_up(permits, "a") for _ in range(5)]
    await settle()
    assert (permits.held_items, permits.waiting) == (2, 3)
    permits.release(tasks[0].result())
    await settle()
    assert [task.done() for task in tasks] == [True, True, True, False, False]
    assert (permits.held_items, permits.waiting) == (2, 2)
    await cancelled(tasks)


async def test_no_more_tokens_enter_than_there_is_room_for() -> None:
    permits = Permits(items=10, tokens=100)
    tasks = [line_up(permits, "a", 40) for _ in range(3)]
    await settle()
    assert (permits.held_items, permits.held_tokens) == (2, 80)
    await cancelled(tasks)


async def test_an_item_larger_than_all_room_enters_alone() -> None:
    permits = Permits(items=10, tokens=100)
    first = await permits.acquire("a", 1)
    large = line_up(permits, "b", 1_000)
    await settle()
    assert not large.done()
    permits.release(first)
    permit = await large
    small = line_up(permits, "a", 1)
    await settle()
    assert not small.done()
    permits.release(permit)
    await small


async def test_a_job_of_512_items_does_not_hold_up_a_small_one() -> None:
    permits = Permits(items=4, tokens=10_000)
    big = [line_up(permits, "big") for _ in range(512)]
    await settle()
    small = line_up(permits, "small")
    await settle()
    permits.release(big[0].result())
    permits.release(big[1].result())
    await settle()
    assert small.done()
    await cancelled([*big, small])


async def test_lines_take_turns() -> None:
    permits = Permits(items=1, tokens=100)
    order: list[str] = []

    async def item(line: str) -> None:
        permit = await permits.acquire(line, 1)
        order.append(line)
        permits.release(permit)

    first = await permits.acquire("x", 1)
    async with asyncio.TaskGroup() as tasks:
        for line in "aaabbc":
            tasks.create_task(item(line))
        await settle()
        permits.release(first)
    assert "".join(order) == "abcaba"


async def test_lanes_share_by_weight_and_by_tokens_and_jobs_inside_a_lane_in_turn() -> None:
    permits = Permits(items=1, tokens=100, weights={"interactive": 3, "bulk": 1})
    order: list[str] = []

    async def item(priority: str, line: str, tokens: int) -> None:
        permit = await permits.acquire(line, tokens, priority=priority)
        order.append(line)
        permits.release(permit)

    first = await permits.acquire("x", 1)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(12):
            tasks.create_task(item("bulk", "b", 10))
            tasks.create_task(item("interactive", "i", 10))
            tasks.create_task(item("interactive", "j", 20))
        await settle()
        assert (permits.waiting, permits.waiting_of("bulk")) == (36, 12)
        permits.release(first)
    both_wait = "".join(order)[:20]
    assert both_wait.count("b") * 3 * 10 == pytest.approx(
        both_wait.count("i") * 10 + both_wait.count("j") * 20, abs=3 * 10 + 20
    )
    assert "ijij" in both_wait.replace("b", "")


async def test_an_idle_lane_leaves_its_share_to_the_others() -> None:
    permits = Permits(items=4, tokens=1_000, weights={"interactive": 1000, "bulk": 1})
    tasks = [line_up(permits, f"job {number}", priority="bulk") for number in range(8)]
    await settle()
    assert permits.held_items == 4
    permits.release(tasks[0].result())
    await settle()
    assert permits.held_items == 4
    await cancelled(tasks)


async def test_a_lane_that_wakes_up_behind_a_backlog_is_the_next_to_enter() -> None:
    permits = Permits(items=2, tokens=1_000, weights={"interactive": 8, "bulk": 1})
    bulk = [line_up(permits, f"job {number}", 50, priority="bulk") for number in range(300)]
    await settle()
    urgent = line_up(permits, "urgent", 400, priority="interactive")
    await settle()
    permits.release(bulk[0].result())
    await settle()
    assert urgent.done()
    await cancelled([*bulk, urgent])


async def test_whoever_is_cancelled_while_waiting_costs_its_lane_nothing() -> None:
    permits = Permits(items=1, tokens=1_000, weights={"a": 1, "b": 1})
    inside = await permits.acquire("x", 1)
    gone = [line_up(permits, f"gone {number}", 900, priority="a") for number in range(5)]
    one, other = (
        line_up(permits, "one", 1, priority="a"),
        line_up(permits, "other", 1, priority="b"),
    )
    await settle()
    for task in gone:
        task.cancel()
    permits.release(inside)  # in the same turn of the loop: they still stand in their lines
    await settle()
    assert one.done()
    permits.release(one.result())
    await settle()
    assert other.done()
    assert permits.waiting == 0


async def test_a_wider_engine_lets_waiters_in_at_once() -> None:
    permits = Permits(items=1, tokens=100)
    tasks = [line_up(permits, "a") for _ in range(3)]
    await settle()
    permits.resize(items=3, tokens=100)
    await settle()
    assert all(task.done() for task in tasks)


async def test_a_drain_turns_away_only_jobs_that_have_not_started() -> None:
    permits = Permits(items=1, tokens=100)
    inside = await permits.acquire("a", 1)
    starter = line_up(permits, "b", starts_job=True)
    started = line_up(permits, "a")
    await settle()
    permits.drain()
    with pytest.raises(Draining):
        await starter
    with pytest.raises(Draining):
        await permits.acquire("c", 1, starts_job=True)
    assert not started.done()
    permits.release(inside)
    permits.release(await started)
    assert permits.held_items == 0


async def test_a_drain_lets_in_whoever_stood_behind_a_job_that_is_turned_away() -> None:
    permits = Permits(items=4, tokens=100)
    await permits.acquire("a", 50)
    starter = line_up(permits, "b", 90, starts_job=True)
    started = line_up(permits, "a", 10)
    await settle()
    permits.drain()
    await settle()
    assert started.done()
    await cancelled([starter, started])


async def test_once_closed_nobody_enters_be_he_started_or_alone() -> None:
    permits = Permits(items=1, tokens=100)
    inside = await permits.acquire("a", 1)
    starter = line_up(permits, "b", 1, starts_job=True)
    started = line_up(permits, "a", 1)

    async def suspect() -> None:
        async with permits.quarantine("s", by_itself=True):
            raise AssertionError("nobody may be in a dead engine")

    alone = asyncio.create_task(suspect())
    await settle()
    permits.close()
    permits.release(inside)
    with pytest.raises(Draining):
        await starter
    with pytest.raises(Draining):
        await alone
    await settle()
    assert not started.done()
    assert permits.held_items == 0
    await cancelled([started])


async def test_alone_waits_for_an_empty_engine_and_keeps_it_for_itself() -> None:
    permits = Permits(items=4, tokens=100)
    inside = await permits.acquire("a", 1)
    entered, leave = asyncio.Event(), asyncio.Event()

    async def suspect() -> None:
        async with permits.quarantine("s", by_itself=True):
            entered.set()
            permits.release(await permits.acquire("s", 1))
            await leave.wait()

    task = asyncio.create_task(suspect())
    await settle()
    later = line_up(permits, "b")
    await settle()
    assert not entered.is_set()
    assert not later.done(), "whoever comes later must not starve the one that wants to be alone"
    permits.release(inside)
    await settle()
    assert entered.is_set()
    assert not later.done()
    leave.set()
    await asyncio.gather(task, later)


async def test_two_that_want_to_be_alone_are_so_one_after_the_other() -> None:
    permits = Permits(items=4, tokens=100)
    inside: list[str] = []
    most = 0

    async def suspect(line: str) -> None:
        nonlocal most
        async with permits.quarantine(line, by_itself=True):
            inside.append(line)
            most = max(most, len(inside))
            permit = await permits.acquire(line, 1)
            await settle()
            permits.release(permit)
            inside.remove(line)

    await asyncio.gather(*(suspect(line) for line in ("a", "b", "a", "c")))
    assert most == 1
    assert (permits.held_items, permits.waiting) == (0, 0)


async def test_between_two_that_want_to_be_alone_those_get_in_who_wait() -> None:
    """Else hundreds of suspects, run one by one, would keep everybody else out for long."""
    permits = Permits(items=2, tokens=100)
    order: list[str] = []

    async def one(line: str) -> None:
        permit = await permits.acquire(line, 1)
        order.append(line)
        await settle()
        permits.release(permit)

    async def suspect(line: str) -> None:
        async with permits.quarantine(line, by_itself=True):
            await one(line)

    async with permits.quarantine("s0", by_itself=True):
        tasks = [asyncio.create_task(suspect(f"s{number}")) for number in range(1, 4)]
        tasks += [asyncio.create_task(one(f"o{number}")) for number in range(5)]
        await settle()
        await one("s0")
    await asyncio.gather(*tasks)
    assert order == ["s0", "o0", "o1", "s1", "o2", "o3", "s2", "o4", "s3"]


async def test_one_that_waits_to_be_alone_and_is_cancelled_blocks_nobody() -> None:
    permits = Permits(items=4, tokens=100)
    inside = await permits.acquire("a", 1)

    async def suspect() -> None:
        async with permits.quarantine("s", by_itself=True):
            raise AssertionError("it was cancelled before its turn")

    task = asyncio.create_task(suspect())
    await settle()
    later = line_up(permits, "b")
    await settle()
    task.cancel()
    permits.release(inside)  # in the same turn of the loop: the task has not yet been told
    await asyncio.wait_for(later, 5)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_one_cancelled_in_the_moment_of_its_solitude_gives_it_up() -> None:
    permits = Permits(items=4, tokens=100)
    inside = await permits.acquire("a", 1)

    async def suspect() -> None:
        async with permits.quarantine("s", by_itself=True):
            raise AssertionError("it was cancelled in the turn in which it was let in")

    task = asyncio.create_task(suspect())
    await settle()
    permits.release(inside)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    permits.release(await asyncio.wait_for(permits.acquire("b", 1), 5))


async def test_a_permit_granted_in_the_moment_of_cancellation_goes_to_the_next() -> None:
    permits = Permits(items=1, tokens=100)
    inside = await permits.acquire("a", 1)
    first, second = line_up(permits, "b"), line_up(permits, "c")
    await settle()
    permits.release(inside)
    first.cancel()
    await asyncio.wait_for(second, 5)
    assert first.cancelled()
    assert permits.held_items == 1


async def test_one_that_waits_and_is_cancelled_lets_smaller_ones_pass() -> None:
    permits = Permits(items=4, tokens=100)
    await permits.acquire("a", 50)
    large, small = line_up(permits, "b", 90), line_up(permits, "c", 10)
    await settle()
    assert not small.done()
    large.cancel()
    await asyncio.wait_for(small, 5)


@pytest.mark.parametrize("seed", range(60))
async def test_whatever_is_cancelled_nothing_leaks_and_nobody_waits_for_ever(seed: int) -> None:
    """Seeded storms of items and solitudes, cancelled at any point; the bounds hold throughout."""
    chance = random.Random(seed)
    permits = Permits(items=3, tokens=50)
    storm = _Storm(permits, chance)
    tasks = [
        asyncio.create_task(chance.choice(storm.kinds)(chance.choice("abcd"))) for _ in range(60)
    ]
    for _ in range(200):
        victim = chance.choice(tasks)
        if chance.random() < 0.2:
            victim.cancel()
        await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert (permits.held_items, permits.held_tokens, permits.waiting) == (0, 0, 0)
    assert storm.inside == []
    assert [task.exception() for task in tasks if not task.cancelled() and task.exception()] == []
    async with permits.quarantine("z", by_itself=True):
        permits.release(await permits.acquire("z", 1))


class _Storm:
    def __init__(self, permits: Permits, chance: random.Random) -> None:
        self.permits = permits
        self.chance = chance
        self.inside: list[tuple[str, int]] = []
        self.alone: str | None = None
        self.kinds: list[Callable[[str], Any]] = [self.item, self.item, self.item, self.solitude]

    async def item(self, line: str) -> None:
        permit = await self.permits.acquire(line, self.chance.choice([1, 10, 30, 80]))
        mine = (line, permit.tokens)
        self.inside.append(mine)
        try:
            self.check()
            for _ in range(self.chance.randrange(4)):
                await asyncio.sleep(0)
        finally:
            self.inside.remove(mine)
            self.permits.release(permit)

    async def solitude(self, line: str) -> None:
        async with self.permits.quarantine(line, by_itself=True):
            assert self.alone is None
            assert self.inside == []
            self.alone = line
            try:
                await self.item(line)
            finally:
                self.alone = None

    def check(self) -> None:
        assert len(self.inside) <= 3
        assert sum(tokens for _, tokens in self.inside) <= 50 or len(self.inside) == 1
        assert self.alone is None or {line for line, _ in self.inside} == {self.alone}


async def cancelled(tasks: list[asyncio.Task[Permit]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
