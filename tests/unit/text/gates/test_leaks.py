"""Tests that an answer which repeats its prompt is found."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates.leaks import find
from dragoman_text.terms import Term
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

FRAME = "Translate this from English to German:"
CONTEXT = "A letter of a landlord to the tenants.\n市内の借主への大家の手紙である。"
TERMS = (Term("house", ("Gebäude", "Haus")),)
SOURCE = "The rent of the house goes up."
GERMAN = "Der Mietzins für das Gebäude steigt."


def is_found(answer: str, source: str = SOURCE) -> bool:
    return find(Candidate(source, answer, "de", terms=TERMS, prompt=(FRAME, CONTEXT))) is not None


@pytest.mark.parametrize(
    "answer",
    [
        f"{FRAME}\n{GERMAN}",
        f"A letter of a landlord to the  tenants. {GERMAN}",
        f"市内の借主への大家の手紙である。{GERMAN}",
        f"house -> Gebäude\n\n{GERMAN}",
        f'"House": "Haus"\n\n{GERMAN}',
        f"- house = Gebäude\n{GERMAN}",
    ],
)
def test_a_part_of_the_prompt_is_found(answer: str) -> None:
    assert is_found(answer)
    assert not is_found(answer, f"{SOURCE} {answer}")


@pytest.mark.parametrize("answer", [GERMAN, "A letter of a landlord to the tenants.", "house", ""])
def test_a_translation_is_not(answer: str) -> None:
    assert not is_found(answer)


@pytest.mark.parametrize("unit", ["house ", 'house""', "translate this from ", "house - "])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    is_found(text)
    find(Candidate("Hello", text, "de", prompt=(text,)))
    assert time.process_time() - started < LINEAR_S
