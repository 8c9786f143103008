"""Tests of the language detection, with and without candidates."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman_worker.ports import Detection
from dragoman_worker.quality.language import LanguageDetector

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


@settings(deadline=None)
@example(text="²\x08", candidates=None)
@given(text=st.text(max_size=400), candidates=st.sampled_from([None, DEMO]))
def test_every_text_with_letters_has_a_language(
    detector: LanguageDetector, text: str, candidates: frozenset[str] | None
) -> None:
    found = detector.detect(text, candidates)
    assert found is None or (found.language and 0.0 <= found.confidence <= 1.0)
    assert (found is None) == (not any(character.isalpha() for character in text))
