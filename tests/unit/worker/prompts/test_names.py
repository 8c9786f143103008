"""Tests that languages have the names that model cards use."""

from __future__ import annotations

import pytest

from dragoman_worker.prompts import names


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("en", "English"),
        ("de-AT", "German (Austria)"),
        ("pt", "Portuguese"),
        ("pt-PT", "Portuguese (Portugal)"),
        ("pt-BR", "Portuguese (Brazil)"),
        ("es-419", "Spanish (Latin America)"),
        ("zh", "Chinese (Simplified)"),
        ("zh-CN", "Chinese (Simplified)"),
        ("zh-Hans-SG", "Chinese (Simplified)"),
        ("zh-TW", "Chinese (Traditional)"),
        ("zh-HK", "Chinese (Traditional)"),
        ("zh-Hant", "Chinese (Traditional)"),
        ("cmn", "Chinese (Simplified)"),
        ("yue", "Cantonese"),
        ("sr-Latn", "Serbian (Latin)"),
        ("fil", "Filipino"),
        ("bn", "Bengali"),
        ("bn-BD", "Bengali (Bangladesh)"),
        ("en-BD", "English (Bangladesh)"),
    ],
)
def test_a_tag_has_an_english_name(tag: str, expected: str) -> None:
    assert names.english_name(tag) == expected


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("de-AT", "German"), ("pt-BR", "Portuguese"), ("zh-TW", "Chinese (Traditional)")],
)
def test_the_plain_name_has_no_region(tag: str, expected: str) -> None:
    assert names.plain_name(tag) == expected


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("de-AT", "de"), ("zh-Hant-HK", "zh"), ("cmn", "zh"), ("tl", "fil"), ("arb", "ar")],
)
def test_the_base_is_the_language_alone(tag: str, expected: str) -> None:
    assert names.base_of(tag) == expected


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("nb", "no"), ("no", "no"), ("nb-NO", "no"), ("nn", None), ("id", None), ("de", "de")],
)
def test_bokmal_is_listed_as_norwegian_but_nynorsk_is_not(tag: str, expected: str | None) -> None:
    assert names.listed(tag, frozenset(("no", "de", "ms"))) == expected


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        *(("de", False), ("de-DE", False), ("de-AT", True), ("pt-BR", False), ("pt-PT", True)),
        *(("zh-TW", False), ("en-US", False), ("en-GB", True), ("es-419", True)),
    ],
)
def test_a_region_is_unusual_if_the_language_does_not_imply_it(tag: str, expected: bool) -> None:
    assert names.unusual_region(tag) is expected
