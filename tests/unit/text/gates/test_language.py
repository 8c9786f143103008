"""Tests of the gate `language`, with the real detector."""

from __future__ import annotations

import time

import pytest

from dragoman_text.detection import LanguageDetector
from dragoman_text.gates import language, languages
from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

ENGLISH = "The meeting begins at nine in the large room on the second floor of the building."
GERMAN = "Die Sitzung beginnt um neun im großen Saal im zweiten Stock des Gebäudes."
SIMPLIFIED = "会议九点在大楼二层的大会议室开始，请准时参加。"
TRADITIONAL = "會議九點在大樓二層的大會議室開始，請準時參加。"
DETECTOR = LanguageDetector()


def found(answer: str, target: str, source: str | None = "fr") -> Defect | None:
    return language.find(Candidate("x", answer, target, source), DETECTOR.detect)


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        (ENGLISH, "de"),
        (GERMAN, "en"),
        (ENGLISH, "ja"),
        (SIMPLIFIED, "ja"),
        (SIMPLIFIED, "de"),
        ("Заседание начинается в девять часов в большом зале.", "sr"),
    ],
)
def test_an_answer_in_another_language_is_a_defect(answer: str, target: str) -> None:
    defect = found(answer, target)
    assert defect is not None
    assert not defect.slight


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        (GERMAN, "de"),
        (GERMAN, "de-AT"),
        (SIMPLIFIED, "zh-Hans"),
        (TRADITIONAL, "zh-TW"),
        ("Tom", "ja"),
        ("git stash push --include-untracked --all", "ja"),
        ("", "de"),
        ("https://example.com/the/meeting/begins/at/nine/in/the/large/room", "de"),
    ],
)
def test_an_answer_in_the_language_or_without_prose_is_no_defect(answer: str, target: str) -> None:
    assert found(answer, target) is None


@pytest.mark.parametrize(
    ("answer", "written", "asked"),
    [
        (
            "Predsednik je posle dve nedelje napustio mesto gde je uvek živeo sa porodicom.",
            "sr",
            "hr",
        ),
        (
            "Predsjednik je nakon dva tjedna napustio mjesto gdje je oduvijek živio.",
            "hr",
            "sr-Latn",
        ),
        (
            "Beliau berkata bahawa kumpulan itu perlu kembali semula ke bandar kerana hujan.",
            "ms",
            "id",
        ),
        ("Han sa at hun ikke visste noe om det, men at flere fikk vente mye siden.", "nb", "nn"),
        ("Dei visste ikkje noko om saka, men fleire hadde venta lenge på eit svar.", "nn", "nb"),
    ],
)
def test_words_of_a_near_relative_are_a_defect(answer: str, written: str, asked: str) -> None:
    assert found(answer, asked, "en") is not None
    assert found(answer, "sr-Latn" if written == "sr" else written, "en") is None


@pytest.mark.parametrize(
    ("source", "answer", "target"),
    [
        (
            "Start in given mode (basic, advanced, financial, programming, keyboard, conversion)",
            "Starta i angivet läge (basic, advanced, financial, programming, keyboard, conversion)",
            "sv",
        ),
        (
            "SecureDrop is a project of Freedom of the Press Foundation.",
            "SecureDrop jest projektem Freedom of the Press Foundation.",
            "pl",
        ),
    ],
)
def test_words_of_the_source_do_not_decide_if_the_others_are_right(
    source: str, answer: str, target: str
) -> None:
    assert language.find(Candidate(source, answer, target, "en"), DETECTOR.detect) is None


def test_a_sentence_left_in_english_beside_a_right_one_is_a_defect() -> None:
    source = "The door is open. The committee decided to read the letter again before noon."
    answer = "Die Tür ist offen. The committee decided to read the letter again before lunch."
    assert language.find(Candidate(source, answer, "de", "en"), DETECTOR.detect) is not None


def test_few_letters_make_a_slight_defect() -> None:
    defect = found("The meeting begins at nine", "ja")
    assert defect is not None
    assert defect.slight


def test_a_long_answer_that_falls_back_halfway_is_a_defect() -> None:
    assert found(f"{GERMAN} " * 20 + f"{ENGLISH} " * 10, "de") is not None


def test_the_gate_rests_where_the_source_is_in_the_target_language() -> None:
    assert found(ENGLISH, "de-DE", "de") is None


@pytest.mark.parametrize("unit", ["a", "漢", "the ", "\u200d", "\u0301", "a\u0301 ", "👩\u200d👩 "])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    DETECTOR.load()
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    found(text, "zh-Hans")
    assert time.process_time() - started < LINEAR_S


def test_accents_do_not_hide_a_latin_answer_to_a_cyrillic_target() -> None:
    assert found("Sélectionnez un ou plusieurs mots dans le document.", "ru", "en")


def test_names_in_latin_letters_do_not_decide() -> None:
    assert found("Лицензия GNU General Public License, только версии 2", "ru", "en") is None


def test_a_language_that_the_detector_does_not_know_is_not_judged() -> None:
    assert found("Ko te rā tēnei e tīmata ai te hui i te whare nui o te iwi.", "mi") is None


def test_the_known_languages_are_those_of_the_model() -> None:
    labels = {str(label) for label in DETECTOR._loaded().nb_classes} - {"zxx"}  # type: ignore[attr-defined]
    assert {languages.base(label) for label in labels} - {"uzs"} == languages._DETECTED


PORTUGUESE = "O contrato foi assinado por ambas as partes na manhã de segunda-feira e já vale."


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        (PORTUGUESE, "es"),
        (PORTUGUESE, "gl"),
        ("Smlouva byla podepsána oběma stranami v pondělí ráno po dlouhém jednání obou.", "sk"),
        (
            "Министерот рече дека договорот ќе биде потпишан од двете страни во понеделник.",
            "bg",
        ),
    ],
)
def test_an_answer_in_a_relative_that_the_detector_tells_apart_is_a_defect(
    answer: str, target: str
) -> None:
    defect = found(answer, target, "en")
    assert defect is not None
    assert not defect.slight


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        (PORTUGUESE, "pt-BR"),
        (PORTUGUESE, "ast"),
        ("Ugovor su obje strane potpisale u ponedjeljak ujutro nakon dugih pregovora.", "sr-Latn"),
        ("Ugovor su obje strane potpisale u ponedjeljak ujutro nakon dugih pregovora.", "bs"),
    ],
)
def test_an_answer_in_a_relative_that_looks_alike_is_no_defect(answer: str, target: str) -> None:
    assert found(answer, target, "en") is None


@pytest.mark.parametrize("target", ["min-Arab", "ace-Arab", "ms-Arab", "ar-Latn"])
def test_a_language_in_a_script_that_the_detector_does_not_know_is_not_judged(target: str) -> None:
    assert (
        found("كونتراق ايت دتندتاڠاني اوليه كدوا بله فيهق فد هاري اثنين فاݢي", target, "en") is None
    )


def test_latin_names_that_touch_chinese_letters_are_no_other_language() -> None:
    source = "International Business Machines Corporation headquarters"
    answer = "国际商业机器公司（International Business Machines Corporation，IBM）总部"
    assert language.find(Candidate(source, answer, "zh-Hans", "en"), DETECTOR.detect) is None
