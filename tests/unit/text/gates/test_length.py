"""Tests of the gate `length`."""

from __future__ import annotations

import math

import pytest

from dragoman_text.gates import length
from dragoman_text.verdicts import Candidate

SOURCE = "word " * 40


@pytest.mark.parametrize(
    ("times", "slight"),
    [(0.2, False), (0.45, True), (0.8, None), (1.5, None), (2.5, True), (4, False)],
)
def test_the_ratio_to_the_median_of_the_pair_decides(times: float, slight: bool | None) -> None:
    words = round(40 * times * length.MEDIANS["de"])
    defect = length.find(Candidate(SOURCE, "wort " * words, "de", "en"))
    assert (None if defect is None else defect.slight) == slight


@pytest.mark.parametrize(("source", "slight"), [("word " * 14, None), ("word " * 62, True)])
def test_a_long_translation_varies_less(source: str, slight: bool | None) -> None:
    defect = length.find(Candidate(source, source[: round(len(source) * 0.68)], "de", "en"))
    assert (None if defect is None else defect.slight) == slight


def test_a_text_without_end_mark_may_not_be_as_short() -> None:
    source, answer = "word " * 15, "wort " * 9
    assert length.find(Candidate(source, answer, "de", "en")) is not None
    assert length.find(Candidate(f"{source}.", f"{answer}.", "de", "en")) is None


def test_japanese_is_expected_to_be_half_as_long_and_english_from_it_twice() -> None:
    assert length.find(Candidate(SOURCE, "これは日本語。" * 14, "ja", "en")) is None
    assert length.find(Candidate("これは日本語。" * 14, SOURCE, "en", "ja")) is None
    assert length.find(Candidate("これは日本語。" * 14, SOURCE, "en")) is None


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (
            "#GardenLife #Roses #SpringPlants #Tomatoes",
            "#GardenLife #Roses #SpringPlants #Tomatoes",
        ),
        (
            "Singer: Adele Adkins, Beyonce Knowles, Taylor Swift, Rihanna Fenty, Lady Gaga",
            "歌手：Adele Adkins、Beyonce Knowles、Taylor Swift、Rihanna Fenty、Lady Gaga",
        ),
    ],
)
def test_names_are_as_long_in_chinese(source: str, answer: str) -> None:
    assert length.find(Candidate(source, answer, "zh-Hans", "en")) is None
    assert length.find(Candidate(answer, source, "en", "zh-Hans")) is None


def test_names_alone_have_a_length_too() -> None:
    assert length.find(Candidate("Qt, KDE", "Qt KDE", "zh-Hans", "en")) is None
    assert length.distance(Candidate("Qt", "Qt。", "zh-Hans", "en")) >= 0.0


def test_short_sources_may_have_sixty_characters_more() -> None:
    assert length.find(Candidate("Save", "Den Inhalt des Dokuments speichern", "de", "en")) is None
    assert length.find(Candidate("Save", "Speichern und " * 10, "de", "en"))


@pytest.mark.parametrize(("source", "answer"), [("", ""), ("%s", "x"), ("12", ""), ("a", "")])
def test_texts_without_prose_are_not_judged(source: str, answer: str) -> None:
    assert length.find(Candidate(source, answer, "de", "en")) is None
    assert length.distance(Candidate(source, answer, "de", "en")) == 0.0


def test_the_distance_is_symmetric() -> None:
    median = length.MEDIANS["de"]
    for times in (0.5, 1.0, 2.0):
        candidate = Candidate("word" * 100, "wort" * round(100 * times * median), "de", "en")
        assert length.distance(candidate) == pytest.approx(abs(math.log(times)), abs=0.01)
