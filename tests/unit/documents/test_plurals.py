"""Tests of plural forms and of the numbers that stand for the count."""

from __future__ import annotations

import pytest

from dragoman_documents.codec import InlineCode, Segment
from dragoman_documents.plurals.rules import (
    GettextRule,
    fits_language,
    forms,
    gettext_forms,
    gettext_rule,
    parsed_rule,
    restored,
    settled,
)

RUSSIAN = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("de", [("one", 1), ("other", 21)]),
        ("fr", [("one", 1), ("other", 21)]),
        ("es-419", [("one", 1), ("other", 21)]),
        ("ja", [("other", 21)]),
        ("zh-Hant", [("other", 21)]),
        ("ru", [("one", 21), ("few", 22), ("many", 25)]),
        ("cs", [("one", 1), ("few", 2), ("other", 21)]),
        ("sl", [("one", 101), ("two", 102), ("few", 103), ("other", 21)]),
        ("ar", [("zero", 0), ("one", 1), ("two", 2), ("few", 103), ("many", 21), ("other", 100)]),
        ("tlh", [("one", 1), ("other", 21)]),
    ],
)
def test_each_form_has_a_number_that_is_written_with_digits_if_it_has_one(
    lang: str, expected: list[tuple[str, int]]
) -> None:
    assert [(form.category, form.numbers[0]) for form in forms(lang)] == expected


def test_a_number_that_the_text_has_is_not_taken() -> None:
    assert forms("de")[1].number_for("%d of 21 files") == 22
    taken = " ".join(map(str, range(21, 29)))
    assert forms("de")[1].number_for(taken) == 2
    assert forms("de")[0].number_for("%d of 1 file") is None


@pytest.mark.parametrize(
    ("lang", "rule"),
    [
        ("de", "nplurals=2; plural=(n != 1);"),
        ("pt-BR", "nplurals=2; plural=(n > 1);"),
        ("zh-Hant", "nplurals=1; plural=0;"),
        ("tlh", "nplurals=2; plural=(n != 1);"),
    ],
)
def test_the_header_has_the_rule_of_the_language(lang: str, rule: str) -> None:
    assert str(gettext_rule(lang)) == rule


def test_a_language_without_a_formula_takes_one_with_the_same_forms() -> None:
    found = gettext_rule("gv")  # Manx
    assert parsed_rule(str(found)) == found


@pytest.mark.parametrize(
    "value",
    [
        "",
        "nplurals=INTEGER; plural=EXPRESSION;",
        "nplurals=2; plural=n/0;",
        "nplurals=2; plural=n;",
        "nplurals=0; plural=0;",
        "nplurals=2; plural=__import__('os');",
        "nplurals=2; plural=" + "(" * 900 + "n" + ")" * 99,
    ],
)
def test_a_malformed_rule_is_none(value: str) -> None:
    assert parsed_rule(value) is None


def test_the_forms_of_a_formula_have_its_order() -> None:
    rule = parsed_rule(f"nplurals=3; plural={RUSSIAN}")
    assert rule is not None
    found = gettext_forms(rule, "ru")
    assert [(form.category, form.numbers[0]) for form in found] == [
        ("one", 21),
        ("few", 22),
        ("many", 25),
    ]


