"""Tests of the gate `loop`."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_text.gates import loop
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

PROSE = "The meeting begins at nine in the large room on the second floor of the building."


@pytest.mark.parametrize(
    "answer",
    [
        "Das ist sehr " + "sehr " * 40,
        "Hallo" + "!" * 30,
        "Er sagte: " + "die Sache, die ich meine, " * 9,
        "おはよう" * 12,
        "Er ging. " + "Sie kam und nahm das Buch vom Tisch in der Halle. " * 4,
        "今日は天気がいいから散歩に行きましょうと彼は言った。" * 3,
    ],
)
def test_an_answer_that_repeats_itself_is_a_loop(answer: str) -> None:
    assert loop.find(Candidate(PROSE, answer, "de"))


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("| --- | --- |\n" * 12, "| --- | --- |\n" * 12),
        ("Ha " * 10, "哈" * 10),
        ("." * 40, "." * 60),
        ("お前はもう死んだ筈だが……。", "你现在应该已经死了........"),
        ("Row row row row your boat", "Rudere rudere rudere rudere dein Boot"),
        ("bye bye bye bye bye", "Tschüss, tschüss, tschüss, tschüss, tschüss"),
        (PROSE, "Die Sitzung beginnt um neun im großen Saal im zweiten Stock des Gebäudes."),
        ("Yes. " * 10, "是的。" * 10),
    ],
)
def test_a_repetition_of_the_source_may_be_translated(source: str, answer: str) -> None:
    assert loop.find(Candidate(source, answer, "de")) is None


def test_a_repetition_much_longer_than_in_the_source_is_a_loop() -> None:
    assert loop.find(Candidate("Ha ha ha ha ha!", "Ha " * 200, "de"))
    assert loop.find(Candidate("Wait......", "Warte" + "." * 100, "de"))
    assert loop.find(Candidate("Wait......", "Warte" + "." * 10, "de")) is None


@given(
    before=st.text(alphabet="abcdef ", max_size=40),
    unit=st.text(alphabet="xyz", min_size=1, max_size=loop.LONGEST_UNIT),
    after=st.text(alphabet="abcdef ", max_size=40),
)
def test_every_unit_repeated_nine_times_is_found_wherever_it_is(
    before: str, unit: str, after: str
) -> None:
    assert loop.longest_loop(before + unit * 9 + after) is not None


def test_six_repeats_are_not_a_loop() -> None:
    assert loop.longest_loop("abcdefg" * 6) is None


@pytest.mark.parametrize(
    "unit", ["a", "ab", "x" * 59 + "y", ("abcdefghijklmnopqrstuvw" * 7) + "!", "aaaaaab", " \n"]
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    loop.find(Candidate(text[:100], text, "de"))
    assert time.process_time() - started < LINEAR_S
