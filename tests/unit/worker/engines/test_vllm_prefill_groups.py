"""Tests of prefills in groups, with a stand-in of vLLM's scheduler that counts steps."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.engines.vllm.patches.prefill_groups import MOST_STEPS, Groups, in_groups
from dragoman_worker.flow.admission import Admission
from dragoman_worker.settings import LimitsSettings
from support.fakes.simulated_engine import Engine, Run, Sequence, texts

PROMPT = 4
"""Tokens of each prompt."""


class Request:
    """A running request: tokens to read and to write."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.to_read = PROMPT

    @property
    def is_prefill_chunk(self) -> bool:
        return self.to_read > 0


class Scheduler:
    """The part of vLLM's scheduler that is extended: first come, first served."""

    def __init__(
        self, *waiting: int, seqs: int = 8, budget: int = 1_000, cache: int = 10_000
    ) -> None:
        """Let requests wait that write `waiting` tokens each."""
        self.scheduler_config = SimpleNamespace(enable_chunked_prefill=True)
        self.parallel_config = SimpleNamespace(data_parallel_size=1)
        self.running: list[Request] = []
        self.waiting = list(waiting)
        self.prefill_capacity_bound = False
        self.max_num_running_reqs = seqs
        self.max_num_scheduled_tokens = budget
        self.cache = cache
        self.entered: list[int] = []
        """Requests that entered, per step."""
        self.throttled: list[bool] = []

    @property
    def kv_cache_manager(self) -> Any:
        return SimpleNamespace(usage=PROMPT * len(self.running) / self.cache)

    def schedule(self, throttle_prefills: bool = False) -> Any:
        self.throttled.append(throttle_prefills)
        held = throttle_prefills and not self.prefill_capacity_bound and bool(self.running)
        budget, entered = self.max_num_scheduled_tokens, 0
        for request in self.running:
            if not request.is_prefill_chunk:
                budget -= 1
            elif not held:
                budget = self._read(request, budget)
        while self.waiting and not held and budget > 0 and self._has_room():
            self.running.append(Request(self.waiting.pop(0)))
            budget = self._read(self.running[-1], budget)
            entered += 1
        if not held:
            self.prefill_capacity_bound = bool(self.waiting)
        self.entered.append(entered)
        return SimpleNamespace(total_num_scheduled_tokens=self.max_num_scheduled_tokens - budget)

    def _read(self, request: Request, budget: int) -> int:
        read = min(budget, request.to_read)
        request.to_read -= read
        return budget - read

    def update(self) -> None:
        """Write one token of each request that is read; those without any left are finished."""
        for request in self.running:
            request.left -= not request.is_prefill_chunk
        self.running = [request for request in self.running if request.left]

    def _has_room(self) -> bool:
        room = PROMPT * (len(self.running) + 1) <= self.cache
        return len(self.running) < self.max_num_running_reqs and room


def steps(scheduler: Any, count: int) -> None:
    for _ in range(count):
        scheduler.schedule()
        scheduler.update()


def entered(scheduler: Any) -> list[int]:
    """Run every request to its end; return how many entered in each step that let any in."""
    for _ in range(10_000):
        if not (scheduler.running or scheduler.waiting):
            break
        steps(scheduler, 1)
    assert not scheduler.waiting
    return [count for count in scheduler.entered if count]


LENGTHS = (3, 4, 5, 6, 7, 8, 9, 10)
TWICE_AS_MANY = (*LENGTHS, *[50] * 8)


def test_by_itself_the_scheduler_lets_requests_in_one_by_one() -> None:
    assert entered(Scheduler(*TWICE_AS_MANY)) == [8, 1, 1, 1, 1, 1, 1, 1, 1]


def test_a_full_engine_lets_requests_in_once_the_share_has_finished() -> None:
    assert entered(in_groups(Scheduler, 0.5)(*TWICE_AS_MANY)) == [8, 4, 4]


def test_an_engine_with_free_sequences_lets_a_request_in_at_once() -> None:
    scheduler = in_groups(Scheduler, 0.5)(9, 9, 9)
    steps(scheduler, 1)
    scheduler.waiting.append(9)
    steps(scheduler, 1)
    assert scheduler.entered == [3, 1]


