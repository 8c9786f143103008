"""Coalescing of equal units: who may lead, who waits, and how long an answer is shared."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.memory.in_flight import KEPT_S, MOST_KEPT, Coalesced, Flight
from dragoman_worker.ports import Remembered

KEY, OTHER = b"k" * 32, b"o" * 32
HALLO = Remembered("Hallo.")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_equal_units_join_one_flight_and_others_another() -> None:
    coalesced = Coalesced()
    flight, other = coalesced.join(KEY), coalesced.join(OTHER)
    assert coalesced.join(KEY) is flight
    assert other is not flight


def test_flight_ends_when_its_last_unit_does() -> None:
    coalesced = Coalesced()
    flight = coalesced.join(KEY)
    assert len(coalesced) == 1
    del flight
    gc.collect()
    assert len(coalesced) == 0


def test_one_unit_leads_at_a_time() -> None:
    flight = Flight()
    assert flight.may_lead
    with flight.lead():
        assert not flight.may_lead


def test_leader_that_fails_is_followed_by_two_so_that_failures_do_not_queue() -> None:
    flight = Flight()
    with flight.lead():
        pass
    with flight.lead():
        assert flight.may_lead
        with flight.lead():
            assert not flight.may_lead


def test_leader_that_is_cancelled_is_followed_by_one() -> None:
    flight = Flight()
    with pytest.raises(asyncio.CancelledError), flight.lead():
        raise asyncio.CancelledError
    with flight.lead():
        assert not flight.may_lead


async def test_followers_wait_for_the_answer_or_the_end_of_a_leader() -> None:
    flight = Flight()
    with flight.lead():
        followers = [asyncio.create_task(flight.follow()) for _ in range(3)]
        await settle()
        assert not any(follower.done() for follower in followers)
        flight.share(HALLO)
        await asyncio.gather(*followers)
    flight = Flight()
    with flight.lead():
        follower = asyncio.create_task(flight.follow())
        await settle()
    await follower
    assert flight.answer is None


async def test_cancelled_follower_leaves_the_others_unharmed() -> None:
    flight = Flight()
    with flight.lead():
        first, second = (asyncio.create_task(flight.follow()) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        flight.share(HALLO)
        await second
    assert first.cancelled()


def test_answer_reaches_units_of_its_flight_however_late() -> None:
    clock = Clock()
    coalesced = Coalesced(clock=clock)
    flight = coalesced.join(KEY)
    coalesced.share(KEY, flight, HALLO)
    clock.now = 100 * KEPT_S
    coalesced.join(OTHER)
    assert flight.answer is HALLO


def test_answer_reaches_units_that_come_until_the_memory_has_it() -> None:
    clock = Clock()
    coalesced = Coalesced(clock=clock)
    flight = coalesced.join(KEY)
    coalesced.share(KEY, flight, HALLO)
    del flight
    clock.now = KEPT_S / 2
    assert coalesced.join(KEY).answer is HALLO


def test_old_answer_reaches_no_unit_that_comes_although_others_of_its_flight_live() -> None:
    clock = Clock()
    coalesced = Coalesced(clock=clock)
    flight = coalesced.join(KEY)
    coalesced.share(KEY, flight, HALLO)
    clock.now = 2 * KEPT_S
    assert coalesced.join(KEY).answer is None
    assert flight.answer is HALLO


def test_newer_answer_of_a_key_replaces_the_older_one() -> None:
    coalesced = Coalesced()
    older, newer = coalesced.join(KEY), coalesced.join(OTHER)
    coalesced.share(KEY, older, HALLO)
    coalesced.share(KEY, newer, Remembered("Guten Tag."))
    assert coalesced.join(KEY).answer == Remembered("Guten Tag.")


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=60))
def test_a_unit_gets_an_answer_of_its_own_key_given_within_the_time(
    shared: list[tuple[int, int]],
) -> None:
    clock, last = Clock(), dict[int, float]()
    coalesced = Coalesced(clock=clock)
    for name, quarters in shared:
        clock.now += quarters * KEPT_S / 4
        key = bytes([name])
        answer = coalesced.join(key).answer
        recent = clock.now - last.get(name, -10.0) <= KEPT_S
        assert answer == (Remembered(str(name)) if recent else None)
        if answer is None:
            coalesced.share(key, coalesced.join(key), Remembered(str(name)))
            last[name] = clock.now


def test_answers_that_are_kept_are_bounded() -> None:
    coalesced = Coalesced(clock=Clock())
    for number in range(MOST_KEPT + 10):
        key = number.to_bytes(32, "big")
        coalesced.share(key, coalesced.join(key), HALLO)
    gc.collect()
    assert len(coalesced) == MOST_KEPT


async def test_units_that_all_fail_take_rounds_of_twice_as_many() -> None:
    flight, rounds = Flight(), list[int]()
    failed = 0
    while failed < 31:
        leading = [flight.lead() for _ in range(flight.most_leaders)]
        for each in leading:
            each.__enter__()
        assert not flight.may_lead
        for each in leading:
            each.__exit__(None, None, None)
        failed += len(leading)
        rounds.append(len(leading))
    assert rounds == [1, 2, 4, 8, 16]
