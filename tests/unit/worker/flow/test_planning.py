"""Turns to plan: in order while there is capacity, in the thread for their size, four at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dragoman_worker.flow.planning import Planning
from dragoman_worker.flow.slices import LARGE

TIMEOUT_S = 30.0


@dataclass
class Record:
    """A record that is opened in a turn."""

    suspect: bool = False


RECORD = Record()


@pytest.fixture
def planning() -> Iterator[Planning]:
    made = Planning(10)
    yield made
    made.close()


@pytest.fixture
def tokenising() -> Iterator[Planning]:
    made = Planning(10, tokenises=True)
    yield made
    made.close()


async def plan(
    planning: Planning, job: str, tokens: int, opens: Record | None = None, size: int = 1
) -> None:
    async with planning.turn(size, job, opens=opens):
        planning.tokens.enter(job, tokens)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# --- capacity -------------------------------------------------------------------------------------


async def test_jobs_wait_for_capacity_and_plan_first_come_first_served(planning: Planning) -> None:
    tokens = planning.tokens
    await plan(planning, "a", 10)
    waiting = [asyncio.create_task(plan(planning, name, 10, RECORD)) for name in ("b", "c")]
    await settle()
    assert not any(task.done() for task in waiting)
    tokens.leave("a", 10)
    await waiting[0]
    assert not waiting[1].done()
    tokens.forget("b")
    await waiting[1]
    tokens.forget("c")
    assert tokens.held == 0


async def test_a_running_job_with_no_waiting_request_plans_whatever_others_hold(
    planning: Planning,
) -> None:
    await plan(planning, "a", 100)
    await asyncio.wait_for(plan(planning, "b", 1), TIMEOUT_S)
    second = asyncio.create_task(plan(planning, "b", 1))
    await settle()
    assert not second.done()
    planning.tokens.leave("b", 1)
    await asyncio.wait_for(second, TIMEOUT_S)


async def test_a_job_cancelled_as_it_is_admitted_lets_the_next_one_plan(planning: Planning) -> None:
    await plan(planning, "a", 10)
    first, second = (asyncio.create_task(plan(planning, n, 1, RECORD)) for n in ("b", "c"))
    await settle()
    planning.tokens.leave("a", 10)
    first.cancel()
    await asyncio.wait_for(second, TIMEOUT_S)


async def test_a_turn_that_plans_nothing_or_fails_lets_the_next_job_plan(
    planning: Planning,
) -> None:
    async def fails() -> None:
        async with planning.turn(1, "b", opens=RECORD):
            raise RuntimeError("defect")

    async def plans_nothing() -> None:
        async with planning.turn(1, "c", opens=RECORD):
            pass

    await plan(planning, "a", 10)
    first, second = asyncio.create_task(fails()), asyncio.create_task(plans_nothing())
    last = asyncio.create_task(plan(planning, "d", 1, RECORD))
    await settle()
    planning.tokens.leave("a", 10)
    await asyncio.wait_for(asyncio.gather(first, second, last, return_exceptions=True), TIMEOUT_S)
    assert planning.tokens.held == 1


async def test_a_turn_without_a_job_needs_no_capacity(planning: Planning) -> None:
    await plan(planning, "a", 100)
    async with asyncio.timeout(TIMEOUT_S), planning.turn(1, opens=RECORD):
        pass


async def test_a_turn_goes_on_while_there_is_capacity(planning: Planning) -> None:
    async with planning.turn(1, "a") as turn:
        planning.tokens.enter("a", 9)
        assert turn.goes_on(LARGE)
        assert not turn.goes_on(LARGE + 1)
        planning.tokens.enter("a", 1)
        assert not turn.goes_on(1)


# --- places ---------------------------------------------------------------------------------------


async def test_four_records_at_most_are_opened_with_a_tokenizer_and_suspects_besides(
    tokenising: Planning,
) -> None:
    release, inside = asyncio.Event(), list[str]()

    async def opens(name: str, *, suspect: bool = False) -> None:
        async with tokenising.turn(1, name, opens=Record(suspect)):
            inside.append(name)
            await release.wait()

    names = "abcdefgh"
    tasks = [asyncio.create_task(opens(name)) for name in names]
    tasks.append(asyncio.create_task(opens("suspect", suspect=True)))
    await settle()
    assert sorted(inside) == ["a", "b", "c", "d", "suspect"]
    release.set()
    await asyncio.wait_for(asyncio.gather(*tasks), TIMEOUT_S)
    assert sorted(inside) == [*names, "suspect"]


async def test_capacity_that_others_filled_during_the_wait_for_a_place_is_waited_for(
    tokenising: Planning,
) -> None:
    release = asyncio.Event()

    async def opens(name: str) -> None:
        async with tokenising.turn(1, name, opens=RECORD):
            await release.wait()
            tokenising.tokens.enter(name, 10)

    first = [asyncio.create_task(opens(name)) for name in "abcd"]
    await settle()
    late = asyncio.create_task(opens("e"))
    await settle()
    release.set()
    await asyncio.wait_for(asyncio.gather(*first), TIMEOUT_S)
    await settle()
    assert not late.done()
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    for name in "abcd":
        tokenising.tokens.forget(name)
    async with asyncio.timeout(TIMEOUT_S):  # the cancelled turn has left its place
        await asyncio.gather(*(plan(tokenising, name, 1, RECORD) for name in "fghi"))


# --- threads --------------------------------------------------------------------------------------


async def test_with_a_tokenizer_small_requests_pass_a_large_one(tokenising: Planning) -> None:
    large_began, small_done = threading.Event(), threading.Event()

    def large() -> bool:
        large_began.set()
        return small_done.wait(TIMEOUT_S)

    async def run_large() -> bool:
        async with tokenising.turn(LARGE + 1, "a") as turn:
            return await turn.plan(LARGE + 1, large)

    running = asyncio.create_task(run_large())
    await asyncio.to_thread(large_began.wait, TIMEOUT_S)
    assert not tokenising.at_once(1)
    async with tokenising.turn(1, "b") as turn:
        assert await turn.plan(1, threading.get_ident) != threading.get_ident()
    small_done.set()
    assert await running


async def test_without_a_tokenizer_small_requests_are_planned_on_the_loop(
    planning: Planning,
) -> None:
    assert planning.at_once(LARGE)
    assert not planning.at_once(LARGE + 1)
    async with planning.turn(LARGE, "a") as turn:
        assert await turn.plan(LARGE, threading.get_ident) == threading.get_ident()
        assert await turn.plan(LARGE + 1, threading.get_ident) != threading.get_ident()


@pytest.mark.parametrize("tokenises", [False, True])
async def test_work_that_plans_nothing_runs_on_the_loop_unless_it_is_large(
    *, tokenises: bool
) -> None:
    gate = Planning(10, tokenises=tokenises)
    assert await gate.run(LARGE, threading.get_ident) == threading.get_ident()
    assert await gate.run(LARGE + 1, threading.get_ident) != threading.get_ident()
    async with gate.turn(LARGE) as turn:
        assert await turn.run(threading.get_ident) == threading.get_ident()
    async with gate.turn(LARGE + 1) as turn:
        assert await turn.run(threading.get_ident) != threading.get_ident()
    gate.close()
