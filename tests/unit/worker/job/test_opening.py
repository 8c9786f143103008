"""Suspects are opened by themselves, cleared without a crash, and rejected after too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_schemas.wire import open_record
from dragoman_worker.errors import Poisoned, TransientEngineError
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job.opening import Openings, journaled
from dragoman_worker.job.outcome import Completed, Outcome, Rejected, Released
from dragoman_worker.ports import Delivery
from dragoman_worker.process.journal import JOURNAL_SLOTS, Crashes, JournalEntry, Slots, Stage
from dragoman_worker.process.parent_link import ReplicaSlot
from support.fakes.core import Core, record
from support.processes.waiting import eventually

SLOT = 320


def slots(count: int, *entries: JournalEntry) -> Slots:
    made = Slots(bytearray(8 + count * SLOT))
    made.replace(entries)
    return made


def delivery(offset: int = 0) -> Delivery:
    return Delivery("t", 0, offset, 1, None, b"{}", (), 5)


def suspect_in_planning(crashes: int) -> JournalEntry:
    return JournalEntry("dragoman.jobs/0/0@5", Stage.PLANNING, crashes)


def suspect(offset: int = 0, crashes: int = 1, stage: Stage = Stage.READING) -> JournalEntry:
    return JournalEntry(f"t/0/{offset}@5", stage, crashes)


@asynccontextmanager
async def being_opened(openings: Openings, offset: int) -> AsyncIterator[asyncio.Event]:
    """Open it in a task of its own until the context ends; the event is set once it has begun."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def opening() -> None:
        async with openings.of(delivery(offset)).at(Stage.PLANNING):
            begun.set()
            await over.wait()

    task = asyncio.create_task(opening())
    try:
        await turns()
        yield begun
    finally:
        over.set()
        await asyncio.wait_for(task, 10)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_being_opened_is_in_the_journal_and_no_longer() -> None:
    journal = slots(4)
    openings = Openings(journal)
    async with openings.of(delivery(1)).at(Stage.READING), being_opened(openings, 2):
        assert {(e.name, e.stage) for e in journal.entries()} == {
            ("t/0/1@5", Stage.READING),
            ("t/0/2@5", Stage.PLANNING),
        }
    assert journal.entries() == []
    with pytest.raises(ZeroDivisionError):
        async with openings.of(delivery()).at(Stage.READING):
            raise ZeroDivisionError
    assert journal.entries() == []


async def test_more_than_the_slots_wait_for_one() -> None:
    openings = Openings(slots(1))
    slot = await openings.enter("first", Stage.READING)
    waiting = [asyncio.create_task(openings.enter(n, Stage.READING)) for n in ("second", "third")]
    await turns()
    assert not any(task.done() for task in waiting)
    waiting[0].cancel()
    await turns()
    openings.leave(slot)
    assert await asyncio.wait_for(waiting[1], 10) == slot


async def test_a_suspect_is_opened_while_nobody_else_is() -> None:
    openings = Openings(slots(4), slots(4, suspect(7)))
    async with being_opened(openings, 1) as before:
        waiting = asyncio.create_task(openings.enter("t/0/7@5", Stage.READING))
        await turns()
        late = asyncio.create_task(openings.enter("late", Stage.READING))
        await turns()
        assert before.is_set()
        assert not waiting.done()
        assert not late.done(), "or suspects would wait for ever on a busy worker"
    slot = await asyncio.wait_for(waiting, 10)
    await turns()
    assert not late.done()
    openings.leave(slot)
    openings.leave(await asyncio.wait_for(late, 10))


async def test_a_suspect_that_opens_well_is_cleared_everywhere_once() -> None:
    cleared: list[str] = []
    openings = Openings(slots(4), slots(4, suspect(7, crashes=3)), cleared=cleared.append)
    opening = openings.of(delivery(7))
    async with opening.at(Stage.READING):
        pass
    assert cleared == [], "it has not been planned yet"
    opening.done()
    opening.done()
    assert cleared == [opening.name]
    async with opening.at(Stage.READING), being_opened(openings, 8) as other:
        assert other.is_set(), "no longer by itself"


async def test_one_that_killed_while_it_was_read_is_not_read_again() -> None:
    cleared: list[str] = []
    openings = Openings(slots(4), slots(4, suspect(7, crashes=4)), cleared=cleared.append)
    for _ in range(2):
        with pytest.raises(Poisoned):
            async with openings.of(delivery(7)).at(Stage.READING):
                raise AssertionError
    openings.of(delivery(7)).done()
    assert cleared == []


async def test_one_that_killed_while_it_was_planned_is_read_and_not_planned_again() -> None:
    openings = Openings(slots(4), slots(4, suspect(7, 4, Stage.PLANNING)))
    async with openings.of(delivery(7)).at(Stage.READING):
        pass
    with pytest.raises(Poisoned):
        async with openings.of(delivery(7)).at(Stage.PLANNING):
            raise AssertionError
    openings.leave(await asyncio.wait_for(openings.enter("next", Stage.READING), 10))