def test_a_form_of_millions_alone_is_translated_as_the_general_form() -> None:
    rule = GettextRule(3, "n == 1 ? 0 : n != 0 && n % 1000000 == 0 ? 1 : 2")
    one, many, other = gettext_forms(rule, "es")
    assert many == other != one
    assert fits_language(rule, "es")
    assert fits_language(GettextRule(2, "n != 1"), "es")
    assert not fits_language(GettextRule(2, "n != 1"), "ru")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 Dateien", "%d Dateien"),
        ("共2个文件", "共%d个文件"),
        ("\u0662 ملفات", "%d ملفات"),
        ("zwei Dateien", None),
        ("2 von 2", None),
        ("<g2>2</g2> %2$s {2}", "<g2>%d</g2> %2$s {2}"),
        ("2.000 Dateien", None),
        ("12 Dateien", None),
        ("Dateien: 2.", "Dateien: %d."),
    ],
)
def test_the_placeholder_takes_the_place_of_its_number(text: str, expected: str | None) -> None:
    assert restored(text, 2, "%d") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ich sah einen Vogel.", "Ich sah einen Vogel."),
        ("Ich sah <g1>einen</g1> Vogel.", "Ich sah <g1>einen</g1> Vogel."),
        ("1 Vogel", "%d Vogel"),
        ("1 Vogel von 1", None),
        ("2 V\u00f6gel", None),
        ("\u0662 V\u00f6gel", None),
        ("Vogel A1", None),
        (" - ", None),
    ],
)
def test_a_number_that_may_be_left_out_is_a_word_or_there_once(
    text: str, expected: str | None
) -> None:
    assert restored(text, 1, "%d", optional=True) == expected


def test_only_a_form_of_1_alone_may_lack_its_number() -> None:
    assert [form.is_one for form in forms("de")] == [True, False]
    for lang in ("fr", "ru", "sl", "ja"):  # `one` of French: 0 too, of Russian and Slovenian: 101
        assert not any(form.is_one for form in forms(lang))


def _message(*numbers: int | None) -> list[Segment]:
    categories = ("one", "few", "other")
    return [
        Segment(f"{number} files", "line 3", "plural", plural=category, number=number)
        for category, number in zip(categories, numbers, strict=True)
    ]


def test_a_form_without_its_number_becomes_the_general_form() -> None:
    segments = [Segment("a", "line 1"), *_message(1, 2, 5)]
    texts = ["A", "eine Datei", "\u0662 Dateien", "5 Dateien"]
    assert settled(segments, texts) == (["A", "1 Dateien", "2 Dateien", "5 Dateien"], [1])


def test_a_failed_form_becomes_the_general_form() -> None:
    assert settled(_message(1, 2, 5), ["1 Datei", None, "5 Dateien"]) == (
        ["1 Datei", "2 Dateien", "5 Dateien"],
        [1],
    )


def test_without_a_usable_general_form_a_form_stays_empty() -> None:
    assert settled(_message(1, 2, 5), ["1 Datei", "keine", "viele"]) == (
        ["1 Datei", None, None],
        [],
    )


def test_a_form_of_1_alone_keeps_a_translation_with_the_number_as_a_word() -> None:
    one, *others = _message(1, 2, 5)
    segments = [one._replace(number_optional=True), *others]
    texts = ["eine Datei", "zwei Dateien", "5 Dateien"]
    assert settled(segments, texts) == (["eine Datei", "2 Dateien", "5 Dateien"], [1])


def test_messages_without_any_translation_stay() -> None:
    assert settled(_message(1, 2, 5), [None] * 3) == ([None] * 3, [])


def test_forms_of_two_messages_are_not_mixed() -> None:
    other = [
        Segment(each.text, "line 9", plural=each.plural, number=each.number)
        for each in _message(1, 2, 5)
    ]
    texts = ["1 A", "zwei A", "5 A", "1 B", "zwei B", "5 B"]
    assert settled([*_message(1, 2, 5), *other], texts)[0] == [
        "1 A", "2 A", "5 A", "1 B", "2 B", "5 B",
    ]  # fmt: skip


def test_a_general_form_with_other_tags_is_not_used() -> None:
    bold = (InlineCode("<b>", "</b>"),)
    one = Segment("1 file", "line 3", "plural", plural="one", number=1)
    other = Segment("<g1>2</g1> files", "line 3", "plural", bold, plural="other", number=2)
    assert settled([one, other], ["eins", "<g1>2</g1> Dateien"]) == (
        [None, "<g1>2</g1> Dateien"],
        [],
    )
