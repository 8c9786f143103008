"""Tests of the gate `glossary`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import glossary
from dragoman_text.terms import Term
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S


def found(answer: str, *targets: str, language: str = "de", case_sensitive: bool = False) -> bool:
    term = Term("bank", targets, case_sensitive)
    return glossary.find(Candidate("The bank", answer, language, terms=(term,))) is not None


@pytest.mark.parametrize(
    ("answer", "targets", "language"),
    [
        ("Die Datenbanken sind leer.", ("Datenbank",), "de"),
        ("Die Kundendatenbank ist leer.", ("Datenbank",), "de"),
        ("DIE BANK", ("bank",), "de"),
        ("des Hauses", ("Haus",), "de"),
        ("базой данных", ("база данных",), "ru"),
        ("在数据库中", ("数据库",), "zh"),
        ("データベースを開く", ("データベース",), "ja"),
        ("ein Ufer", ("Bank", "Ufer"), "de"),
        ("STRASSENBAHN", ("Straßenbahn",), "de"),
        ("die Datensätze", ("Datensatz",), "de"),
        ("wydawnictwami", ("wydawnictwo",), "pl"),
        ("tietokannan", ("tietokanta",), "fi"),
        ("افتح الحاسوب", ("حاسوب",), "ar"),
        ("للحاسوب", ("الحاسوب",), "ar"),
        ("פתח את המחשב", ("מחשב",), "he"),
        ("ar an gcat", ("cat",), "ga"),
        ("コンピュータを起動", ("コンピューター",), "ja"),
        ("コンピューターを起動", ("コンピュータ",), "ja"),
    ],
)
def test_any_form_complies_inflected_too(
    answer: str, targets: tuple[str, ...], language: str
) -> None:
    assert not found(answer, *targets, language=language)


@pytest.mark.parametrize(
    ("answer", "target", "language"),
    [
        ("Das Ufer", "Bank", "de"),
        ("Die Bankräuberbande", "Bank", "de"),
        ("在表中", "数据库", "zh"),
        ("Die Rechtschreibung", "Rechner", "de"),
        ("The computation", "Computer", "en"),
        ("imprimer la page", "imprimante", "fr"),
        ("افتح الباب", "حاسوب", "ar"),
        ("", "Bank", "de"),
    ],
)
def test_a_missing_term_is_a_defect(answer: str, target: str, language: str) -> None:
    assert found(answer, target, language=language)


def test_case_counts_where_the_glossary_demands_it() -> None:
    assert found("apple", "Apple", case_sensitive=True)
    assert not found("Apple", "Apple", case_sensitive=True)


@pytest.mark.parametrize("target", ["", "(a|b)*", "[", "\\", "\u200b", "שלום", ".*"])
def test_terms_are_literal(target: str) -> None:
    assert found("xyz", target) is (target != "")
    assert not found(f"x {target} y", target)


def test_many_terms_in_a_long_answer_take_linear_time() -> None:
    terms = tuple(Term(f"s{number}", (f"{number} wort{number}",)) for number in range(1_000))
    answer = "".join(f"w{number} " for number in range(20_000))
    started = time.process_time()
    glossary.find(Candidate("x", answer, "de", terms=terms))
    assert time.process_time() - started < LINEAR_S
