"""Tests of the gate `blank`."""

from __future__ import annotations

import pytest

from dragoman_text.gates import blank
from dragoman_text.verdicts import Candidate


@pytest.mark.parametrize("answer", ["", " \n", "...", "\u200b", "🙂", "12"])
def test_an_answer_without_letters_is_blank(answer: str) -> None:
    assert blank.find(Candidate("Hello", answer, "de"))


@pytest.mark.parametrize(
    ("source", "answer"), [("Hello", "你"), ("12 %", ""), ("1st", "1º"), ("{}th", "{}.")]
)
def test_an_answer_with_letters_or_to_none_is_not_blank(source: str, answer: str) -> None:
    assert blank.find(Candidate(source, answer, "de")) is None


@pytest.mark.parametrize(
    ("source", "answer"), [("half past two", "14:30"), ("twenty percent", "20 %"), ("One", "1")]
)
def test_digits_for_a_few_words_are_slight(source: str, answer: str) -> None:
    found = blank.find(Candidate(source, answer, "de"))
    assert found
    assert found.slight


def test_digits_for_a_sentence_are_no_translation() -> None:
    found = blank.find(Candidate("The contract was signed in the morning.", "12", "de"))
    assert found
    assert not found.slight
