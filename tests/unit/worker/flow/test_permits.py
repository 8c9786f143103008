"""Permits respect both bounds, the order of jobs and classes, and every cancellation."""

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


def queue_up(permits: Permits, job: str, tokens: int = 1, **options: Any) -> asyncio.Task[Permit]:
    return asyncio.create_task(permits.acquire(job, tokens, **options))


async def test_the_bound_on_items_holds() -> None:
    permits = Permits(items=2, tokens=100)
    tasks = [queue_up(permits, "a") for _ in range(5)]
    await settle()
    assert (permits.held_items, permits.waiting) == (2, 3)
    permits.release(tasks[0].result())
    await settle()
    assert [task.done() for task in tasks] == [True, True, True, False, False]
    assert (permits.held_items, permits.waiting) == (2, 2)
    await cancelled(tasks)


async def test_the_bound_on_tokens_holds() -> None:
    permits = Permits(items=10, tokens=100)
    tasks = [queue_up(permits, "a", 40) for _ in range(3)]
    await settle()
    assert (permits.held_items, permits.held_tokens) == (2, 80)
    await cancelled(tasks)


async def test_an_item_larger_than_the_bound_on_tokens_enters_an_empty_engine() -> None:
    permits = Permits(items=10, tokens=100)
    first = await permits.acquire("a", 1)
    large = queue_up(permits, "b", 1_000)
    await settle()
    assert not large.done()
    permits.release(first)
    permit = await large
    small = queue_up(permits, "a", 1)
    await settle()
    assert not small.done()
    permits.release(permit)
    await small


async def test_a_job_of_512_items_does_not_block_a_small_one() -> None:
    permits = Permits(items=4, tokens=10_000)
    big = [queue_up(permits, "big") for _ in range(512)]
    await settle()
    small = queue_up(permits, "small")
    await settle()
    permits.release(big[0].result())
    permits.release(big[1].result())
    await settle()
    assert small.done()
    await cancelled([*big, small])


async def test_jobs_are_served_in_rotation() -> None:
    permits = Permits(items=1, tokens=100)
    order: list[str] = []

    async def item(job: str) -> None:
        permit = await permits.acquire(job, 1)
        order.append(job)
        permits.release(permit)

    first = await permits.acquire("x", 1)
    async with asyncio.TaskGroup() as tasks:
        for job in "aaabbc":
            tasks.create_task(item(job))
        await settle()
        permits.release(first)
    assert "".join(order) == "abcaba"


async def test_classes_share_tokens_by_weight_and_the_jobs_of_a_class_rotate() -> None:
    permits = Permits(items=1, tokens=100, weights={"interactive": 3, "bulk": 1})
    order: list[str] = []

    async def item(priority: str, job: str, tokens: int) -> None:
        permit = await permits.acquire(job, tokens, priority=priority)
        order.append(job)
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


async def test_an_idle_class_leaves_its_share_to_the_others() -> None:
    permits = Permits(items=4, tokens=1_000, weights={"interactive": 1000, "bulk": 1})
    tasks = [queue_up(permits, f"job {number}", priority="bulk") for number in range(8)]
    await settle()
    assert permits.held_items == 4
    permits.release(tasks[0].result())
    await settle()
    assert permits.held_items == 4
    await cancelled(tasks)


async def test_an_idle_class_that_becomes_active_enters_before_a_backlog() -> None:
    permits = Permits(items=2, tokens=1_000, weights={"interactive": 8, "bulk": 1})
    bulk = [queue_up(permits, f"job {number}", 50, priority="bulk") for number in range(300)]
    await settle()
    urgent = queue_up(permits, "urgent", 400, priority="interactive")
    await settle()
    permits.release(bulk[0].result())
    await settle()
    assert urgent.done()
    await cancelled([*bulk, urgent])


async def test_a_cancelled_waiter_is_not_charged_to_its_class() -> None:
    permits = Permits(items=1, tokens=1_000, weights={"a": 1, "b": 1})
    inside = await permits.acquire("x", 1)
    gone = [queue_up(permits, f"gone {number}", 900, priority="a") for number in range(5)]
    one, other = (
        queue_up(permits, "one", 1, priority="a"),
        queue_up(permits, "other", 1, priority="b"),
    )
    await settle()
    for task in gone:
        task.cancel()
    permits.release(inside)  # in the same loop iteration: they are still queued
    await settle()
    assert one.done()
    permits.release(one.result())
    await settle()
    assert other.done()
    assert permits.waiting == 0


async def test_a_larger_bound_admits_waiters_at_once() -> None:
    permits = Permits(items=1, tokens=100)
    tasks = [queue_up(permits, "a") for _ in range(3)]
    await settle()
    permits.resize(items=3, tokens=100)
    await settle()
    assert all(task.done() for task in tasks)


async def test_a_drain_rejects_only_jobs_that_have_not_started() -> None:
    permits = Permits(items=1, tokens=100)
    inside = await permits.acquire("a", 1)
    starter = queue_up(permits, "b", starts_job=True)
    started = queue_up(permits, "a")
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


async def test_a_drain_admits_a_waiter_behind_a_rejected_job() -> None:
    permits = Permits(items=4, tokens=100)
    await permits.acquire("a", 50)
    starter = queue_up(permits, "b", 90, starts_job=True)
    started = queue_up(permits, "a", 10)
    await settle()
    permits.drain()
    await settle()
    assert started.done()
    await cancelled([starter, started])


