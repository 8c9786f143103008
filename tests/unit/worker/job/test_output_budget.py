"""Output budgets follow from a text in many languages and the engine's own tokenizer."""

from __future__ import annotations

import sys
import unicodedata
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.job import output_budget, parallel_text
from dragoman_worker.job.output_budget import OutputBudget


def count_bytes(text: str) -> int:
    """Count a token per byte, as a tokenizer that has not learned a script does."""
    return len(text.encode())


@pytest.fixture(scope="module")
def budget() -> OutputBudget:
    return OutputBudget(count_bytes)


def test_every_script_of_the_text_has_its_likeliest_language_first() -> None:
    likeliest = {name: tags[0] for name, tags in parallel_text.tags_by_script().items()}
    assert {"Latn": "en", "Cyrl": "ru", "Arab": "ar", "Deva": "hi"}.items() <= likeliest.items()
    assert {
        "LATIN": "en",
        "CJK": "zh",
        "HIRAGANA": "ja",
        "HANGUL": "ko",
    }.items() <= likeliest.items()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("OK", "en"),
        ("Привет", "ru"),
        ("你好", "zh"),
        ("漢字ばかり", "ja"),
        ("1 + 1", "en"),
        ("٣ 😀", "en"),
        ("ភាសា", "km"),
        ("\U00013000", "en"),
    ],
)
def test_the_likeliest_language_follows_from_the_script(text: str, language: str) -> None:
    assert parallel_text.likeliest_language(text) == language


def test_a_script_that_the_tokenizer_splits_into_bytes_gets_a_larger_budget(
    budget: OutputBudget,
) -> None:
    assert budget.factor("en", "en") == 1.0
    assert budget.factor("en", "my") > 3.0
    assert budget.factor("my", "en") == pytest.approx(1 / budget.factor("en", "my"))
    assert budget.expected(100, "Hello", "en", "my") > 300


@pytest.mark.parametrize(
    ("tag", "like"),
    [
        ("de-AT", "de"),
        ("zh-TW", "zh-Hant"),
        ("zh-CN", "zh"),
        ("sr-Cyrl", "sr"),
        ("no", "nb"),
        ("uz-Cyrl", "uz-Cyrl"),
        ("pa-PK", "pa-Arab"),
    ],
)
def test_a_tag_has_the_factor_of_its_language_and_script(
    budget: OutputBudget, tag: str, like: str
) -> None:
    assert budget.factor("en", tag) == budget.factor("en", like)


def test_an_unknown_language_gets_the_most_that_its_script_needs(budget: OutputBudget) -> None:
    cyrillic = parallel_text.tags_by_script()["Cyrl"]
    assert budget.factor("en", "cv") == max(budget.factor("en", tag) for tag in cyrillic)


def test_a_language_of_an_unknown_script_gets_the_most_that_any_needs(budget: OutputBudget) -> None:
    everything = parallel_text.by_tag()
    assert budget.factor("en", "nqo") == max(budget.factor("en", tag) for tag in everything)


def test_without_a_source_language_the_script_of_the_text_counts(budget: OutputBudget) -> None:
    assert budget.expected(100, "ជំរាបសួរ", None, "en") < 50
    assert budget.expected(100, "Hello", None, "en") >= 100


def test_variants_of_letters_count_as_what_they_stand_for() -> None:
    for text, name in (
        ("Ｈｅｌｌｏ", "LATIN"),
        ("𝗛𝗲𝗹𝗹𝗼", "LATIN"),
        ("3 µ", "GREEK"),
        ("ｶﾀｶﾅ", "HIRAGANA"),
    ):
        assert parallel_text.script_name(text) == name


def test_letters_of_every_name_in_unicode_have_a_budget(budget: OutputBudget) -> None:
    by_name = {
        unicodedata.name(character, "").split(" ")[0]: character
        for character in map(chr, range(sys.maxunicode + 1))
        if character.isalpha()
    }
    assert {"MICRO", "FEMININE", "SYRIAC", "BOPOMOFO", "MODIFIER", "SCRIPT"} <= by_name.keys()
    for letter in by_name.values():
        assert budget.expected(100, f"6.7 {letter}", None, "de") > 0


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(["de", "zh-Hant", "nqo"]))
def test_any_text_without_a_source_language_has_a_budget(text: str, target: str) -> None:
    assert _counting_bytes().expected(100, text, None, target) > 0


@lru_cache(maxsize=1)
def _counting_bytes() -> OutputBudget:
    return OutputBudget(count_bytes)


def test_a_script_without_a_language_here_gets_the_most_that_any_source_needs(
    budget: OutputBudget,
) -> None:
    cheapest = min(parallel_text.by_tag().values(), key=count_bytes)
    assert budget.expected(100, "ܫܠܡܐ", None, "de") == pytest.approx(
        100 * count_bytes(parallel_text.by_tag()["de"]) / count_bytes(cheapest)
    )


def test_a_tokenizer_that_counts_nothing_gives_no_error() -> None:
    assert OutputBudget(lambda _: 0).factor("en", "de") == 1.0


def test_the_estimate_is_smaller_than_the_cap_and_both_grow_with_what_is_expected() -> None:
    for expected in (0, 1, 10, 100, 10_000):
        assert output_budget.needed(expected) <= output_budget.cap(1, expected)
        assert output_budget.estimate(1, expected) <= output_budget.cap(1, expected)
    assert output_budget.cap(100, 10.0) == 2 * 100 + 64, "a text may stay as it is"
    assert output_budget.cap(100, 1_000.0) == 2 * 1_000 + 64
    assert output_budget.estimate(1_000, 1.0) > 300, "the text may not be in its language"