async def test_the_record_of_a_topic_made_anew_is_another_one() -> None:
    openings = Openings(slots(4), slots(4, JournalEntry("t/0/7@4", Stage.READING, 9)))
    async with openings.of(delivery(7)).at(Stage.READING):
        pass


async def test_counts_that_are_being_written_are_read_when_they_are_whole() -> None:
    table = slots(4, suspect(1))
    openings = Openings(None, table)
    assert set(openings.crashes) == {"t/0/1@5"}
    during: list[set[str]] = []

    def entries() -> Iterator[JournalEntry]:
        during.append(set(openings.crashes))
        yield suspect(2)

    table.replace(entries())
    assert during == [{"t/0/1@5"}]
    assert set(openings.crashes) == {"t/0/2@5"}


@settings(deadline=None)
@given(
    kinds=st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.booleans()), max_size=20),
    count=st.integers(1, 4),
)
def test_whoever_comes_in_whatever_order_is_opened_and_suspects_alone(
    kinds: list[tuple[bool, int, bool]], count: int
) -> None:
    suspects = [suspect(number) for number, kind in enumerate(kinds) if kind[0]]
    openings = Openings(slots(count), slots(32, *suspects))
    inside: list[int] = []

    async def one(number: int, steps: int) -> None:
        async with openings.of(delivery(number)).at(Stage.READING):
            inside.append(number)
            for _ in range(steps):
                await asyncio.sleep(0)
                assert len(inside) <= count
                assert len(inside) == 1 or not any(kinds[each][0] for each in inside)
            inside.remove(number)

    async def all_of_them() -> None:
        tasks = []
        for number, (_, steps, cancelled) in enumerate(kinds):
            tasks.append(asyncio.create_task(one(number, steps)))
            await asyncio.sleep(0)
            if cancelled and not steps:
                tasks[-1].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert [t.exception() for t in tasks if not t.cancelled()] == [None] * sum(
            not t.cancelled() for t in tasks
        )

    asyncio.run(all_of_them())
    assert len(openings._free) == count


# --- in the executor ------------------------------------------------------------------------------


async def outcome_of(core: Core, value: bytes, *entries: JournalEntry) -> Outcome:
    core.openings = Openings(slots(4), slots(4, *entries))
    _, executor, _ = core.build()
    one = Delivery("dragoman.jobs", 0, 0, 1, None, value, (), 5)
    core.consumer.append(value)
    outcome, held = await executor.execute(one)
    if held is not None:
        core.in_flight.leave(held, None)
    return outcome


async def test_a_record_that_cannot_be_read_alive_is_a_dead_letter_without_an_id() -> None:
    bad = JournalEntry("dragoman.jobs/0/0@5", Stage.READING, 4)
    outcome = await outcome_of(Core(), record(), bad)
    assert isinstance(outcome, Rejected)
    assert outcome.failure.code == "poisoned"
    assert (outcome.job_id, outcome.result) == (None, None)


async def test_a_record_that_cannot_be_planned_alive_fails_under_its_id() -> None:
    core = Core()
    outcome = await outcome_of(
        core, record(), JournalEntry("dragoman.jobs/0/0@5", Stage.PLANNING, 4)
    )
    assert isinstance(outcome, Rejected)
    assert (outcome.failure.code, outcome.job_id) == ("poisoned", "a1")
    assert outcome.result is not None
    assert outcome.claim is not None
    assert core.engine.requests == []


async def test_a_suspect_that_opens_well_is_run_like_any_other() -> None:
    core = Core()
    outcome = await outcome_of(
        core, record(), JournalEntry("dragoman.jobs/0/0@5", Stage.PLANNING, 3)
    )
    assert isinstance(outcome, Completed)


async def test_a_suspect_is_opened_with_nobody_in_the_engine() -> None:
    """Their claims would be left behind, and four such crashes would make them poisoned."""
    core = Core()
    held = core.engine.hold("in the engine")
    core.openings = Openings(slots(4), slots(4, JournalEntry("dragoman.jobs/0/1@5", Stage.READING)))
    _, executor, _ = core.build()
    values = [record("a1", "in the engine"), record("a2", "odd")]
    records = [Delivery("dragoman.jobs", 0, n, 1, None, v, (), 5) for n, v in enumerate(values)]
    for value in values:
        core.consumer.append(value)
    first = asyncio.create_task(executor.execute(records[0]))
    await core.inside("in the engine")
    suspected = asyncio.create_task(executor.execute(records[1]))
    await turns()
    assert core.in_flight.find(("a2", open_record(values[1]).fingerprint, 0)) is None, (
        "not read yet"
    )
    held.set()
    _, settled = await asyncio.wait_for(first, 10)
    assert settled is not None
    core.in_flight.leave(settled, None)
    outcome, _ = await asyncio.wait_for(suspected, 10)
    assert isinstance(outcome, Completed)


