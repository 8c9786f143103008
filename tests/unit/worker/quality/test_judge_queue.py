"""Tests of the requests to the judge process: batches, lost batches, patience."""

from __future__ import annotations

import asyncio

from dragoman_worker.quality.judge_queue import MOST_BYTES, MOST_TEXTS, JudgeRequest, RequestQueue


def added(queue: RequestQueue, count: int, *, size: int = 10, texts: int = 1) -> list[JudgeRequest]:
    loop = asyncio.get_running_loop()
    requests = [JudgeRequest(b"x" * size, texts, loop) for _ in range(count)]
    for request in requests:
        queue.add(request)
    return requests


async def test_batches_are_bounded_by_texts_and_bytes() -> None:
    queue = RequestQueue()
    added(queue, MOST_TEXTS + 1)
    assert len(queue.next_batch()) == MOST_TEXTS
    assert len(queue.next_batch()) == 1
    added(queue, 3, size=MOST_BYTES // 2)
    assert len(queue.next_batch()) == 2


async def test_a_request_beyond_the_bounds_is_a_batch_of_its_own() -> None:
    queue = RequestQueue()
    large = added(queue, 2, size=2 * MOST_BYTES)
    many = added(queue, 2, texts=512)
    assert [queue.next_batch() for _ in range(5)] == [*([each] for each in large + many), []]


async def test_requests_of_a_lost_batch_come_first_and_one_by_one() -> None:
    queue = RequestQueue()
    lost = added(queue, 3)
    queue.next_batch()
    [later] = added(queue, 1)
    queue.batch_lost()
    assert queue.has_suspects
    for each in lost:
        assert queue.next_batch() == [each]
        queue.answered(["fine"])
    assert not queue.has_suspects
    assert queue.next_batch() == [later]
    assert [each.answer.result() for each in lost] == ["fine"] * 3


async def test_only_a_request_that_is_lost_twice_has_no_answer() -> None:
    queue = RequestQueue()
    guilty, innocent = added(queue, 2)
    queue.next_batch()
    queue.batch_lost()
    assert queue.next_batch() == [guilty]
    queue.batch_lost()
    assert guilty.answer.result() is None
    assert queue.next_batch() == [innocent]


async def test_requests_whose_callers_have_gone_are_left_out() -> None:
    queue = RequestQueue()
    gone, stays = added(queue, 2)
    gone.answer.cancel()
    assert queue.next_batch() == [stays]
    queue.batch_lost()
    stays.answer.cancel()
    [other] = added(queue, 1)
    assert queue.next_batch() == [other]


async def test_requests_that_waited_too_long_have_no_answer() -> None:
    queue = RequestQueue()
    old, young = added(queue, 2)
    young.since += 10
    queue.expire(young.since)
    assert old.answer.result() is None
    assert not young.answer.done()
    queue.resolve_all()
    assert young.answer.result() is None
    assert queue.empty
