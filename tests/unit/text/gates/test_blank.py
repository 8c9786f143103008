"""Tests of the gate `blank`."""

from __future__ import annotations

import pytest

from dragoman_text.gates import blank
from dragoman_text.verdicts import Candidate


@pytest.mark.parametrize("answer", ["", " \n", "...", "\u200b", "🙂", "12"])
def test_an_answer_without_letters_is_blank(answer: str) -> None:
    assert blank.find(Candidate("Hello", answer, "de"))


@pytest.mark.parametrize(("source", "answer"), [("Hello", "你"), ("12 %", ""), ("1st", "1º")])
def test_an_answer_with_letters_or_to_none_is_not_blank(source: str, answer: str) -> None:
    assert blank.find(Candidate(source, answer, "de")) is None
