"""Tests of the gate `script`, with the real detector."""

from __future__ import annotations

import time

import pytest

from dragoman_text.detection import LanguageDetector
from dragoman_text.gates import script
from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

CONTRACT = "The contract was signed in the morning by both parties."
SIMPLIFIED = "会议九点在大楼二层的大会议室开始，请准时参加。"
TRADITIONAL = "會議九點在大樓二層的大會議室開始，請準時參加。"
SERBIAN = "Састанак почиње у девет сати у великој сали на другом спрату."
SERBIAN_LATIN = "Sastanak počinje u devet sati u velikoj sali na drugom spratu."
NAMES = "Samsung Galaxy S24 Ultra, Apple iPhone 15 Pro Max, Google Pixel 8 Pro"
DETECTOR = LanguageDetector()


def found(source: str, answer: str, target: str, source_lang: str | None = "en") -> Defect | None:
    return script.find(Candidate(source, answer, target, source_lang), DETECTOR.detect)


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        (SIMPLIFIED, "zh-Hant"),
        (SIMPLIFIED, "zh-TW"),
        (TRADITIONAL, "zh-CN"),
        (TRADITIONAL, "zh"),
        (SERBIAN_LATIN, "sr-Cyrl"),
        (SERBIAN_LATIN, "sr"),
        (SERBIAN, "sr-Latn"),
        (SERBIAN, "hr"),
        ("Dogovor byl podpisan utrom obeimi storonami.", "ru"),
        ("Dohovir buv pidpysanyi vrantsi oboma storonamy.", "uk"),
        ("I symvasi ypografike to proi kai apo ta dyo meri.", "el"),
        ("Anubandh par subah donon pakshon ne hastakshar kiye.", "hi"),
        ("Keiyaku wa asa, souhou ni yotte shomei saremashita.", "ja"),
        ("Peyman serê sibê ji hêla her du aliyan ve hate îmzekirin.", "ckb"),
        (CONTRACT, "ckb"),
        (CONTRACT, "min-Arab"),
    ],
)
def test_an_answer_in_another_script_is_a_defect(answer: str, target: str) -> None:
    defect = found(CONTRACT, answer, target)
    assert defect is not None
    assert not defect.slight


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        (SIMPLIFIED, "zh"),
        (TRADITIONAL, "zh-HK"),
        (SIMPLIFIED, "yue"),
        (TRADITIONAL, "yue"),
        (SERBIAN, "sr"),
        (SERBIAN_LATIN, "sr-Latn"),
        ("Лицензия GNU General Public License, только версии 2", "ru"),
        ("پەیماننامەکە بەیانی لەلایەن هەردوو لاوە واژۆ کرا.", "ckb"),
        ("كونتراق ايت دتندتاڠاني اوليه كدوا بله فيهق", "min-Arab"),
        ("كونتراق ايت دتندتاڠاني اوليه كدوا بله فيهق", "ace-Arab"),
        ("قلقن الاعضاء ن الجمعية نوايلز", "shi"),
        ("OK", "ja"),
        ("", "ru"),
    ],
)
def test_an_answer_in_the_script_of_its_language_is_no_defect(answer: str, target: str) -> None:
    assert found(CONTRACT, answer, target) is None


@pytest.mark.parametrize("target", ["zh-Hans", "ja", "ru", "ar"])
def test_names_that_the_source_has_may_stay(target: str) -> None:
    assert found(NAMES, NAMES, target) is None
    assert (
        found("Boolean (Either True, False or None)", "boolean (True, False 또는 None)", "ko")
        is None
    )


def test_prose_that_the_source_has_may_not_stay() -> None:
    assert found(CONTRACT, CONTRACT, "ckb") is not None


