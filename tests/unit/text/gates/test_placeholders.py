"""Tests of the gate `placeholders`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import placeholders
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("Delete %s?", "Löschen?"),
        ("Delete %s?", "%s %s löschen?"),
        ("Delete %d files", "%s Dateien löschen"),
        ("Hello {name}!", "Hallo {Name}!"),
        ("Hello {{ name }}!", "Hallo {{name}}!"),
        ("Cost: ${price}", "Preis: {price}"),
        ("Used by %(user)s", "Von %(user) benutzt"),
        ("Moved {0} to {1}", "{0} verschoben"),
    ],
)
def test_a_changed_placeholder_is_a_defect(source: str, answer: str) -> None:
    assert placeholders.find(Candidate(source, answer, "de"))


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("%s must be set", "%s이어야 합니다"),
        ("%s to %s", "%2$s von %1$s"),
        ("Hello {name}!", "{name}さん、こんにちは"),
        ("Up to 100 % off", "Bis zu 100 %ige Ermäßigung"),
        ("5 % of it", "5 %der Menge"),
        ("100%% done", "100%% fertig"),
        ("plain", "{new}"),
    ],
)
def test_a_kept_placeholder_is_no_defect(source: str, answer: str) -> None:
    assert placeholders.find(Candidate(source, answer, "ko")) is None


def test_a_protected_literal_must_come_through_as_often() -> None:
    source = "Acme and Acme Cloud"
    protected = ("Acme", "Acme Cloud", "absent", "")
    kept = Candidate(source, "Acme und Acme Cloud", "de", protected=protected)
    assert placeholders.find(kept) is None
    for answer in ("Acme und Acme Wolke", "Acme Cloud", "Acme, Acme und Acme Cloud"):
        assert placeholders.find(Candidate(source, answer, "de", protected=protected))


def test_a_word_counts_only_as_a_whole_word_in_the_source_and_with_endings_in_the_answer() -> None:
    def found(source: str, answer: str, word: str) -> object:
        candidate = Candidate(source, answer, "fi", protected=(word,), words=(word,))
        return placeholders.find(candidate)

    assert found("Go is good, Good Go", "Go on hyvä, hyvä Go", "Go") is None
    assert found("Kafka is fast", "Kafkan nopeus", "Kafka") is None
    assert found("Go is good", "Se on hyvä", "Go")
    assert found("Go is good", "Go Go on hyvä", "Go")
    assert found("Good", "hyvä", "Go") is None


def test_a_literal_may_look_like_a_regular_expression() -> None:
    kept = Candidate("Use (a|b)* now", "Nutze (a|b)*", "de", protected=("(a|b)*",))
    assert placeholders.find(kept) is None


@pytest.mark.parametrize("unit", ["%", "{", "{{", "${", "%(a", "{a}", "%s", "%%", "{{{a}"])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    placeholders.find(Candidate(text, text[:-1], "de"))
    assert time.process_time() - started < LINEAR_S