def test_an_engine_that_is_full_but_has_nobody_waiting_lets_the_next_in_at_once() -> None:
    scheduler = in_groups(Scheduler, 0.5)(*LENGTHS)
    steps(scheduler, 3)
    scheduler.waiting.append(9)
    steps(scheduler, 1)
    assert scheduler.entered == [8, 0, 0, 1]


def test_a_request_enters_at_once_after_those_that_waited_have_gone() -> None:
    scheduler = in_groups(Scheduler, 0.5)(*LENGTHS, 50)
    steps(scheduler, 1)
    scheduler.waiting.clear()
    steps(scheduler, 3)
    scheduler.waiting.append(9)
    steps(scheduler, 1)
    assert scheduler.entered == [8, 0, 0, 0, 1]


def test_an_engine_is_full_when_as_many_run_as_may_be_active() -> None:
    scheduler = in_groups(Scheduler, 0.5)(*TWICE_AS_MANY)
    scheduler.max_num_active_reqs, scheduler.max_num_running_reqs = 8, 100
    scheduler._has_room = lambda: len(scheduler.running) < scheduler.max_num_active_reqs
    assert entered(scheduler) == [8, 4, 4]


def test_an_engine_fills_at_its_start_as_fast_as_its_tokens_per_step_allow() -> None:
    plain, grouped = (
        made(*[50] * 20, budget=3 * PROMPT) for made in (Scheduler, in_groups(Scheduler, 0.5))
    )
    for scheduler in plain, grouped:
        steps(scheduler, 4)
    assert grouped.entered == plain.entered
    assert sum(grouped.entered) == 8


def test_a_nearly_full_cache_does_not_hold_back_what_the_tokens_of_a_step_have_left_out() -> None:
    scheduler = in_groups(Scheduler, 0.5)(*[50] * 20, seqs=100, budget=10 * PROMPT, cache=44)
    steps(scheduler, 2)
    assert scheduler.entered == [10, 1]


def test_a_prompt_that_is_cut_by_a_threshold_goes_on_in_the_next_step() -> None:
    class Thrifty(Scheduler):
        """It reads no more than half of a prompt in a step, as long_prefill_token_threshold."""

        def _read(self, request: Request, budget: int) -> int:
            read = min(budget, request.to_read, PROMPT // 2)
            request.to_read -= read
            return budget - read

    scheduler = in_groups(Thrifty, 0.5)(*[50] * 20)
    steps(scheduler, 3)
    assert scheduler.throttled == [False, False, True]
    assert {request.to_read for request in scheduler.running} == {0}


def test_a_prompt_that_is_cut_by_the_tokens_of_a_step_goes_on_in_the_next() -> None:
    scheduler = in_groups(Scheduler, 0.5)(*[50] * 20, seqs=2, budget=PROMPT + 1)
    steps(scheduler, 1)
    assert [request.to_read for request in scheduler.running] == [0, PROMPT - 1]
    steps(scheduler, 2)
    assert [request.to_read for request in scheduler.running] == [0, 0]
    assert scheduler.throttled == [False, False, True]


def test_an_engine_whose_cache_is_full_lets_requests_in_once_the_share_has_finished() -> None:
    scheduler = in_groups(Scheduler, 0.5)(*TWICE_AS_MANY, seqs=100, cache=PROMPT * 8)
    assert entered(scheduler) == [8, 4, 4]


def test_a_request_stays_out_of_some_steps_at_most() -> None:
    scheduler = in_groups(Scheduler, 0.5)(2, *[500] * 8)
    steps(scheduler, MOST_STEPS + 2)
    assert scheduler.entered == [8, *[0] * MOST_STEPS, 1]


def test_requests_that_wait_for_something_else_do_not_hold_others_back() -> None:
    class Picky(Scheduler):
        """Some requests wait although sequences and cache are free, as for another adapter."""

        def _has_room(self) -> bool:
            return len(self.running) < 2

    scheduler = in_groups(Picky, 0.5)(*LENGTHS)
    assert entered(scheduler) == [2, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "unlike",
    [
        {"parallel_config": SimpleNamespace(data_parallel_size=2)},
        {"parallel_config": SimpleNamespace(pipeline_parallel_size=2)},
        {"scheduler_config": SimpleNamespace(enable_chunked_prefill=False)},
        {"scheduler_config": None},
        {"connector": object()},
    ],
    ids=["data parallelism", "pipeline parallelism", "no chunked prefill", "unknown", "connector"],
)
def test_other_schedulers_let_requests_in_by_themselves(unlike: dict[str, Any]) -> None:
    class Other(Scheduler):
        def __init__(self, *waiting: int) -> None:
            super().__init__(*waiting)
            vars(self).update(unlike)

    assert entered(in_groups(Other, 0.5)(*TWICE_AS_MANY)) == [8, 1, 1, 1, 1, 1, 1, 1, 1]


def test_a_scheduler_without_the_throttle_is_left_unchanged() -> None:
    class Foreign:
        def schedule(self) -> None:
            """Schedule one step."""

    assert in_groups(Foreign, 0.5) is Foreign


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    share=st.floats(0.01, 0.5),
    seqs=st.integers(1, 12),
    budget=st.integers(PROMPT, 80),
)
def test_every_request_enters_and_a_group_is_never_late(
    lengths: list[int], share: float, seqs: int, budget: int
) -> None:
    budget += seqs
    grouped = in_groups(Scheduler, share)(*lengths, seqs=seqs, budget=budget)
    plain = Scheduler(*lengths, seqs=seqs, budget=budget)
    groups = entered(grouped)
    assert sum(groups) == len(lengths)
    assert len(groups) <= len(entered(plain))
    assert len(grouped.entered) <= len(plain.entered) + len(groups) * MOST_STEPS


