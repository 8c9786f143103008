"""Tests of the gate `copy`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import copy
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

SENTENCE = "The meeting begins at nine in the large room."


def test_a_copied_sentence_is_a_defect() -> None:
    defect = copy.find(Candidate(SENTENCE, SENTENCE.upper(), "de", "en"))
    assert defect is not None
    assert not defect.slight


def test_a_nearly_copied_sentence_is_a_defect() -> None:
    assert copy.find(Candidate(SENTENCE, SENTENCE.replace("large", "große"), "de", "en"))


def test_a_copied_japanese_sentence_is_a_defect() -> None:
    text = "会議は九時に始まります。"
    assert copy.find(Candidate(text, text, "en", "ja"))


@pytest.mark.parametrize(
    "text",
    [
        "doi:10.1000/182 and 10.1000/183",
        "International Business Machines Corporation",
        "ARMONK, NEW YORK, UNITED STATES",
        "git stash push --include-untracked",
        "https://example.com/a/very/long/path/to/something",
        "Save file",
    ],
)
def test_names_codes_and_labels_may_be_copied(text: str) -> None:
    assert copy.find(Candidate(text, text, "de", "en")) is None


@pytest.mark.parametrize(("source", "target"), [("ms", "id"), ("nb", "da"), ("en-GB", "en-US")])
def test_languages_of_one_family_may_look_alike(source: str, target: str) -> None:
    assert copy.find(Candidate(SENTENCE, SENTENCE, target, source)) is None


def test_a_copy_of_an_unknown_language_is_slight() -> None:
    defect = copy.find(Candidate(SENTENCE, SENTENCE, "de"))
    assert defect is not None
    assert defect.slight


def test_protected_literals_do_not_make_a_copy() -> None:
    literal = "the quick brown fox jumps over the lazy dog again"
    candidate = Candidate(f"See {literal}", f"Siehe {literal}", "de", "en", protected=(literal,))
    assert copy.find(candidate) is None


@pytest.mark.parametrize("unit", ["a", "word ", "ab cd ef gh "])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    copy.find(Candidate(text, text[1:], "de", "en", protected=tuple("abcdefgh")))
    assert time.process_time() - started < LINEAR_S
