"""Tests of ICU messages with plurals and selects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyicumessageformat import Parser

from dragoman_documents.codec import Options
from dragoman_documents.plurals.icu.messages import IcuMessage, parsed
from dragoman_documents.plurals.rules import settled
from dragoman_text.icu import NoMessage, spelled
from dragoman_text.icu import parsed as nodes_of
from support.documents.laws import HOSTILE, assert_linear, translations

FILES = "You have {n, plural, one{# file} other{# files}} in {folder}"
MIXED = (
    "{g, select, male{He has {n, plural, =0{none} one{One file} other{{n} files}}} "
    "other{They're {x, number, integer} it''s '{lit}'}}"
)


def message(text: str, target: str = "de", source: str | None = "en") -> IcuMessage:
    found = parsed(text, Options(target, source))
    assert found is not None
    return found


def texts_of(text: str, target: str = "de") -> list[str]:
    return [each.text for each in message(text, target).segments("k")]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("de", ["1 file", "21 files"]),
        ("ru", ["21 files", "22 files", "25 files", "25 files"]),
        ("ja", ["21 files"]),
    ],
)
def test_a_plural_is_whole_sentences_in_the_forms_of_the_target(
    target: str, expected: list[str]
) -> None:
    assert texts_of(FILES, target) == [f"You have {each} in {{folder}}" for each in expected]


def test_the_text_around_goes_into_the_arms() -> None:
    assert message(FILES).spelled(["1 Datei in {folder}", "In {folder}: 21 Dateien"]) == (
        "{n, plural, one{# Datei in {folder}} other{In {folder}: # Dateien}}"
    )


def test_selects_are_outside_and_name_the_place() -> None:
    found = message(MIXED).segments("k")
    assert [(each.text, each.place, each.plural, each.number) for each in found] == [
        ("He has none", "k, male", None, None),
        ("He has One file", "k, male", "one", None),
        ("He has 21 files", "k, male", "other", 21),
        ("They're <x1/> it's <x2/>", "k, other", None, None),
    ]


def test_an_arm_without_the_count_serves_one_number_alone() -> None:
    text = "{n, plural, one{One file} other{# files}}"
    assert texts_of(text, "de") == ["One file", "21 files"]
    assert texts_of(text, "ru") == ["21 files", "22 files", "25 files", "25 files"]
    assert texts_of(text, "fr") == ["1 files", "21 files"]  # one: also 0
    assert texts_of("{n, plural, one{it is} other{they are}}", "fr") == ["it is", "they are"]
    assert texts_of("{n, plural, one{it is} other{they are}}", "ru") == ["it is", *["they are"] * 3]


def test_ordinals_have_the_categories_of_ordinals() -> None:
    text = "{n, selectordinal, one{#st place} two{#nd place} few{#rd place} other{#th place}}"
    assert texts_of(text, "de") == ["21st place"]
    assert texts_of(text, "it") == ["80th place", "21st place"]


def test_two_plurals_of_one_variable_are_one() -> None:
    text = "{n, plural, one{it is} other{they are}} {n, plural, one{# file} other{# files}}"
    assert texts_of(text) == ["it is 1 file", "they are 21 files"]


TWO_COUNTS = "{n, plural, one{# day} other{# days}}, {m, plural, one{# hour} other{# hours}}"


def test_two_counts_are_a_sentence_per_arm_of_both() -> None:
    """FormatJS formats the result as the source, for every pair of numbers."""
    found = message(TWO_COUNTS)
    assert [(each.text, each.place, each.plural) for each in found.segments("k")] == [
        ("{n} day, 1 hour", "k, one", "one"),
        ("{n} day, 21 hours", "k, one", "other"),
        ("{n} days, 1 hour", "k, other", "one"),
        ("{n} days, 21 hours", "k, other", "other"),
    ]
    texts = ["{n} T, 1 S", "{n} T, 21 Sn", None, "{n} Te, 21 Sn"]
    assert found.spelled(texts) == (
        "{n, plural, one{{m, plural, one{{n} T, # S} other{{n} T, # Sn}}} "
        "other{{m, plural, one{{n} days, # hour} other{{n} Te, # Sn}}}}"
    )
    assert message(found.spelled(texts)).signature == found.signature


def test_a_count_in_an_arm_of_another_and_arms_without_it() -> None:
    text = "{n, plural, =0{none} other{# of {m, plural, one{# day} other{# days}}}}"
    assert texts_of(text) == ["none", *["{n} of 1 day", "{n} of 21 days"] * 2]


@pytest.mark.parametrize("target", ["pl", "ar", "ru"])
def test_two_counts_in_a_language_with_more_forms_are_no_message(target: str) -> None:
    assert parsed(TWO_COUNTS, Options(target, "en")) is None


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("de", ["=1 file", "21 files"]), ("pl", ["=1 file", "22 files", "21 files", "21 files"]),
        ("fr", ["=1 file", "0 files", "21 files"]),  # one: also 0
        ("ru", ["=1 file", "21 files", "22 files", "25 files", "25 files"]),
    ],
)  # fmt: skip
def test_one_is_not_added_beside_an_arm_for_1_that_says_it(
    target: str, expected: list[str]
) -> None:
    assert texts_of("{n, plural, =1{=1 file} other{# files}}", target) == expected


def test_arms_for_1_and_one_of_a_source_both_stay() -> None:
    text = "{n, plural, =1{just one} one{# file} other{# files}}"
    assert texts_of(text) == ["just one", "1 file", "21 files"]
    assert message(text).spelled(texts_of(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "plain {name}",
        "{a, plural, one{x}}",
        "{a, plural, one{x} other{y}",
        "{a, plural, one{x} one{z} other{y}}",
        "{a, plural, offset:1 one{# x} other{# y}} {b, plural, one{# x} other{# y}}",
        "{a, plural, one{# x} other{# y}} {a, plural, offset:1 one{# x} other{# y}}",
        "{a, plural, lots{x} other{y}}",
        "{a, plural, other{x}}}",
        "{a, select, other{'{x}}",
        "".join(f"{{a{n}, select, x{{x}} other{{y}}}}" for n in range(9)),
        "{a, select, other{" * 50 + "x" + "}}" * 50,
        "{a, select, other{x}}" + "x" * 70_000,
        "{a, select, other{x}} and {\0}",  # a NUL is the count while a sentence is spelled
        "".join(f"{{a{n}, select, other{{x}}}}" for n in range(14)),
    ],
)
def test_what_is_no_message_with_arms_is_none(text: str) -> None:
    assert parsed(text, Options("de", "en")) is None


def test_a_translation_that_is_too_long_to_be_read_leaves_the_source() -> None:
    text = "{n, plural, one{# file} other{# files}}" + " word" * 8_000
    found = message(text)
    texts = [each.text.replace("word", "Wort") for each in found.segments("k")]
    assert found.spelled(texts) == text


def test_as_many_selects_as_can_be_read_are_nested() -> None:
    text = "".join(f"{{a{n}, select, other{{word}}}}" for n in range(12))
    found = message(text)
    assert texts_of(found.spelled(["Wort"])) == ["Wort"]


def test_a_number_that_did_not_come_back_leaves_the_source() -> None:
    assert message(FILES).spelled(["1 Datei", "viele Dateien"]) == (
        "{n, plural, one{# Datei} other{You have # files in {folder}}}"
    )


def test_the_form_of_1_alone_may_have_its_number_as_a_word() -> None:
    found = message(FILES)
    assert [each.number_optional for each in found.segments("k")] == [True, False]
    output = found.spelled(["eine Datei #", "21 Dateien"])
    assert output == "{n, plural, one{eine Datei '#'} other{# Dateien}}"
    again = message(output)
    assert [each.text for each in again.segments("k")] == ["eine Datei #", "21 Dateien"]
    assert again.signature == found.signature
    exact = message("{n, plural, =1{# file} other{# files}}", "ja")
    assert exact.spelled(["一個", "21個"]) == "{n, plural, =1{一個} other{#個}}"
    for target in ("fr", "ru"):
        assert not any(each.number_optional for each in message(FILES, target).segments("k"))
    assert message(FILES, "fr").spelled(["un", None]) == message(FILES, "fr").spelled([None] * 2)


def test_arms_that_stay_do_not_hide_the_forms_of_a_translation() -> None:
    found = message("{n, plural, zero{no file} one{# file} other{# files}}", "ru")
    wanted = ["\u043d\u0435\u0442", "21 a", "22 b", "25 c", "25 d"]
    again = message(found.spelled(wanted), "ru")
    assert [each.text for each in again.segments("k")] == wanted


def test_the_general_form_serves_where_a_number_did_not_come_back() -> None:
    found = message(FILES, "ru")
    segments = found.segments("k")
    texts, changed = settled(segments, ["eins", "22 b", "25 c", "25 c"])
    assert (texts, changed) == (["21 c", "22 b", "25 c", "25 c"], [0])


@pytest.mark.parametrize("target", ["de", "ru", "ar", "ja"])
@pytest.mark.parametrize("text", [FILES, MIXED, "{n, plural, offset:1 one{# a b} other{# c d}}"])
def test_what_is_written_reads_back(text: str, target: str) -> None:
    found = message(text, target)
    wanted = [f"[de] {each.text}" for each in found.segments("k")]
    again = message(found.spelled(wanted), target)
    assert [each.text for each in again.segments("k")] == wanted
    assert again.signature == found.signature
    assert message(found.spelled([None] * len(wanted)), target).signature == found.signature


def oracle(text: str) -> object:
    return Parser({"allow_tags": False}).parse(text)


_quoting = st.one_of(
    translations,
    st.text(st.sampled_from("'{}#|x n{name}"), min_size=1, max_size=12).map(lambda x: f"a{x}b"),
)


@given(_quoting, st.booleans())
def test_any_text_reads_back_and_the_oracle_accepts_it(text: str, doubled: bool) -> None:
    apostrophe = "it''s" if doubled else "it"
    text = f"ab {text}"
    found = message(f"{{n, plural, one{{{apostrophe} one}} other{{{apostrophe} # x}}}}")
    output = found.spelled([text, f"21 {text}"])
    again = message(output)
    oracle(output)
    first, second = again.segments("k")
    if "2" not in text and "{n}" not in text:
        assert second.text == f"21 {text}"
    assert first.text == text


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("text", [*HOSTILE, "l'{name}", "'", "''", "'{", "}'", "{}", "'#'", "a'"])
def test_spelled_text_means_the_same_to_the_oracle(text: str, counted: bool) -> None:
    inside = spelled(text, counted=counted, hash_counts=False, doubled=False)
    written = (
        f"{{n, plural, other{{{inside}}}}}" if counted else f"{{n, select, other{{{inside}}}}}"
    )
    (choice,) = Parser({"allow_tags": False}).parse(written)
    parts = choice["options"]["other"]
    meant = "".join(each if isinstance(each, str) else f"{{{each['name']}}}" for each in parts)
    assert meant == text


@given(st.text(st.sampled_from("{}'#, nplural,other=1select"), max_size=40))
def test_a_random_text_is_parsed_or_refused(text: str) -> None:
    try:
        nodes_of(text)
    except NoMessage:
        return


@pytest.mark.parametrize("body", ["{", "'", "#", "{x}", "''", "{x,", "}", "'{", "x", "<b>"])
def test_twice_the_message_takes_twice_the_steps(body: str) -> None:
    def call(size: int) -> Callable[[], object]:
        text = "{n, plural, other{" + body * size + "}}"

        def work() -> None:
            found = parsed(text, Options("ar", "en"))
            if found is not None:
                found.spelled([None] * len(found.segments("k")))

        return work

    assert_linear(call, 500)
