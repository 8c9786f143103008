"""Terms are found as whole words, whatever their case, in one pass of linear time."""

from __future__ import annotations

import time
import tracemalloc
import unicodedata

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dragoman_text.terms import Occurrence, Term, TermIndex
from support.pace import LINEAR_S

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
CHARACTERS = st.sampled_from("aAb _-ßẞﬁé\u0301\u0307İ\0.漢サガ\u3099서แี1²가\u11a8\u200b\u05d0(*")
TEXTS = st.text(CHARACTERS, max_size=10)
# A mark of kana without its letter is no term: after a letter that is composed it has no place.
SOURCES = st.text(CHARACTERS, max_size=4).filter(lambda text: text.strip()[:1] != "\u3099")
TERMS = st.lists(st.builds(Term, SOURCES, st.just(("x",)), st.booleans()), max_size=4)
WITHOUT_SPACES = "กฮ฀\u0eff"


def term(source: str, *, case_sensitive: bool = False) -> Term:
    return Term(source, ("x",), case_sensitive)


def sources(text: str, *terms: str, case_sensitive: bool = False) -> list[str]:
    index = TermIndex(term(each, case_sensitive=case_sensitive) for each in terms)
    return [each.source for each in index.find(text)]


def folded(text: str, of: Term) -> str:
    composed = unicodedata.normalize("NFC", text)
    return composed if of.case_sensitive else composed.casefold()


def inside_word(character: str) -> bool:
    unspaced = any(
        first <= character <= last
        for first, last in ("\u0e00\u0eff", "\u3040\u30ff", "\u4e00\u9fff", "\uac00\ud7af")
    )
    return not unspaced and (unicodedata.category(character)[0] in "LMN" or character == "_")


def by_definition(text: str, terms: list[Term]) -> list[tuple[int, int, Term]]:
    """Compare every part of the text with every term, then drop what is inside a longer one."""
    found = [
        (start, end, each)
        for each in dict.fromkeys(terms)
        for start in range(len(text))
        for end in range(start + 1, len(text) + 1)
        if is_word(text, start, end, each)
    ]
    return [
        (start, end, each)
        for start, end, each in found
        if not any(
            first <= start and end <= last and (first, last) != (start, end)
            for first, last, _ in found
        )
    ]


def is_word(text: str, start: int, end: int, of: Term) -> bool:
    parts = [folded(part, of) for part in (text[:start], text[start:end], text[end:])]
    wanted = folded(of.source.strip(), of)
    if not wanted or parts[1] != wanted or "".join(parts) != folded(text, of):
        return False
    edges = ((parts[0], wanted), (wanted, parts[2]))
    return not any(
        one and other and inside_word(one[-1]) and inside_word(other[0]) for one, other in edges
    )


@UNHURRIED
@example("ß\u3099", [Term("ß", ("x",))])
@given(TEXTS, TERMS)
def test_a_term_occurs_where_it_is_between_two_word_edges(text: str, terms: list[Term]) -> None:
    occurrences = TermIndex(terms).occurrences(text)
    found = {(each.start, each.end, each.term) for each in occurrences}
    assert found == set(by_definition(text, terms))


@UNHURRIED
@given(TEXTS, TERMS)
def test_each_term_that_occurs_is_found_once_and_the_longest_first(
    text: str, terms: list[Term]
) -> None:
    found = TermIndex(terms).find(text)
    assert sorted(found, key=lambda each: -len(each.source)) == list(found)
    assert set(found) == {each for _, _, each in by_definition(text, terms)}
    assert len(set(found)) == len(found)


@UNHURRIED
@given(st.text(max_size=30), st.lists(st.text(max_size=5), max_size=5))
def test_any_text_is_searched_for_any_terms(text: str, terms: list[str]) -> None:
    for each in TermIndex(map(term, terms)).occurrences(text):
        assert 0 <= each.start < each.end <= len(text)
        assert text[each.start : each.end].strip()


def test_a_part_of_a_word_is_not_the_term() -> None:
    assert sources("Good goes", "Go") == []
    index = TermIndex([term("Go")])
    assert list(index.occurrences("Good, go")) == [Occurrence(6, 8, term("Go"))]


def test_a_term_inside_a_longer_term_does_not_count_as_its_own() -> None:
    assert sources("Ice cream!", "ice", "ice cream", "cream") == ["ice cream"]
    assert sources("Ice cream and ice", "ice", "ice cream") == ["ice cream", "ice"]


def test_terms_that_overlap_are_both_found() -> None:
    index = TermIndex([term("New York"), term("York City")])
    assert list(index.occurrences("New York City")) == [
        Occurrence(0, 8, term("New York")),
        Occurrence(4, 13, term("York City")),
    ]


def test_the_place_is_that_in_the_text_although_folding_changes_lengths() -> None:
    text = "ẞẞ İ cafe\u0301 STRASSE ﬁn"
    index = TermIndex(map(term, ["straße", "café", "fin"]))
    places = [text[each.start : each.end] for each in index.occurrences(text)]
    assert places == ["cafe\u0301", "STRASSE", "ﬁn"]


def test_a_case_sensitive_term_is_found_in_its_own_case_alone() -> None:
    assert sources("us and US", "US", case_sensitive=True) == ["US"]
    assert sources("us", "US", case_sensitive=True) == []
    assert sources("us", "US") == ["US"]


@pytest.mark.parametrize("syntax", ["a.c", "[a-z]+", "(", "a|b", "^", r"\w", "*", "a{2}"])
def test_a_term_is_literal_even_if_it_is_a_regular_expression(syntax: str) -> None:
    assert sources(f"abc aa, {syntax} d", syntax) == [syntax]
    assert sources("abc aa d", syntax) == []


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
def test_a_blank_term_occurs_nowhere(blank: str) -> None:
    assert sources("a \n\t\u3000 b", blank) == []


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("شركة", "هذه شركة كبيرة"),
        ("שלום", "אמר שלום."),
        ("a\u200bb", "x a\u200bb y"),
        ("\u200b", "a\u200bb"),
        ("\u202eabc", "\u202eabc"),
    ],
)
def test_right_to_left_and_zero_width_terms_are_found(word: str, text: str) -> None:
    assert sources(text, word) == [word]


def test_two_entries_of_one_source_are_both_found() -> None:
    entries = [Term("Go", ("Los",)), Term("go", ("gehen",)), Term("Go", ("Go",), True)]
    assert set(TermIndex(entries).find("Go!")) == set(entries)
    assert TermIndex(entries).find("GO!") == tuple(entries[:2])


def test_twenty_thousand_terms_are_indexed_and_searched_in_little_time_and_memory() -> None:
    terms = [term(f"term {number} of the glossary") for number in range(20_000)]
    tracemalloc.start()
    index = TermIndex(terms)
    assert tracemalloc.get_traced_memory()[1] < 60_000_000
    tracemalloc.stop()
    text = "a term 77 of the glossary, and term 19999 of it. " * 2_000
    started = time.process_time()
    assert [each.source for each in index.find(text)] == ["term 77 of the glossary"]
    assert time.process_time() - started < LINEAR_S


@pytest.mark.parametrize(
    "unit", ["漢", "a ", "a", "ẞ", "e\u0301", "- ", "a\u0301\u0302", "가\u11a8"]
)
def test_nested_and_unfinished_terms_take_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    terms = [unit * length + end for length in range(1, 300) for end in ("", "x", " y")]
    index = TermIndex(map(term, [*terms, unit * 10_000 + "!"]))
    started = time.process_time()
    index.find(text)
    assert time.process_time() - started < LINEAR_S
