"""Tests of the language detection, with and without candidates."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman_text.detection import Detection, LanguageDetector

DEMO = frozenset(("en", "de", "fr", "es", "ja"))


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    detector = LanguageDetector()
    detector.load()
    return detector


def language(detection: Detection | None) -> str | None:
    return detection.language if detection else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please send me the report by Friday.", "en"),
        ("Guten Tag, wie geht es Ihnen?", "de"),
        ("Où est la bibliothèque, s'il vous plaît ?", "fr"),
        ("¿Dónde está la biblioteca?", "es"),
        ("おはようございます。", "ja"),
        ("東京タワー", "ja"),
        ("今天天气真好，我们去公园吧。", "zh"),
        ("今天天氣真好，我們去公園吧。", "zh"),
        ("안녕하세요, 만나서 반갑습니다.", "ko"),
        ("नमस्ते, आप कैसे हैं?", "hi"),
        ("Привет, как у тебя дела?", "ru"),
        ("Kumusta ka na, kaibigan ko? Matagal tayong hindi nagkita.", "fil"),
        ("מה שלומך היום?", "he"),
    ],
)
def test_a_sentence_is_recognised(detector: LanguageDetector, text: str, expected: str) -> None:
    found = detector.detect(text)
    assert language(found) == expected
    assert found is not None
    assert found.confidence > 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [("検索", "ja"), ("戻る", "ja"), ("込", "ja"), ("设置", "zh"), ("檢視", "zh")],
)
def test_han_characters_of_one_standard_have_its_language(
    detector: LanguageDetector, text: str, expected: str
) -> None:
    assert language(detector.detect(text)) == expected


@pytest.mark.parametrize("text", ["設定", "文件", "新規", "終了", "保存"])
def test_a_few_han_characters_that_two_languages_have_are_in_doubt(
    detector: LanguageDetector, text: str
) -> None:
    found = detector.detect(text)
    assert found is not None
    assert found.doubtful


WRONG = (
    "Onbekende inhoud",
    "Нахільны",
    "Nijedan",
    "Nuevos productos",
    "مثال\u200cها",
    "Acción",
    "Urungkan",
    "पुनरावृत्ती",
)


@pytest.mark.parametrize("text", WRONG)
def test_a_label_that_is_mistaken_for_a_relative_is_in_doubt(
    detector: LanguageDetector, text: str
) -> None:
    [found] = detector.detect_job([text])
    assert found is not None
    assert found.doubtful


@pytest.mark.parametrize("text", ["", "   ", "123 + 456 = 579", "🙂 👍", "—…!?", "3.14 %"])
def test_text_without_letters_has_no_language(detector: LanguageDetector, text: str) -> None:
    assert detector.detect(text) is None
    assert detector.detect(text, DEMO) is None


@pytest.mark.parametrize(
    "text",
    [
        "{name} hat dir eine Nachricht geschickt.",
        "<b>Bitte</b> besuchen Sie https://example.com/the/latest/news/of/today",
        "Starte den Server mit `make serve --with the default options` und warte.",
    ],
)
def test_markup_links_and_code_are_ignored(detector: LanguageDetector, text: str) -> None:
    assert language(detector.detect(text)) == "de"


def test_a_text_of_only_a_link_has_a_language(detector: LanguageDetector) -> None:
    assert detector.detect("https://example.com/index") is not None


@pytest.mark.parametrize(
    ("text", "expected"), [("Hello.", "en"), ("Bonjour !", "fr"), ("東京都", "ja"), ("設定", "ja")]
)
def test_candidates_decide_short_texts(
    detector: LanguageDetector, text: str, expected: str
) -> None:
    assert language(detector.detect(text, DEMO)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Привет, как у тебя дела?", "ru"),
        ("안녕하세요", "ko"),
        ("今天天气真好，我们去公园吧。", "zh"),
        ("Buongiorno a tutti, oggi vorrei parlare della situazione economica italiana.", "it"),
        ("Dzień dobry, chciałbym zamówić kawę i kawałek ciasta czekoladowego.", "pl"),
    ],
)
def test_a_certain_language_outside_the_candidates_is_returned(
    detector: LanguageDetector, text: str, expected: str
) -> None:
    assert language(detector.detect(text, DEMO)) == expected


def test_a_short_latin_text_stays_within_the_candidates(detector: LanguageDetector) -> None:
    assert language(detector.detect("Ja, klar.", DEMO)) in DEMO
    assert language(detector.detect("Ciao a tutti", DEMO)) in DEMO


def test_norwegian_is_bokmal_if_that_is_the_candidate(detector: LanguageDetector) -> None:
    text = "Jeg vil gjerne ha en kopp kaffe og et stykke kake, takk."
    assert language(detector.detect(text)) == "no"
    assert language(detector.detect(text, {"nb", "en"})) == "nb"


def test_only_the_beginning_of_a_long_text_is_examined(detector: LanguageDetector) -> None:
    german = "Das ist ein ganz gewöhnlicher deutscher Satz über das Wetter. " * 20
    english = "And then the author went on in English for many pages. " * 2000
    assert language(detector.detect(german + english)) == "de"


def test_letters_far_behind_numbers_are_found(detector: LanguageDetector) -> None:
    text = "0123456789 " * 5000 + "Das ist ein ganz gewöhnlicher deutscher Satz."
    assert language(detector.detect(text)) == "de"


def test_detecting_loads_the_model_by_itself() -> None:
    found = LanguageDetector().detect("Guten Tag, wie geht es Ihnen?")
    assert language(found) == "de"


def languages(found: Sequence[Detection | None]) -> list[str | None]:
    return [language(each) for each in found]


GERMAN = ["Datei öffnen", "Speichern", "Abbrechen", "Einstellungen", "Drucken"]


def test_short_texts_are_judged_by_all_texts_of_the_job(detector: LanguageDetector) -> None:
    swedish = ["Öppna fil", "Spara som", "Avbryt", "Inställningar", "Skriv ut", "Nytt fönster"]
    assert set(languages([detector.detect(text) for text in swedish])) != {"sv"}
    assert set(languages(detector.detect_job(swedish))) == {"sv"}


def test_a_long_certain_text_stands_by_itself(detector: LanguageDetector) -> None:
    french = "Où est la bibliothèque municipale de cette ville, s'il vous plaît ?"
    found = detector.detect_job([*GERMAN * 8, french])
    assert language(found[-1]) == "fr"
    assert set(languages(found[:-1])) == {"de"}


def test_texts_of_other_scripts_do_not_influence_each_other(detector: LanguageDetector) -> None:
    texts = ["Привет, как у тебя дела?", "Guten Tag, wie geht es Ihnen?", "Пока", "東京", "です"]
    assert languages(detector.detect_job(texts)) == ["ru", "de", "ru", "ja", "ja"]


def test_a_job_without_letters_has_no_language(detector: LanguageDetector) -> None:
    assert detector.detect_job([]) == []
    assert detector.detect_job(["", "123", "🙂"], DEMO, "de") == [None, None, None]


def test_the_same_text_has_one_language_in_a_job(detector: LanguageDetector) -> None:
    found = detector.detect_job(["Speichern", "Abbrechen", "Speichern"] * 100)
    assert found[0] == found[2] == found[-1]


@pytest.mark.parametrize("text", ["Speichern", "Abbrechen", "Datei öffnen"])
def test_the_target_is_no_source_of_a_short_text(detector: LanguageDetector, text: str) -> None:
    assert languages(detector.detect_job([text])) == ["de"]
    assert languages(detector.detect_job([text], None, "de")) != ["de"]
    assert languages(detector.detect_job([text], DEMO, "de-AT")) != ["de"]


def test_texts_that_are_already_in_the_target_language_are_recognised(
    detector: LanguageDetector,
) -> None:
    texts = ["Das ist ein ganz gewöhnlicher Satz.", "Wir gehen heute in den Park.", *GERMAN]
    assert set(languages(detector.detect_job(texts, None, "de"))) == {"de"}


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [("今天天气真好", "zh-Hant", "zh"), ("Добар дан, како сте?", "sr-Latn", "sr")],
)
def test_a_text_in_the_other_script_of_the_target_keeps_its_language(
    detector: LanguageDetector, text: str, target: str, expected: str
) -> None:
    assert languages(detector.detect_job([text], None, target)) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sila masukkan kata laluan anda untuk meneruskan", "ms"),
        ("Файлът не може да бъде отворен", "bg"),
        ("Датотеката не може да се отвори", "mk"),
        ("پرونده باز نشد", "fa"),
    ],
)
def test_look_alikes_of_frequent_languages_are_told_apart(
    detector: LanguageDetector, text: str, expected: str
) -> None:
    assert language(detector.detect(text)) == expected


def test_the_largest_job_is_detected_in_bounded_time(detector: LanguageDetector) -> None:
    texts = [
        f"{number} {chr(97 + number % 26)}{'x' * (number % 40)} {'@' * 200}"
        for number in range(512)
    ]
    began = time.thread_time()
    detector.detect_job(texts)
    detector.detect_job(["a" * 128 * 1024])
    assert time.thread_time() - began < 10


@settings(deadline=None)
@given(
    texts=st.lists(st.text(max_size=60), max_size=6),
    candidates=st.sampled_from([None, DEMO]),
    target=st.sampled_from([None, "de", "zh-Hant", "sr-Latn", "ar"]),
)
def test_every_text_of_a_job_with_letters_has_a_language(
    detector: LanguageDetector,
    texts: list[str],
    candidates: frozenset[str] | None,
    target: str | None,
) -> None:
    found = detector.detect_job(texts, candidates, target)
    assert [each is None for each in found] == [
        not any(character.isalpha() for character in text) for text in texts
    ]
    assert all(each is None or 0.0 <= each.confidence <= 1.0 for each in found)


@settings(deadline=None)
@example(text="²\x08", candidates=None)
@given(text=st.text(max_size=400), candidates=st.sampled_from([None, DEMO]))
def test_every_text_with_letters_has_a_language(
    detector: LanguageDetector, text: str, candidates: frozenset[str] | None
) -> None:
    found = detector.detect(text, candidates)
    assert found is None or (found.language and 0.0 <= found.confidence <= 1.0)
    assert (found is None) == (not any(character.isalpha() for character in text))
