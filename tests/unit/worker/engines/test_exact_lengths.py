"""Exact lengths are the request's, or a ratio to the source."""

from __future__ import annotations

import pytest

from dragoman_worker.engines.exact_lengths import exact_length
from dragoman_worker.ports import Decoding, GenerationRequest


@pytest.mark.parametrize(
    ("setting", "characters", "tokens"),
    [
        (False, 100, None),
        (True, 100, 40),
        (0.3, 100, 30),
        (0.3, 1_000, 40),  # no more than the request allows
        (0.3, 1, 1),
        (1.0, 20, 20),
    ],
)
def test_a_length_is_all_that_the_request_allows_or_per_character(
    setting: float, characters: int, tokens: int | None
) -> None:
    request = GenerationRequest("r", [1], Decoding(40), "a" * characters, "de", 1)
    assert exact_length(setting, request) == tokens
