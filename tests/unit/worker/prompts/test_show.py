"""Tests of the profiles as text for people."""

from __future__ import annotations

import pytest

from dragoman_worker.errors import UnsupportedLanguage
from dragoman_worker.prompts.base import ProfileSampling, PromptInput
from dragoman_worker.prompts.show import profile_rows, rendered, sampling_text
from dragoman_worker.prompts.table import PROFILES, get_profile
from support.builders.profiles_page import BEGIN, PAGE, written


def test_every_profile_has_a_row() -> None:
    rows = profile_rows()
    assert [row.name for row in rows] == list(PROFILES)
    demo = rows[-1]
    assert demo.name == "demo"
    assert demo.languages == ("de", "en", "es", "fr", "ja")
    assert demo.takes == ()
    assert demo.sampling == "greedy, frequency_penalty 0.3"
    assert not demo.needs_source


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (ProfileSampling(), "greedy"),
        (ProfileSampling(top_k=1), "greedy"),
        (
            ProfileSampling(temperature=0.7, top_p=0.8, top_k=20),
            "temperature 0.7, top_p 0.8, top_k 20",
        ),
        (
            ProfileSampling(temperature=0.7, repetition_penalty=1.05),
            "temperature 0.7, repetition_penalty 1.05",
        ),
    ],
)
def test_decoding_is_shown_by_its_values_that_are_not_neutral(
    sampling: ProfileSampling, expected: str
) -> None:
    assert sampling_text(sampling) == expected


def test_a_completion_is_shown_unchanged() -> None:
    shown = rendered(get_profile("demo"), PromptInput("Hello", "de-AT", "en"))
    head, text, warning = shown.split("\n", 2)
    assert head == "--- completion, without the tokenizer's begin token"
    assert text == "<|de|>Hello<|translation|>"
    assert warning.strip().startswith("warning: target_lang: ")


def test_a_chat_is_shown_message_by_message() -> None:
    shown = rendered(get_profile("eurollm"), PromptInput("Hello", "de", "en"))
    assert shown.startswith("--- system\nYou are EuroLLM")
    assert "\n--- user\nTranslate the following English source text to German:" in shown
    assert "enable_thinking=False" in rendered(get_profile("qwen3"), PromptInput("Hello", "de"))


def test_a_message_of_parts_is_shown_by_its_fields() -> None:
    shown = rendered(get_profile("translategemma"), PromptInput("Hello", "zh-TW", "en"))
    assert "target_lang_code: zh-Hant\ntext: Hello" in shown


def test_an_unsupported_language_cannot_be_shown() -> None:
    with pytest.raises(UnsupportedLanguage):
        rendered(get_profile("demo"), PromptInput("Hello", "it"))


def test_the_docs_page_has_the_current_table_of_profiles() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert BEGIN in page
    assert page == written(page), "run python tests/support/builders/profiles_page.py"
