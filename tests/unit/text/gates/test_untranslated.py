"""Tests of source words that are left in an answer."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates.untranslated import source_words
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

SOURCE = (
    "The contract was signed in the morning by both parties. "
    "Nobody knew how long the negotiations about the price would last."
)
GERMAN = "Der Vertrag wurde am Morgen von beiden Parteien unterzeichnet."
GERMAN_SECOND = "Niemand wusste, wie lange die Verhandlungen über den Preis dauern würden."


@pytest.mark.parametrize(
    "answer",
    [
        f"{GERMAN} Nobody knew how long the negotiations about the price would last.",
        f"{GERMAN} Niemand wusste, how long the negotiations about the price would last.",
        f"The contract was signed in the morning by both parties. {GERMAN_SECOND}",
        f"{SOURCE}\n\n{GERMAN} {GERMAN_SECOND}",
        f"{GERMAN} {GERMAN_SECOND} ({SOURCE})",
        f"{GERMAN.upper()} NOBODY KNEW HOW LONG THE NEGOTIATIONS ABOUT THE PRICE WOULD LAST.",
    ],
)
def test_a_clause_of_the_source_in_the_answer_is_found(answer: str) -> None:
    assert source_words(Candidate(SOURCE, answer, "de", "en")) is not None


def test_a_clause_without_blanks_is_found() -> None:
    source = "彼は交渉がどのくらい続くのか知らなかったと言った。"
    assert source_words(Candidate(source, f"He said: {source}", "en", "ja")) is not None
    assert (
        source_words(Candidate(source, "He said 知らなかった (shiranakatta).", "en", "ja")) is None
    )


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (SOURCE, f"{GERMAN} {GERMAN_SECOND}"),
        ("She read the signed contract in the morning.", "Sie las „the signed contract in the“."),
        (
            'He calls himself "the artist previously known as Prince".',
            'Er nennt sich "the artist previously known as Prince".',
        ),
        (
            "the Agency of Science and of Art in Rome said",
            "die Agency of Science and of Art in Rome sagte",
        ),
        (
            "Sports are football, basketball, volleyball, water-polo, fencing, rugby.",
            "Sportarten: football, basketball, volleyball, water-polo, fencing, rugby.",
        ),
        (
            "Run `make the whole thing again and again now` please.",
            "Führen Sie `make the whole thing again and again now` aus.",
        ),
        ("la la la la la la la la he sang in the night", "la la la la la la la la sang er nachts"),
        ("", ""),
    ],
)
def test_names_quotations_lists_and_code_are_not_found(source: str, answer: str) -> None:
    assert source_words(Candidate(source, answer, "de", "en")) is None


def test_protected_words_are_not_found() -> None:
    literal = "how long the negotiations about the price"
    candidate = Candidate(
        SOURCE, f"{GERMAN} Niemand weiß, {literal} …", "de", "en", protected=(literal,)
    )
    assert source_words(candidate) is None


def test_a_line_of_a_list_that_is_left_is_found() -> None:
    source = "- Close the window.\n- Open the door.\n- Call New York"
    answer = "- Schließ das Fenster.\n- Open the door.\n- Call New York"
    assert source_words(Candidate(source, answer, "de", "en")) == "- Open the door."
    names = "- Schließ das Fenster.\n- Öffne die Tür.\n- Call New York"
    assert source_words(Candidate(source, names, "de", "en")) is None


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a ",
        "ab cd ef gh ij kl ",
        "漢",
        "漢字かな交じり文の例",
        "'a b c d e f' ",
        "\u0301 ",
        "- ",
    ],
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    source_words(Candidate(text, text[1:], "de", "en", protected=tuple("abcdefgh")))
    source_words(
        Candidate(f"one two three four five {text}", f"five four three two one {text}", "de", "en")
    )
    assert time.process_time() - started < LINEAR_S
