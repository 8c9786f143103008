"""Tests of the gate `chatter`, and that cleaning and the gate agree."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_text.gates import chatter
from dragoman_text.verdicts import Candidate
from dragoman_worker.prompts.cleaning import cleaned
from support.pace import LINEAR_S


def found(source: str, answer: str, target: str = "de") -> str | None:
    """Return `fail`, `slight` or None."""
    defect = chatter.find(Candidate(source, cleaned(answer, source), target))
    return None if defect is None else "slight" if defect.slight else "fail"


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("Note: bring water.", "Here is the translation: Hinweis: Wasser mitbringen."),
        ("Hello", "<think>The user wants"),
        ("Hello", "analysisWe need to translate this to German. It says hello"),
        ("Hello", "Hallo\n\nNote: I kept the tone informal."),
        ("Hello", "Hallo\n\n(Anmerkung: informell)"),
        ("Hello", "Hallo\nNote: informal"),
        ("Hello", "Hallo\n\nLet me know if you need anything else!"),
        ("Hello", "Hallo ```"),
        ("Hello", "I'm sorry, but I can't assist with that request."),
        ("Hello", "As an AI language model, I do not translate."),
        ("Hello", "Translate the following text into German: Hallo"),
        ("Hello", "Hallo <|channel|>commentary"),
    ],
)
def test_what_cleaning_leaves_of_chatter_is_a_defect(source: str, answer: str) -> None:
    assert found(source, answer) == "fail"


@pytest.mark.parametrize(
    ("source", "answer", "target"),
    [
        ("Hinweis: Wasser mitbringen.", "Note: bring water.", "en"),
        ("Hier ist die Übersetzung: ein Jahr.", "Here is the translation: a year.", "en"),
        ("Here is the translation: a year.", "Hier ist die Übersetzung: ein Jahr.", "de"),
        ("Say <think>hm</think>", "Sag <think>hm</think>", "de"),
        ("analysisX marks assistantfinal", "analysisX bedeutet assistantfinal", "de"),
        ("One.\n\nNote: two.", "Eins.\n\nHinweis: zwei.", "de"),
        ("Translate the following text", "Translate the following text übersetzen", "de"),
        ("Use ```make```", "Nutze ```make```", "de"),
        ("Ich kann dir nicht helfen.", "I can't help you.", "en"),
        ("thought\nprovoking", "thought\nprovoking", "fr"),
        ("assistantfinal", "assistantfinal", "de"),
    ],
)
def test_what_the_source_has_as_well_is_no_defect(source: str, answer: str, target: str) -> None:
    assert cleaned(answer, source) == answer
    assert found(source, answer, target) is None


@pytest.mark.parametrize(
    "answer",
    [
        "**Translation:**\n\nDer Vertrag wurde am Morgen unterzeichnet.",
        '{"translation": "Der Vertrag wurde am Morgen unterzeichnet."}',
        "<answer>Der Vertrag wurde am Morgen unterzeichnet.</answer>",
        "[THINK]Hm.[/THINK]Der Vertrag wurde am Morgen unterzeichnet.",
    ],
)
def test_a_wrapper_is_removed_and_fails_where_it_was_not(answer: str) -> None:
    source = "The contract was signed in the morning."
    assert cleaned(answer, source) == "Der Vertrag wurde am Morgen unterzeichnet."
    assert found(source, answer) is None
    defect = chatter.find(Candidate(source, answer, "de", "en"))
    assert defect is not None
    assert not defect.slight


def test_a_refusal_may_be_the_translation_of_a_refusal() -> None:
    assert found("Désolé, je ne peux pas traduire.", "I'm sorry, I can't translate.", "en") is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("analysisWe need German.assistantfinalHallo!", "Hallo!"),
        ("assistantfinalHallo!", "Hallo!"),
        ("<|channel|>analysis<|message|>Hm<|end|><|channel|>final<|message|>Hallo!", "Hallo!"),
        ("thought\nHallo!", "Hallo!"),
        ("<|channel>thought\n<channel|>Hallo!", "Hallo!"),
    ],
)
def test_reasoning_with_an_end_is_removed(answer: str, expected: str) -> None:
    assert cleaned(answer, "Hello!") == expected
    assert found("Hello!", answer) is None


@given(st.text(max_size=200))
def test_a_copy_of_the_source_has_no_chatter(text: str) -> None:
    assert chatter.find(Candidate(text, text, "de")) is None


@pytest.mark.parametrize(
    "unit",
    ["<think>", "\n\n", "Note: ", "I'm sorry ", "here is ", "`", "assistantfinal", "thought\n"],
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    chatter.find(Candidate("Hello", text, "de"))
    cleaned(text, "Hello")
    assert time.process_time() - started < LINEAR_S