async def test_after_close_neither_a_started_job_nor_a_suspect_enters() -> None:
    permits = Permits(items=1, tokens=100)
    inside = await permits.acquire("a", 1)
    starter = queue_up(permits, "b", 1, starts_job=True)
    started = queue_up(permits, "a", 1)

    async def suspect() -> None:
        async with permits.quarantine("s", by_itself=True):
            raise AssertionError("no suspect may enter a dead engine")

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


async def test_a_suspect_by_itself_waits_for_an_empty_engine_and_excludes_others() -> None:
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
    later = queue_up(permits, "b")
    await settle()
    assert not entered.is_set()
    assert not later.done(), "later jobs must not starve the suspect"
    permits.release(inside)
    await settle()
    assert entered.is_set()
    assert not later.done()
    leave.set()
    await asyncio.gather(task, later)


async def test_suspects_by_themselves_run_one_after_the_other() -> None:
    permits = Permits(items=4, tokens=100)
    inside: list[str] = []
    most = 0

    async def suspect(job: str) -> None:
        nonlocal most
        async with permits.quarantine(job, by_itself=True):
            inside.append(job)
            most = max(most, len(inside))
            permit = await permits.acquire(job, 1)
            await settle()
            permits.release(permit)
            inside.remove(job)

    await asyncio.gather(*(suspect(job) for job in ("a", "b", "a", "c")))
    assert most == 1
    assert (permits.held_items, permits.waiting) == (0, 0)


async def test_waiting_jobs_enter_between_two_suspects_by_themselves() -> None:
    """Otherwise hundreds of suspects, run one by one, would block all other jobs for long."""
    permits = Permits(items=2, tokens=100)
    order: list[str] = []

    async def one(job: str) -> None:
        permit = await permits.acquire(job, 1)
        order.append(job)
        await settle()
        permits.release(permit)

    async def suspect(job: str) -> None:
        async with permits.quarantine(job, by_itself=True):
            await one(job)

    async with permits.quarantine("s0", by_itself=True):
        tasks = [asyncio.create_task(suspect(f"s{number}")) for number in range(1, 4)]
        tasks += [asyncio.create_task(one(f"o{number}")) for number in range(5)]
        await settle()
        await one("s0")
    await asyncio.gather(*tasks)
    assert order == ["s0", "o0", "o1", "s1", "o2", "o3", "s2", "o4", "s3"]


async def test_a_waiting_suspect_that_is_cancelled_blocks_no_other_job() -> None:
    permits = Permits(items=4, tokens=100)
    inside = await permits.acquire("a", 1)

    async def suspect() -> None:
        async with permits.quarantine("s", by_itself=True):
            raise AssertionError("it was cancelled before it was admitted")

    task = asyncio.create_task(suspect())
    await settle()
    later = queue_up(permits, "b")
    await settle()
    task.cancel()
    permits.release(inside)  # in the same loop iteration: the task has not run yet
    await asyncio.wait_for(later, 5)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_suspect_cancelled_as_it_is_admitted_leaves_the_quarantine() -> None:
    permits = Permits(items=4, tokens=100)
    inside = await permits.acquire("a", 1)

    async def suspect() -> None:
        async with permits.quarantine("s", by_itself=True):
            raise AssertionError("it was cancelled in the loop iteration that admitted it")

    task = asyncio.create_task(suspect())
    await settle()
    permits.release(inside)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    permits.release(await asyncio.wait_for(permits.acquire("b", 1), 5))


async def test_a_permit_granted_to_a_cancelled_waiter_goes_to_the_next() -> None:
    permits = Permits(items=1, tokens=100)
    inside = await permits.acquire("a", 1)
    first, second = queue_up(permits, "b"), queue_up(permits, "c")
    await settle()
    permits.release(inside)
    first.cancel()
    await asyncio.wait_for(second, 5)
    assert first.cancelled()
    assert permits.held_items == 1


async def test_a_large_waiter_that_is_cancelled_unblocks_smaller_ones() -> None:
    permits = Permits(items=4, tokens=100)
    await permits.acquire("a", 50)
    large, small = queue_up(permits, "b", 90), queue_up(permits, "c", 10)
    await settle()
    assert not small.done()
    large.cancel()
    await asyncio.wait_for(small, 5)


@pytest.mark.parametrize("seed", range(60))
async def test_random_cancellations_leak_no_permit_and_block_no_waiter(seed: int) -> None:
    """Seeded storms of items and suspects, cancelled at any point; the bounds hold throughout."""
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
        self.kinds: list[Callable[[str], Any]] = [self.item, self.item, self.item, self.suspect]

    async def item(self, job: str) -> None:
        permit = await self.permits.acquire(job, self.chance.choice([1, 10, 30, 80]))
        mine = (job, permit.tokens)
        self.inside.append(mine)
        try:
            self.check()
            for _ in range(self.chance.randrange(4)):
                await asyncio.sleep(0)
        finally:
            self.inside.remove(mine)
            self.permits.release(permit)

    async def suspect(self, job: str) -> None:
        async with self.permits.quarantine(job, by_itself=True):
            assert self.alone is None
            assert self.inside == []
            self.alone = job
            try:
                await self.item(job)
            finally:
                self.alone = None

    def check(self) -> None:
        assert len(self.inside) <= 3
        assert sum(tokens for _, tokens in self.inside) <= 50 or len(self.inside) == 1
        assert self.alone is None or {job for job, _ in self.inside} == {self.alone}


async def cancelled(tasks: list[asyncio.Task[Permit]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