async def test_a_suspect_is_opened_once_every_claim_is_settled() -> None:
    """A job that has left the engine keeps its claim until its end is written."""
    core = Core()
    core.openings = Openings(slots(4), slots(4, JournalEntry("dragoman.jobs/0/1@5", Stage.READING)))
    _, executor, _ = core.build()
    values = [record("a1"), record("a2")]
    records = [Delivery("dragoman.jobs", 0, n, 1, None, v, (), 5) for n, v in enumerate(values)]
    for value in values:
        core.consumer.append(value)
    _, unsettled = await executor.execute(records[0])
    assert unsettled is not None
    suspected = asyncio.create_task(executor.execute(records[1]))
    await turns()
    assert core.in_flight.find(("a2", open_record(values[1]).fingerprint, 0)) is None, (
        "not read yet"
    )
    core.in_flight.leave(unsettled, None)
    outcome, _ = await asyncio.wait_for(suspected, 10)
    assert isinstance(outcome, Completed)


@pytest.mark.parametrize("text", [["one", "two", "three"], "asked again"])
async def test_a_job_that_runs_goes_on_while_a_suspect_waits_for_its_end(text: Any) -> None:
    """It holds its claim while its next item, or its next attempt, waits for a permit."""
    core = Core(permits=Permits(items=1, tokens=100_000))
    inside = "one" if isinstance(text, list) else text
    held = asyncio.Event()
    core.engine.script("one", held)
    core.engine.script("asked again", held, TransientEngineError("not now"))
    core.openings = Openings(slots(4), slots(4, JournalEntry("dragoman.jobs/0/1@5", Stage.READING)))
    _, _, worker = core.build()
    values = [record("a1", text), record("a2"), record("a3")]
    records = [Delivery("dragoman.jobs", 0, n, 1, None, v, (), 5) for n, v in enumerate(values)]
    for value in values:
        core.consumer.append(value)
    first = asyncio.create_task(worker._work(records[0]))
    await core.inside(inside)
    others = [asyncio.create_task(worker._work(each)) for each in records[1:]]
    await turns()
    held.set()
    await asyncio.wait_for(asyncio.gather(first, *others), 10)
    assert [state.status for state in map(core.state, ("a1", "a2", "a3"))] == ["completed"] * 3


async def test_a_suspect_does_not_wait_for_claims_that_came_after_its_turn() -> None:
    """Jobs that need no permit may come without end."""
    core = Core()
    core.openings = Openings(slots(4), slots(4, JournalEntry("dragoman.jobs/0/2@5", Stage.READING)))
    _, executor, _ = core.build()
    values = [record("a1"), record("a2", " "), record("a3")]
    records = [Delivery("dragoman.jobs", 0, n, 1, None, v, (), 5) for n, v in enumerate(values)]
    for value in values:
        core.consumer.append(value)
    _, before = await executor.execute(records[0])
    assert before is not None
    suspected = asyncio.create_task(executor.execute(records[2]))
    await turns()
    _, later = await executor.execute(records[1])
    assert later is not None
    assert later.claim is not None
    core.in_flight.leave(before, None)
    key = ("a3", open_record(values[2]).fingerprint, 0)
    await eventually(lambda: core.in_flight.find(key), timeout_s=30, what="the suspect is read")
    core.in_flight.leave(later, None)
    outcome, _ = await asyncio.wait_for(suspected, 10)
    assert isinstance(outcome, Completed)


async def test_a_suspect_that_waits_when_the_worker_drains_is_released() -> None:
    core = Core()
    core.permits.drain()
    outcome = await outcome_of(core, record(), JournalEntry("dragoman.jobs/0/0@5", Stage.READING))
    assert isinstance(outcome, Released)


# --- in a replica ---------------------------------------------------------------------------------


async def test_a_replica_without_room_for_a_journal_opens_records_all_the_same(
    tmp_path: Any,
) -> None:
    parent_link: Any = None
    openings = journaled(ReplicaSlot(0, tmp_path / "gone" / "0.sock", parent_link), poison_after=4)
    async with openings.of(delivery()).at(Stage.READING):
        pass


async def test_a_replica_knows_what_died_before_it_and_while_it_runs(tmp_path: Any) -> None:
    class Line:
        def opened(self, name: str) -> None:
            crashes.forget(name)

    crashes = Crashes(tmp_path)
    parent_link: Any = Line()
    openings = journaled(ReplicaSlot(0, tmp_path / "0.sock", parent_link), poison_after=4)
    other = Slots.create(tmp_path / "1.journal", JOURNAL_SLOTS)
    other.put(5, suspect(3))
    crashes.replica_exited(1, lambda _: None)
    assert openings.crashes["t/0/3@5"].crashes == 1
    openings.of(delivery(3)).done()
    assert dict(openings.crashes) == {}