class GroupedEngine(Engine):
    """The simulated engine with prefills in groups; counts its steps and those with prefills."""

    def __init__(self, seqs: int, blocks: int, share: float) -> None:
        super().__init__(seqs, blocks, batched=16_384)
        self.groups = Groups(share)
        self.steps = self.with_prefills = 0

    def step(self) -> tuple[float, list[Sequence]]:
        waiting, before = self.queue, len(self.queue)
        held = self.groups.hold(len(self.running))
        if held:
            self.queue = deque()
        took, over = super().step()
        if held:
            waiting.extendleft(reversed(self.queue))
            self.queue = waiting
        else:
            running = len(self.running) + len(over)
            self.groups.entered(running, full=bool(waiting) and running == self.seqs)
        self.steps += 1
        self.with_prefills += len(self.queue) < before
        return took, over


def test_admission_keeps_the_next_group_waiting_and_the_engine_nearly_full() -> None:
    engine = GroupedEngine(256, 20_000, 0.0625)
    admission = Admission(LimitsSettings(), engine.limits)
    run = Run(engine, texts(1), admission).until(30)
    assert engine.with_prefills <= 0.2 * engine.steps
    late = [stats.running for at, _, _, stats in run.ticks if at > 10]
    assert min(late) >= 0.9 * engine.seqs
    assert sum(late) / len(late) >= 0.95 * engine.seqs


@pytest.mark.parametrize(
    ("oversubscription", "least", "most"), [(1.0, 0.8, 1.0), (1.05, 0.2, 0.5), (1.1, 0.05, 0.2)]
)
def test_the_margin_of_admission_decides_how_many_steps_have_prefills(
    oversubscription: float, least: float, most: float
) -> None:
    engine = GroupedEngine(256, 20_000, 0.0625)
    limits = LimitsSettings(engine_oversubscription=oversubscription)
    Run(engine, texts(1), Admission(limits, engine.limits)).until(30)
    assert least <= engine.with_prefills / engine.steps <= most


@pytest.mark.parametrize(("seqs", "blocks"), [(8, 600), (17, 1_000), (64, 3_000), (256, 20_000)])
def test_where_steps_cost_the_same_groups_cost_a_twentieth_at_most(seqs: int, blocks: int) -> None:
    def pace(engine: Engine) -> float:
        admission = Admission(LimitsSettings(), engine.limits)
        return Run(engine, texts(1), admission).until(60).tokens_a_second(10)

    plain = pace(Engine(seqs, blocks, batched=16_384))
    assert pace(GroupedEngine(seqs, blocks, 0.0625)) >= 0.95 * plain
