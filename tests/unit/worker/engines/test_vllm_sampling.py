"""Tests that a translation may repeat what its source repeats, and no more than that."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.engines.vllm.sampling import (
    LEAST_REPETITIONS,
    allowed_repetitions,
    longest_repetition,
    sampling_params,
)
from dragoman_worker.ports import Decoding


@pytest.mark.parametrize(
    ("source", "repeated"),
    [
        ("|" + "---|" * 10, 10),
        ("|" + " |" * 12, 12),
        ("Chapter 1 " + ". " * 30 + "7", 30),
        ("1.000.000.000 Euro", 9),
        ("1 000 000 000 euros", 9),
        ("Ha ha " * 10, 10),
        ("😀" * 10, 10),
        ("To be continued………", 9),
        ("| a | a | b |\n" * 9, 9),
        ("哈" * 10, 10),
    ],
)
def test_what_the_source_repeats_is_no_loop(source: str, repeated: int) -> None:
    assert allowed_repetitions(source) >= 2 * repeated


@pytest.mark.parametrize(
    "source", ["", "a", "The cat sleeps.", "www.example.com", "Well...", "No, no, no!", "1,000"]
)
def test_an_ordinary_source_leaves_the_threshold_alone(source: str) -> None:
    assert allowed_repetitions(source) == LEAST_REPETITIONS


@given(st.text(alphabet="ab…\0😀", max_size=40), st.integers(1, 6))
def test_repetitions_are_counted_exactly(unit: str, times: int) -> None:
    text = unit * times
    assert longest_repetition(text) == counted(text)


def counted(text: str) -> int:
    """Count as the definition says: in UTF-16, or in characters where all are Latin-1."""
    latin = all(character < "\u0100" for character in text)
    data = text.encode("latin-1" if latin else "utf-16-le")
    width = 1 if latin else 2
    units = [data[at : at + width] for at in range(0, len(data), width)]
    best = 1
    for period in range(1, 97):
        run = 0
        for at in range(period, len(units)):
            run = run + 1 if units[at] == units[at - period] else 0
            best = max(best, 1 + run // period)
    return best if best >= 4 else 1


@pytest.mark.parametrize(
    "text",
    [
        "a" * 131_072,
        "ab" * 65_536,
        ("a" * 95 + "b") * 1_365,
        "…" + "ab" * 65_535,
        "".join("ab" * times + "x" for times in range(360)),
        "1.0" * 43_690,
    ],
)
def test_128_kib_of_the_worst_kind_take_a_fraction_of_a_second(text: str) -> None:
    begin = time.thread_time()
    allowed_repetitions(text)
    assert time.thread_time() - begin < 2  # measured: 0.1 s; an algorithm of n² would take minutes


def test_the_threshold_reaches_vllm_and_patterns_have_at_most_16_tokens() -> None:
    module: Any = SimpleNamespace(
        SamplingParams=SimpleNamespace,
        RequestOutputKind=SimpleNamespace(FINAL_ONLY="final"),
        RepetitionDetectionParams=SimpleNamespace,
    )
    params = sampling_params(module, Decoding(8, presence_penalty=1.5), repetitions=30)
    assert params.repetition_detection.min_count == 30
    assert params.repetition_detection.max_pattern_size == 16
    assert params.presence_penalty == 1.5
    exact = sampling_params(module, Decoding(8), repetitions=30, exact=8)
    assert exact.repetition_detection is None
