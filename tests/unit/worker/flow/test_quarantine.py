"""Suspects run in cohorts, then by themselves: bounds, order, and the cost in rounds."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_schemas.scripts import Quarantine as Level
from dragoman_worker.flow import quarantine as quarantine_module
from dragoman_worker.flow.permits import Draining, Permits
from dragoman_worker.flow.quarantine import SMALLEST_COHORT, QuarantineRounds, cohort_size
from support.builders.store_calls import claim_of, request, result
from support.fakes.local_jobs import LocalJobs

POISON_AFTER = 4


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# --- rounds ---------------------------------------------------------------------------------------


@given(st.integers(0, 5_000))
def test_a_cohort_is_the_square_root_of_the_suspects_and_at_least_16(suspects: int) -> None:
    assert cohort_size(suspects) == max(16, math.floor(math.sqrt(suspects)))


@pytest.mark.parametrize("suspects", [1, 15, 17, 400, 1_000])
async def test_a_round_admits_a_cohort_and_the_next_waits_until_all_of_it_left(
    suspects: int,
) -> None:
    quarantine = QuarantineRounds()
    waiting = [quarantine.join(f"s{number}", by_itself=False) for number in range(suspects)]
    rounds = 0
    while waiting:
        quarantine.begin_round()
        inside = [member for member in waiting if member.admitted.done()]
        assert inside == waiting[: cohort_size(len(waiting))]
        assert quarantine.inside == len(inside)
        quarantine.begin_round()
        quarantine.fill_cohort()  # neither admits a suspect to a full round
        waiting = waiting[len(inside) :]
        assert not any(member.admitted.done() for member in waiting)
        assert [quarantine.leave(member) for member in inside] == [
            *[False] * (len(inside) - 1),
            True,
        ]
        assert all(member.job not in quarantine.jobs for member in inside)
        rounds += 1
    assert rounds <= math.ceil(suspects / SMALLEST_COHORT)
    assert (quarantine.waiting, quarantine.inside) == (0, 0)


async def test_the_longest_waiting_suspect_decides_the_kind_of_the_next_round() -> None:
    quarantine = QuarantineRounds()
    order = [("a", False), ("b", True), ("c", False), ("d", True), ("e", False)]
    members = {job: quarantine.join(job, by_itself=alone) for job, alone in order}
    rounds = []
    while quarantine.waiting:
        quarantine.begin_round()
        inside = [job for job in members if members[job].admitted.done()]
        rounds.append("".join(inside))
        for job in inside:
            quarantine.fill_cohort()
            quarantine.leave(members.pop(job))
    assert rounds == ["ace", "b", "d"]


async def test_later_suspects_join_a_cohort_until_it_has_admitted_its_full_size() -> None:
    quarantine = QuarantineRounds()
    members = [quarantine.join("s0", by_itself=False)]
    quarantine.begin_round()
    members += [quarantine.join(f"s{number}", by_itself=False) for number in range(1, 40)]
    by_itself = quarantine.join("a", by_itself=True)
    quarantine.fill_cohort()
    assert [member.admitted.done() for member in members] == [True] * 16 + [False] * 24
    for member in members[:15]:
        quarantine.leave(member)
    quarantine.fill_cohort()
    assert quarantine.inside == 1, "suspects that left free no place: a round must come to its end"
    assert quarantine.leave(members[15])
    quarantine.begin_round()
    assert members[16].admitted.done()
    assert not by_itself.admitted.done()


# --- in the engine --------------------------------------------------------------------------------


async def test_only_the_cohort_is_in_the_engine_and_waiting_jobs_enter_after_it() -> None:
    permits = Permits(items=40, tokens=1_000)
    inside = await permits.acquire("before", 1)
    finished = asyncio.Event()
    order: list[str] = []

    async def suspect(job: str) -> None:
        async with permits.quarantine(job, by_itself=False):
            permit = await permits.acquire(job, 1)
            order.append(job)
            await finished.wait()
            permits.release(permit)

    async def bystander() -> None:
        permit = await permits.acquire("by", 1)
        order.append("by")
        permits.release(permit)

    names = [f"s{number}" for number in range(20)]
    tasks = [asyncio.create_task(suspect(name)) for name in names]
    await settle()
    tasks.append(asyncio.create_task(bystander()))
    await settle()
    assert order == [], "the engine runs empty first"
    permits.release(inside)
    await settle()
    assert order == names[:16]
    assert (permits.held_items, permits.quarantined) == (16, 20)
    finished.set()
    await asyncio.gather(*tasks)
    assert order == [*names[:16], "by", *names[16:]]
    assert (permits.held_items, permits.quarantined) == (0, 0)


async def test_a_suspect_that_never_enters_the_engine_blocks_no_other_suspect() -> None:
    """It waits for Redis or its back-off: the rest of its cohort runs, then waits for it."""
    permits = Permits(items=4, tokens=1_000)
    answered = asyncio.Event()
    done: list[str] = []

    async def suspect(job: str, *, waits: bool) -> None:
        async with permits.quarantine(job, by_itself=False):
            if waits:
                await answered.wait()
            permits.release(await permits.acquire(job, 1))
            done.append(job)

    tasks = [asyncio.create_task(suspect(f"s{n}", waits=n == 0)) for n in range(8)]
    await settle()
    assert done == [f"s{n}" for n in range(1, 8)]
    answered.set()
    await asyncio.gather(*tasks)


async def test_a_cancelled_suspect_leaves_and_blocks_no_other_job() -> None:
    permits = Permits(items=4, tokens=1_000)
    never = asyncio.Event()

    async def suspect(job: str) -> None:
        async with permits.quarantine(job, by_itself=False):
            permits.release(await permits.acquire(job, 1))
            await never.wait()

    tasks = [asyncio.create_task(suspect(f"s{number}")) for number in range(18)]
    await settle()
    assert (permits.quarantined, permits.held_items) == (18, 0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert permits.quarantined == 0
    permits.release(await asyncio.wait_for(permits.acquire("b", 1), 5))


async def test_a_drain_rejects_waiting_suspects_and_lets_the_cohort_finish() -> None:
    permits = Permits(items=4, tokens=1_000)
    leave = asyncio.Event()

    async def suspect(job: str) -> None:
        async with permits.quarantine(job, by_itself=False):
            await leave.wait()
            permits.release(await permits.acquire(job, 1))

    tasks = [asyncio.create_task(suspect(f"s{number}")) for number in range(20)]
    await settle()
    permits.drain()
    leave.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 16 + [Draining] * 4
    with pytest.raises(Draining):
        await suspect("late")


async def test_priority_classes_share_the_engine_inside_a_cohort_too() -> None:
    permits = Permits(items=1, tokens=1_000, weights={"a": 1, "b": 1})
    order: list[str] = []

    async def suspect(priority: str) -> None:
        async with permits.quarantine(priority, by_itself=False):
            await asyncio.gather(*(item(priority) for _ in range(3)))

    async def item(priority: str) -> None:
        permit = await permits.acquire(priority, 1, priority=priority)
        order.append(priority)
        await settle()
        permits.release(permit)

    await asyncio.gather(suspect("a"), suspect("b"), item("c"))
    assert order == ["a", "b", "a", "b", "a", "b", "c"]


@pytest.mark.parametrize("seed", range(40))
async def test_random_cancellations_keep_rounds_apart_and_block_no_job(
    seed: int,
) -> None:
    chance = random.Random(seed)
    permits = Permits(items=3, tokens=50)
    inside: list[tuple[str, str]] = []
    tasks = [
        asyncio.create_task(_random_job(permits, chance, inside, f"{number}"))
        for number in range(60)
    ]
    for _ in range(400):
        if chance.random() < 0.1:
            chance.choice(tasks).cancel()
        if chance.random() < 0.02:
            permits.resize(items=chance.randint(1, 5), tokens=chance.randint(10, 90))
        await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert [task.exception() for task in tasks if not task.cancelled() and task.exception()] == []
    assert (permits.held_items, permits.waiting, permits.quarantined) == (0, 0, 0)


async def _random_job(
    permits: Permits, chance: random.Random, inside: list[tuple[str, str]], job: str
) -> None:
    async def item(kind: str) -> None:
        permit = await permits.acquire(job, chance.choice([1, 10, 30]))
        inside.append((kind, job))
        try:
            kinds = {each for each, _ in inside}
            assert len(kinds) == 1, "one kind of job at a time"
            assert kind != "solo" or {each for _, each in inside} == {job}
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        finally:
            inside.remove((kind, job))
            permits.release(permit)

    kind = chance.choice(["free", "cohort", "solo"])
    if kind == "free":
        await item(kind)
        return
    async with permits.quarantine(job, by_itself=kind == "solo"):
        await asyncio.gather(item(kind), item(kind))


# --- the cost in rounds ---------------------------------------------------------------------------


class Fleet:
    """A worker that is started again whenever it dies; a job in the engine takes one round.

    A round with a poisonous job kills the worker: all jobs that it held stay claimed.
    """

    def __init__(self, jobs: int, poisonous: Iterable[int]) -> None:
        self.store = LocalJobs(poison_after=POISON_AFTER)
        self.open = [f"j{number}" for number in range(jobs)]
        self.poisonous = {f"j{number}" for number in poisonous}
        self.poisoned: list[str] = []
        self.rounds = 0
        self.deaths = 0
        self._inside: dict[str, asyncio.Future[None]] = {}

    async def run_to_rest(self) -> None:
        """Start workers until every job has finished."""
        while self.open:
            await self._live()

    async def _live(self) -> None:
        permits = Permits(items=len(self.open), tokens=10**9)
        tasks = [asyncio.create_task(self._job(permits, job)) for job in self.open]
        while self.open:
            await _idle()
            assert self._inside, "an empty engine here would stay empty for ever"
            self.rounds += 1
            inside, self._inside = self._inside, {}
            if not self.poisonous.isdisjoint(inside):
                self.deaths += 1
                break
            for tick in inside.values():
                tick.set_result(None)
            await _idle()
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(each) for each in outcomes} <= {type(None), asyncio.CancelledError}

    async def _job(self, permits: Permits, job: str) -> None:
        wanted = request(job, origin=f"dragoman.jobs/0/{job}")
        reply = await self.store.claim(wanted)
        if reply.verdict == "run":
            await self._work(permits, job)
        while reply.verdict == "suspect":
            level = Level.wanted(reply.suspicions)
            async with permits.quarantine(job, by_itself=level is Level.BY_ITSELF):
                wanted = request(job, origin=wanted.origin, quarantine=level)
                reply = await self.store.claim(wanted)
                if reply.verdict == "run":
                    await self._work(permits, job)
        if reply.verdict == "poisoned":
            self.poisoned.append(job)
        await self.store.finish(claim_of(wanted, reply), result(job_id=job))
        self.open.remove(job)

    async def _work(self, permits: Permits, job: str) -> None:
        permit = await permits.acquire(job, 1)
        try:
            self._inside[job] = asyncio.get_running_loop().create_future()
            await self._inside[job]
        finally:
            permits.release(permit)


async def _idle() -> None:
    """Return when every job waits for the end of the round."""
    for _ in range(60):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("jobs", "poisonous"), [(64, [5]), (256, [3, 200]), (512, [17, 300]), (512, [17, 18])]
)
async def test_cohorts_find_poison_in_a_number_of_rounds_near_the_square_root(
    jobs: int, poisonous: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """n suspects, k poisonous, cohorts of s: n/s rounds, and k*s more by themselves."""
    fleet = Fleet(jobs, poisonous)
    await fleet.run_to_rest()
    monkeypatch.setattr(quarantine_module, "cohort_size", lambda _: 1)
    before = Fleet(jobs, poisonous)
    await before.run_to_rest()
    for each in (fleet, before):
        assert sorted(each.poisoned) == sorted(each.poisonous), "only poison is rejected"
    k = len(poisonous)
    worst = math.ceil(jobs / SMALLEST_COHORT) + k * cohort_size(jobs) + fleet.deaths
    assert fleet.rounds <= worst
    assert before.rounds >= jobs - k, "one after the other"
    assert fleet.deaths <= before.deaths
