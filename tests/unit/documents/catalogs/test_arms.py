"""Tests of messages within messages: intervals of i18next, choices of Java, two counts of ICU."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.catalogs.json.codec import CODECS as JSON_CODECS
from dragoman_documents.catalogs.properties.codec import CODECS
from dragoman_documents.codec import Codec, Options
from dragoman_documents.putting_back import put_back
from support.documents.laws import GERMAN, assert_itself_again, assert_linear, assert_read_back

JSON, PROPERTIES = JSON_CODECS["json"], CODECS["properties"]
POLISH = Options("pl", "en")
INTERVAL = '{"n_interval": "(1){one item};(2-7){ a few {{count}} };(0){};(8-inf){many};"}'
CHOICE = "n=There {0,choice,0#are no files|1#is one file|1<are {0,number,integer} files}.\n"


def texts_of(codec: Codec, data: str, options: Options = GERMAN) -> list[str]:
    assert_itself_again(codec, data.encode(), options)
    return [each.text for each in codec.extract(data.encode(), options).segments]


@pytest.mark.parametrize("brackets", ["{}", "[]"])
def test_arms_of_an_interval_are_texts_and_its_bounds_are_not(brackets: str) -> None:
    """In brackets as version 3 of i18next's plugin reads them, in braces as version 2 does."""
    table = str.maketrans({"{": brackets[0], "}": brackets[1]})
    data = INTERVAL.replace("{{count}}", "$t(n)").translate(table)
    data = f"{{{data[1:-1]}}}".replace("$t(n)", "{{count}}")
    assert texts_of(JSON, data) == ["one item", "a few {{count}}", "many"]
    texts = ["[de] ein Ding", "einige {{count}}", "viele (und mehr)"]
    expected = data.replace("one item", texts[0]).replace("a few {{count}}", texts[1])
    output = assert_read_back(JSON, data.encode(), texts).decode()
    assert output == expected.replace("many", texts[2])


@pytest.mark.parametrize("text", ["eins; zwei", "ein {s}", "1"])
def test_a_translation_that_would_end_its_arm_keeps_the_source(text: str) -> None:
    found = JSON.extract(INTERVAL.encode(), GERMAN)
    done = put_back(JSON, INTERVAL.encode(), found, [text, "einige", "viele"], GERMAN)
    assert done.data.decode() == INTERVAL.replace("a few {{count}}", "einige").replace(
        "many", "viele"
    )


@pytest.mark.parametrize(
    "value", ["(1){a b};and (2){c d};", "(see below){a b};", "(1) one, (2) two"]
)
def test_text_in_brackets_is_no_interval(value: str) -> None:
    assert texts_of(JSON, f'{{"a": "{value}"}}') == [value]


def test_each_arm_of_a_choice_is_a_sentence() -> None:
    assert texts_of(PROPERTIES, CHOICE) == [
        "There are no files.", "There is one file.", "There are <x1/> files.",
    ]  # fmt: skip
    texts = ["Keine Dateien.", "There is eine Datei.", None]
    output = assert_read_back(PROPERTIES, CHOICE.encode(), texts).decode()
    assert output == (
        "n={0,choice,0#Keine Dateien|1#There is eine Datei|1<There are {0,number,integer} files}.\n"
    )


def test_apostrophes_in_a_choice_are_spelled_as_java_reads_them() -> None:
    """Two, and four in an arm with an argument, by java.text.MessageFormat of OpenJDK 17."""
    texts: list[str | None] = ["L'un.", "L'autre.", "Les <x1/> d'ici."]
    output = assert_read_back(PROPERTIES, CHOICE.encode(), texts).decode()
    assert output == "n={0,choice,0#L''un|1#L''autre|1<Les {0,number,integer} d''''ici}.\n"
    assert texts_of(PROPERTIES, output) == texts


@pytest.mark.parametrize(
    "value",
    [
        "a {0,choice,0#b|1#c} {1,choice,0#d|1#e}", "a {0,choice,0#b|1#{1,choice,0#c|1#d}}",
        "a {0,choice,0#it's|1#c}", "a {0,choice,0#b|1<it''s {0}}", "a {0,choice,b|c}",
        "a {0,choice,0#b", "a {0,choice,0#b|1#c<d}", "It's {0,choice,0#b|1#c}",
        "{n, plural, one{a b}}",
    ],
)  # fmt: skip
def test_other_choices_are_left_with_a_remark(value: str) -> None:
    found = PROPERTIES.extract(f"n={value}\n".encode(), GERMAN)
    assert [each.kind for each in found.remarks] == ["message"]
    assert not found.segments


@pytest.mark.parametrize("text", ["a|b", "a <b>c</b>", "a #1", "{x", "a}"])
def test_a_translation_that_a_choice_cannot_hold_keeps_the_source(text: str) -> None:
    found = PROPERTIES.extract(CHOICE.encode(), GERMAN)
    done = put_back(PROPERTIES, CHOICE.encode(), found, [text, None, None], GERMAN)
    assert done.data == CHOICE.encode()
    assert done.changed == [0]


ARM = st.sampled_from(["", "a b", " c {0}", "it''s", "it''''s {0,number,integer}", "d {1} "])
AROUND = st.sampled_from(["", "There ", " isn''t {1}", ".", "{0}"])
GIVEN = st.sampled_from([None, "x", "x'y z", "l'x {0}", "There x.", "There ", "<x1/> w", "'"])


@given(AROUND, st.lists(ARM, min_size=1, max_size=4), AROUND, st.lists(GIVEN, min_size=4))
def test_any_choice_reads_back(
    before: str, arms: list[str], behind: str, texts: list[str | None]
) -> None:
    spelled = "|".join(f"{index}#{arm}" for index, arm in enumerate(arms))
    data = f"n=\\ {before}{{0,choice,{spelled}}}{behind}\n".encode()
    assert_itself_again(PROPERTIES, data)
    count = len(PROPERTIES.extract(data, GERMAN).segments)
    held = [text if text and any(map(str.isalpha, text)) else None for text in texts[:count]]
    assert_read_back(PROPERTIES, data, held)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (JSON, INTERVAL), (PROPERTIES, CHOICE),
        (JSON, '{"cat": "{{count}} cat", "cat_plural": "{{count}} cats", "is_plural": "It is"}'),
    ],
)  # fmt: skip
def test_too_few_forms_for_a_language_are_a_remark(codec: Codec, data: str) -> None:
    assert len(codec.extract(data.encode(), POLISH).remarks) == 1
    assert not codec.extract(data.encode(), GERMAN).remarks


@pytest.mark.parametrize("part", ["(1){a b};", "(", "(1){", "{", ";"])
def test_intervals_take_linear_time(part: str) -> None:
    def call(size: int) -> object:
        data = f'{{"a": "(1){{a b}};{part * size}"}}'.encode()
        return lambda: JSON.extract(data, GERMAN)

    assert_linear(call, 200)  # type: ignore[arg-type]
