"""Tests that glossary terms are found as whole words only, and of the formality's register."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.prompts.base import PromptInput
from dragoman_worker.prompts.steering import occurs, register, untranslated


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("cat", "The cat sleeps."),
        ("Cat", "CAT!"),
        ("cat", "A (cat)."),
        ("cat", "concatenate the cat"),
        ("ice cream", "I like Ice Cream."),
        ("C++", "We use C++, not C."),
        (".NET", "Made with .NET today"),
        ("straße", "Die STRASSE ist lang"),
        ("café", "Un cafe\u0301 noir"),
        ("サーバー", "このサーバーは速い"),
        ("服务器", "新服务器很快"),
        ("서버", "서버는 빠르다"),
        ("Kafka", "Kafkaは速い"),
        ("แมว", "ฉันรักแมวมาก"),
        (" cat ", "The cat sleeps."),
    ],
)
def test_a_term_is_found(term: str, text: str) -> None:
    assert occurs(term, text)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("cat", "concatenate"),
        ("cat", "cats"),
        ("ice", "service"),
        ("cat", "cat_name"),
        ("v1", "v12"),
        ("dog", "The cat sleeps."),
        ("", "The cat sleeps."),
        ("  ", "The cat sleeps."),
        ("cat", ""),
        ("он", "Она поёт"),
    ],
)
def test_a_part_of_a_word_is_not_the_term(term: str, text: str) -> None:
    assert not occurs(term, text)


@given(st.text(max_size=30), st.text(max_size=200))
def test_searching_any_term_terminates(term: str, text: str) -> None:
    assert occurs(term, text) in {True, False}


@given(st.text(alphabet=st.characters(categories=("L", "N")), min_size=1, max_size=20))
def test_a_term_is_found_between_spaces(term: str) -> None:
    assert occurs(term, f"one {term} two")


def test_only_words_that_occur_are_not_to_be_translated() -> None:
    segment = PromptInput("Kafka and the cat.", "de", do_not_translate=("Redis", "Kafka"))
    assert untranslated(segment) == ("Kafka",)


@pytest.mark.parametrize(
    ("formality", "expected"),
    [
        ("default", None),
        ("more", "formal"),
        ("prefer_more", "formal"),
        ("less", "informal"),
        ("prefer_less", "informal"),
    ],
)
def test_formality_is_a_register(formality: str, expected: str | None) -> None:
    assert register(PromptInput("Hi", "de", formality=formality)) == expected  # type: ignore[arg-type]
