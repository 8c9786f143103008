"""Tests of the gate `copy`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.detection import LanguageDetector
from dragoman_text.gates import copy
from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

DETECTOR = LanguageDetector()
SENTENCE = "The meeting begins at nine in the large room."


def found(candidate: Candidate) -> Defect | None:
    return copy.find(candidate, DETECTOR.detect)


def test_a_copied_sentence_is_a_defect() -> None:
    defect = found(Candidate(SENTENCE, SENTENCE.upper(), "de", "en"))
    assert defect is not None
    assert not defect.slight


def test_a_nearly_copied_sentence_is_a_defect() -> None:
    assert found(Candidate(SENTENCE, SENTENCE.replace("large", "große"), "de", "en"))


def test_a_copied_japanese_sentence_is_a_defect() -> None:
    text = "会議は九時に始まります。"
    assert found(Candidate(text, text, "en", "ja"))


@pytest.mark.parametrize(
    "text",
    [
        "doi:10.1000/182 and 10.1000/183",
        "International Business Machines Corporation",
        "ARMONK, NEW YORK, UNITED STATES",
        "git stash push --include-untracked",
        "https://example.com/a/very/long/path/to/something",
        "Save file",
        "SELECT name, price FROM products WHERE price > 100 ORDER BY name;",
    ],
)
def test_names_codes_and_labels_may_be_copied(text: str) -> None:
    assert found(Candidate(text, text, "de", "en")) is None


COPIES = [
    ("es", "pt-BR", "El contrato fue firmado por ambas partes en la mañana del lunes."),
    ("es", "ca", "El contrato fue firmado por ambas partes en la mañana del lunes."),
    ("pt", "es", "O contrato foi assinado por ambas as partes na manhã de segunda-feira."),
    ("cs", "sk", "Smlouva byla podepsána oběma stranami v pondělí ráno."),
    ("sk", "cs", "Zmluvu podpísali obe strany v pondelok ráno po dlhom rokovaní."),
    ("sv", "da", "Avtalet undertecknades av båda parter på måndagsmorgonen."),
    ("bg", "mk", "Договорът беше подписан от двете страни в понеделник сутринта."),
    ("nl", "af", "Het contract werd maandagochtend door beide partijen ondertekend."),
    ("de", "lb", "Der Vertrag wurde am Montagmorgen von beiden Parteien unterschrieben."),
]


@pytest.mark.parametrize(("source", "target", "text"), COPIES)
def test_a_copy_between_relatives_that_the_detector_tells_apart_is_a_defect(
    source: str, target: str, text: str
) -> None:
    defect = found(Candidate(text, text, target, source))
    assert defect is not None
    assert not defect.slight


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("hr", "sr-Latn", "Ugovor su obje strane potpisale u ponedjeljak ujutro."),
        ("hr", "bs", "Ugovor su obje strane potpisale u ponedjeljak ujutro."),
        ("zh-Hans", "yue", "合同于星期一上午由双方签署，并立即生效。"),
        ("id", "su", "Kontrak itu ditandatangani oleh kedua belah pihak pada hari Senin pagi."),
    ],
)
def test_a_copy_between_relatives_that_look_alike_is_slight(
    source: str, target: str, text: str
) -> None:
    defect = found(Candidate(text, text, target, source))
    assert defect is not None
    assert defect.slight


def test_a_translation_into_a_relative_may_resemble_its_source() -> None:
    source = "Møtet begynner klokken ni i den store salen i andre etasje av bygningen."
    answer = "Mødet begynder klokken ni i den store sal i anden etage af bygningen."
    assert found(Candidate(source, answer, "da", "nb")) is None


def test_a_source_in_the_target_language_may_be_kept() -> None:
    assert found(Candidate(SENTENCE, SENTENCE, "en-US", "en-GB")) is None


def test_a_copy_of_an_unknown_language_is_slight() -> None:
    defect = found(Candidate(SENTENCE, SENTENCE, "de"))
    assert defect is not None
    assert defect.slight


def test_protected_literals_do_not_make_a_copy() -> None:
    literal = "the quick brown fox jumps over the lazy dog again"
    candidate = Candidate(f"See {literal}", f"Siehe {literal}", "de", "en", protected=(literal,))
    assert found(candidate) is None


@pytest.mark.parametrize("unit", ["a", "word ", "ab cd ef gh "])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    found(Candidate(text, text[1:], "de", "en", protected=tuple("abcdefgh")))
    assert time.process_time() - started < LINEAR_S


@pytest.mark.parametrize(("source_lang", "slight"), [("en", False), (None, True)])
def test_a_clause_of_the_source_in_the_answer_is_a_defect(
    source_lang: str | None, slight: bool
) -> None:
    answer = "Die Sitzung beginnt um neun. The meeting begins at nine in the large room."
    defect = found(Candidate(SENTENCE, answer, "de", source_lang))
    assert defect is not None
    assert defect.slight == slight


def test_a_clause_of_a_relative_in_the_answer_is_no_defect() -> None:
    source = "Møtet begynner klokken ni i den store salen i andre etasje av bygningen."
    answer = "Mødet begynner klokken ni i den store salen på anden sal i bygningen i dag."
    assert found(Candidate(source, answer, "da", "nb")) is None
