"""Tests of the gates `numbers`, `verbatim`, `paragraphs` and `max_chars`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import max_chars, numbers, paragraphs, verbatim
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("It costs 1,250 dollars", "Es kostet 1.205 Dollar"),
        ("In 2024", "Im Jahr 2042"),
        ("From 10 to 25", "Von 10 bis"),
        ("From 25 to 25", "Von 25 bis"),
        ("At 14:30", "At 3:30"),
        ("14 dogs", "2 Hunde"),
        ("At 16:00", "At 5 p.m."),
        ("10 dogs", "ten dogs"),
        ("11 dogs", "Elfenbein"),
        ("30 minutes of video", "Videos und media"),
        ("30 dogs", "half"),
        ("It lent 40,000 books", "Sie verlieh 400.000 Bücher"),
        ("It lent 1,100 books", "Sie verlieh 1.100.000 Bücher"),
        ("7.5 percent", "75 Prozent"),
        ("3 dogs", "7 Hunde"),
        ("3 dogs", "30 Hunde"),
        ("10 miles", "19 km"),
        ("On 10/05/2024", "Am 11.05.2024"),
        ("6億4900万", "640 million"),
    ],
)
def test_a_missing_number_is_slight(source: str, answer: str) -> None:
    defect = numbers.find(Candidate(source, answer, "de"))
    assert defect is not None
    assert defect.slight


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("It costs 1,250.50 dollars", "Es kostet 1250,50 Dollar"),
        ("1,000,000 people", "1 000 000 de personnes"),
        ("In 2024", "عام ٢٠٢٤"),
        ("13:45", "13h45"),
        ("5 dogs", "fünf Hunde"),
        ("%10s and {20}", "%10s und {20}"),
        ("In 2024", "２０２４年"),
        ("Bis 14:30 Uhr", "By 2:30"),
        ("Avant 17 h", "Before 5"),
        ("１９時までに", "By 7:00 p.m."),
        ("The 11:00 train", "１１時発の電車"),
        ("At 16:00", "At 4 p.m."),
        ("10 dogs", "Zehn Hunde"),
        ("At 2:30", "Um halb drei"),
        ("50 %", "fünfzig Prozent"),
        ("1.5 million people", "1.500.000 Menschen"),
        ("2.25 billion", "2.250 milions"),
        ("6億4900万", "649 million"),
        ("1만 2,500원", "12,500 won"),
        ("2.5 लाख रुपये", "250,000 rupees"),
        ("10 million rupees", "1 करोड़ रुपये"),
        ("40,000人", "4万人"),
        ("16,000 people", "1 万 6 千人"),
        ("In the 19th century", "Al XIX segle"),
        ("10 miles", "16 km"),
        ("80 degrees", "27 Grad"),
        ("In the '90s", "In den 1990ern"),
        ("26,750 dollars", "26, 750 Dollar"),
        ("10,000", "۱۰،۰۰۰"),
        ("10,00,000", "1,000,000"),
        ("At 5.30 p.m.", "Um 17.30 Uhr"),
        ("4 p.m.", "16 Uhr"),
        ("3 dogs", "drei Hunde"),
        ("three dogs", "3 Hunde"),
        ("Version 3.11.4", "Version 3.11.4"),
    ],
)
def test_a_number_may_have_another_spelling(source: str, answer: str) -> None:
    assert numbers.find(Candidate(source, answer, "de")) is None


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("20 people", "二十人"),
        ("In 1998", "一九九八年"),
        ("110 people", "一百一十人"),
    ],
)
def test_a_number_may_be_written_in_chinese(source: str, answer: str) -> None:
    assert numbers.find(Candidate(source, answer, "zh-Hans")) is None


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("See https://example.com/a", "Siehe https://example.com/b"),
        ("Mail a@example.com", "Schreibe an b@example.com"),
        ("Run `make`", "Starte"),
        ("a&nbsp;b", "a b"),
    ],
)
def test_a_lost_link_address_or_code_is_slight(source: str, answer: str) -> None:
    defect = verbatim.find(Candidate(source, answer, "de"))
    assert defect is not None
    assert defect.slight


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("See https://example.com/a.", "Siehe https://example.com/a"),
        ("https://example.com/a を見る", "https://example.com/aを見る"),
        ("Run `make`", "Starte „make“"),
    ],
)
def test_a_kept_link_or_code_is_no_defect(source: str, answer: str) -> None:
    assert verbatim.find(Candidate(source, answer, "de")) is None


@pytest.mark.parametrize(
    ("source", "answer", "slight"),
    [
        ("a\n\nb\n\nc", "a", False),
        ("a\n\nb", "a b", True),
        ("a\n\nb", "a\n\nb\n\nc", True),
        ("a\n \t\nb", "a\n\n\n\nb\n", None),
        ("a\nb", "a b", None),
        ("Apples\nPears\nMilk", "Äpfel Birnen\nMilch", True),
        ("- one\n- two\n- three", "- eins\n- drei", True),
        ("- one\n- two\n- three", "- eins\n- zwei\n- drei\n", None),
        (f"{'word ' * 14}\n{'word ' * 14}\nend.", "Wort " * 29, None),
        ("a", "a\n\nb", None),
    ],
)
def test_paragraphs_are_counted(source: str, answer: str, slight: bool | None) -> None:
    defect = paragraphs.find(Candidate(source, answer, "de"))
    assert (None if defect is None else defect.slight) == slight


def test_max_chars_counts_code_points() -> None:
    assert max_chars.find(Candidate("x", "👍" * 3, "de", max_chars=3)) is None
    assert max_chars.find(Candidate("x", "👍" * 4, "de", max_chars=3))
    assert max_chars.find(Candidate("x", "x" * 999, "de")) is None


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "1.",
        "12 ",
        "1万",
        "1 000 ",
        "1, 234",
        "\n",
        "\n\n",
        "`",
        "a@b.c ",
        "&amp;",
        "http://a ",
    ],
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    candidate = Candidate(text, text[1::2], "de")
    started = time.process_time()
    for gate in (numbers, verbatim, paragraphs):
        gate.find(candidate)
    assert time.process_time() - started < LINEAR_S


def test_many_different_numbers_take_linear_time() -> None:
    source = " ".join(map(str, range(10_000, 30_000)))
    started = time.process_time()
    assert numbers.find(Candidate(source, "1" * 131_072, "de")) is not None
    assert time.process_time() - started < LINEAR_S
