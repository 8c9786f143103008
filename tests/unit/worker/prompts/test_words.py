"""Tests that terms are found as whole words, in linear time for hostile terms and texts."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.prompts.steering import occurs

TEXTS = st.text(st.sampled_from("aA b_-ßẞé\u0301\0.漢サ서แ1²"), max_size=12)
WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


def by_definition(term: str, text: str) -> bool:
    """Check every occurrence by the characters on both sides of its two ends."""
    wanted, folded = _folded(term.strip()), _folded(text)
    places = range(len(folded) - len(wanted) + 1) if wanted else ()
    return any(
        folded.startswith(wanted, place)
        and _edge(folded, place)
        and _edge(folded, place + len(wanted))
        for place in places
    )


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _edge(text: str, place: int) -> bool:
    if place in {0, len(text)}:
        return True
    return not (_inside_word(text[place - 1]) and _inside_word(text[place]))


def _inside_word(character: str) -> bool:
    if WITHOUT_SPACES.match(character):
        return False
    return unicodedata.category(character)[0] in "LMN" or character == "_"


@given(TEXTS, TEXTS)
def test_a_term_occurs_where_it_is_between_two_word_edges(term: str, text: str) -> None:
    assert occurs(term, text) == by_definition(term, text)


@given(TEXTS, TEXTS, TEXTS)
def test_a_term_between_blanks_always_occurs(before: str, term: str, after: str) -> None:
    assert occurs(term, f"{before} {term} {after}") == bool(term.strip())


@pytest.mark.parametrize("unit", ["a", "a ", "ẞ", "漢", "e\u0301", "_", "aA"])
def test_hundreds_of_terms_that_occur_everywhere_take_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit.encode()))
    started = time.process_time()
    for length in range(1, 400):
        occurs(unit * length + "x", text)
        occurs(unit.strip() * length, text + "x")
    assert time.process_time() - started < 10.0