@pytest.mark.parametrize(
    ("source_lang", "source", "target", "answer"),
    [
        (
            "zh-Hans",
            "我们今年要改进奖励制度。",
            "en",
            "This year we will improve the system of奖励awards.",
        ),
        ("en", "system of science awards", "de", "das System der 科技 Preise"),
        ("en", "system of science awards", "de", "das System der科技 Preise"),
        ("en", "more complex than GraphQL", "vi", "GraphQL 复杂 hơn"),
        ("cs", "Doplňte prosím chybějící slova.", "uk", "Доповніть, будь ласка, відсутні语слова."),
        ("cs", "sémanticky správné", "uk", "семантично正确ними"),
        ("en", "This is a small problem.", "ko", "이것은 작은 问题입니다."),
        ("en", "This is a small problem.", "ja", "これは小さな문제です。"),
        ("en", "This is a small problem.", "zh-Hans", "这是一个小さな问题。"),
        ("ko", "이것은 작은 문제입니다.", "ja", "これは小さな문제です。"),
        ("ru", "Это важная работа.", "en", "This is importантная work."),
        ("en", "This is important work.", "fr", "C'est un travail العمل important."),
        ("en", "This is important work.", "hi", "यह एक महत्वपूर्ण কাজ है।"),
        (None, "This is important work.", "fr", "C'est un travail работа important."),
    ],
)
def test_a_word_in_a_script_that_is_out_of_place_is_a_defect(
    source_lang: str | None, source: str, target: str, answer: str
) -> None:
    defect = found(source, answer, target, source_lang)
    assert defect is not None
    assert not defect.slight


@pytest.mark.parametrize(
    ("source_lang", "source", "target", "answer"),
    [
        ("zh-Hans", "他说你好。", "en", 'He said "你好" (nǐ hǎo).'),
        ("ru", "Газета «Правда» вышла.", "zh-Hans", "《Правда》报出版了。"),
        ("ru", "Газета «Правда» вышла.", "ko", "Правда는 발행되었다."),
        ("en", "The letter Ж is Cyrillic.", "de", "Der Buchstabe Ж ist kyrillisch."),
        ("en", "a length of 5 μm", "de", "eine Länge von 5 μm und Δt"),
        ("en", "Press Ctrl+C, the URL is new", "ko", "Ctrl+C를 누르면 URL이 새롭습니다"),
        ("en", "the state of New York", "ko", "뉴욕주(州)"),
        ("en", "the new coffee ー shop", "zh-Hans", "咖啡ー店很新"),
        ("en", "the language العربية is here", "fr", "la langue العربية est ici"),
        ("en", "Media|Beijing", "ja", "メディア丨北京"),
        ("ja", "東京タワーは高い。", "zh-Hans", "东京塔很高。"),
        ("en", "The particle の marks possession.", "zh-Hans", "助词の表示所属关系。"),
    ],
)
def test_a_word_in_another_script_that_is_right_is_no_defect(
    source_lang: str, source: str, target: str, answer: str
) -> None:
    assert found(source, answer, target, source_lang) is None


@pytest.mark.parametrize(
    ("target", "answer"),
    [("de", "Die wichtigе Arbeit"), ("sr-Cyrl", "Лaбуристичкa странка"), ("ru", "Cоздание списка")],
)
def test_letters_that_look_like_the_right_ones_are_slight(target: str, answer: str) -> None:
    defect = found("The important work", answer, target)
    assert defect is not None
    assert defect.slight


def test_a_source_in_the_target_language_is_not_judged() -> None:
    assert found("Das 科技 System", "Das 科技System", "de", "de-AT") is None


@pytest.mark.parametrize(
    "unit",
    ["a", "漢", "科技 ", "科技x", "аa", "a а", "\u0301", "é科é", "ж", "ñ", "한漢", "👩\u200d👩 "],
)
@pytest.mark.parametrize("target", ["de", "ru", "zh-Hant", "ko"])
def test_a_hostile_text_takes_linear_time(unit: str, target: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    found("The source.", text, target)
    found(text, text[1:], target)
    assert time.process_time() - started < LINEAR_S
