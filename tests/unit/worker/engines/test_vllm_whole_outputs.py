"""Tests of the answers that leave vLLM's engine process whole, with stand-ins of its classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.engines.vllm.patches.whole_outputs import (
    sending_whole,
    share_times,
    sharing_times,
)

FINAL, DELTA = "final", "delta"
Step = Mapping[str, Sequence[int]]


def params(**others: Any) -> SimpleNamespace:
    wanted = {"output_kind": FINAL, "detokenize": False, "logprobs": None, "prompt_logprobs": None}
    return SimpleNamespace(**wanted | others)


class Scheduler:
    """The part of vLLM's scheduler that is extended: one step appends tokens and may finish."""

    def __init__(self, **kinds: SimpleNamespace) -> None:
        self.requests = {
            name: SimpleNamespace(sampling_params=kind, output_token_ids=[])
            for name, kind in kinds.items()
        }

    def update_from_output(
        self, step: Step, finished: Sequence[str] = (), events: Sequence[str] = ()
    ) -> dict[int, Any]:
        outputs = []
        for name, tokens in step.items():
            self.requests[name].output_token_ids += tokens
            output = SimpleNamespace(request_id=name, new_token_ids=list(tokens))
            output.finish_reason = "stop" if name in finished else None
            output.events = ["preempted"] if name in events else None
            outputs.append(output)
        for name in finished:
            self.abort(name)
        return {0: SimpleNamespace(outputs=outputs, scheduler_stats="stats")}

    def abort(self, name: str) -> None:
        del self.requests[name]


def made(**kinds: SimpleNamespace) -> Any:
    return sending_whole(Scheduler, FINAL, SimpleNamespace)(**kinds)


def sent(scheduler: Any, step: Step, **ends: Sequence[str]) -> dict[str, list[int]]:
    """Return the tokens that one step sends, by request."""
    outputs = scheduler.update_from_output(step, **ends)[0].outputs
    return {output.request_id: output.new_token_ids for output in outputs}


def test_the_first_output_is_sent_and_the_last_has_all_tokens_since() -> None:
    scheduler = made(a=params(), b=params())
    assert sent(scheduler, {"a": [1], "b": [7, 8]}) == {"a": [1], "b": [7, 8]}
    assert sent(scheduler, {"a": [2], "b": [9]}) == {}
    assert sent(scheduler, {"a": [3], "b": [10]}, finished=["a"]) == {"a": [2, 3]}
    assert sent(scheduler, {"b": []}, finished=["b"]) == {"b": [9, 10]}


def test_a_request_of_one_token_is_sent_as_it_is() -> None:
    assert sent(made(a=params()), {"a": [1]}, finished=["a"]) == {"a": [1]}


def test_the_statistics_of_a_step_without_outputs_are_sent() -> None:
    scheduler = made(a=params())
    sent(scheduler, {"a": [1]})
    assert scheduler.update_from_output({"a": [2]})[0].scheduler_stats == "stats"


def test_an_empty_message_every_few_seconds_shows_that_steps_without_outputs_go_on() -> None:
    class Prefilling:
        def update_from_output(self) -> dict[int, Any]:
            return {}

    seconds = iter(range(1_000))
    scheduler: Any = sending_whole(Prefilling, FINAL, SimpleNamespace, lambda: next(seconds))()
    signs = [bool(scheduler.update_from_output()) for _ in range(300)]
    assert signs == ([False] * 4 + [True]) * 60


@pytest.mark.parametrize(
    "streamed",
    [
        params(output_kind=DELTA),
        params(detokenize=True),
        params(logprobs=1),
        params(prompt_logprobs=1),
        None,
    ],
)
def test_a_request_that_needs_each_token_gets_each_token(streamed: Any) -> None:
    scheduler = made(a=streamed)
    for tokens in ([1], [2], [3]):
        assert sent(scheduler, {"a": tokens}) == {"a": tokens}


def test_a_preemption_is_sent_without_tokens() -> None:
    scheduler = made(a=params())
    sent(scheduler, {"a": [1]})
    assert sent(scheduler, {"a": [2]}, events=["a"]) == {"a": []}
    assert sent(scheduler, {"a": [3]}, finished=["a"]) == {"a": [2, 3]}


def test_aborted_requests_are_forgotten() -> None:
    scheduler = made(a=params(), b=params())
    sent(scheduler, {"a": [1], "b": [1]})
    scheduler.abort("a")
    sent(scheduler, {"b": [2]})
    assert set(scheduler._whole._begun) == {"b"}


@given(st.lists(st.lists(st.integers(), max_size=3), min_size=1, max_size=12))
def test_the_outputs_together_are_the_tokens_that_were_made(steps: list[list[int]]) -> None:
    scheduler, received = made(a=params()), list[int]()
    for tokens in steps[:-1]:
        received += sent(scheduler, {"a": tokens}).get("a", [])
    received += sent(scheduler, {"a": steps[-1]}, finished=["a"])["a"]
    assert received == [token for tokens in steps for token in tokens]


def test_a_scheduler_without_known_requests_sends_every_token() -> None:
    class Foreign:
        def update_from_output(self, *outputs: Any) -> dict[int, Any]:
            return {0: SimpleNamespace(outputs=outputs)}

    scheduler = sending_whole(Foreign, FINAL, SimpleNamespace)()
    for tokens in ([1], [2]):
        output = SimpleNamespace(
            request_id="a", new_token_ids=tokens, finish_reason=None, events=None
        )
        assert scheduler.update_from_output(output)[0].outputs == [output]


class Stats:
    """The part of vLLM's statistics that is extended."""

    def __init__(self) -> None:
        self.inter_token_latencies_iter: list[float] = []

    def update_from_output(
        self, output: Any, at: float, is_prefilling: bool, request: Any, lora: Any
    ) -> None:
        if not is_prefilling:
            self.inter_token_latencies_iter.append(at - request.last_token_ts)
        request.last_token_ts = at


def times(*outputs: tuple[float, int]) -> list[float]:
    """Return the times between tokens of outputs, each of a time and a number of tokens."""
    stats, request = sharing_times(Stats)(), SimpleNamespace(last_token_ts=0.0)
    for number, (at, count) in enumerate(outputs):
        output = SimpleNamespace(new_token_ids=[0] * count)
        stats.update_from_output(output, at, number == 0, request, None)
    found: list[float] = stats.inter_token_latencies_iter
    return found


def test_the_time_of_several_tokens_is_divided_among_them() -> None:
    assert times((1.0, 1), (5.0, 4)) == [1.0] * 4


def test_one_token_per_output_is_measured_as_by_vllm() -> None:
    assert times((1.0, 1), (2.0, 1), (4.0, 1)) == [1.0, 2.0]


def test_an_output_without_tokens_counts_to_the_next_ones() -> None:
    assert times((1.0, 1), (2.0, 0), (5.0, 4)) == [1.0] * 4


def test_several_tokens_of_the_first_output_have_no_time_between_them() -> None:
    assert times((1.0, 3), (2.0, 1)) == [1.0]


def test_times_are_shared_once() -> None:
    module = SimpleNamespace(IterationStats=Stats)
    share_times(module)
    shared = module.IterationStats
    share_times(module)
    assert module.IterationStats is shared
    assert issubclass(shared, Stats)
