"""Tests of plural messages of Android and Qt in the forms of the target language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.codec import Options
from dragoman_documents.plurals.rules import settled
from dragoman_documents.read_back import SkeletonDiffers, differing
from support.documents.laws import assert_identity, assert_read_back

ANDROID = registry.codec("android")
QT = registry.codec("qt")
PLURALS = """<resources>
  <plurals name="files">
    <item quantity="one">%1$d <b>file</b></item>
    <item quantity="other">%1$d <b>files</b></item>
  </plurals>
  <string name="a">Hello</string>
</resources>"""


def item(quantity: str, text: str) -> str:
    return f'<item quantity="{quantity}">{text}</item>'


def plurals(*items: str) -> bytes:
    return f"<resources><plurals name='p'>{''.join(items)}</plurals></resources>".encode()


def translated(data: bytes, lang: str, texts: Sequence[str | None] = ()) -> str:
    options = Options(lang, "en")
    extraction = assert_identity(ANDROID, data, options)
    given = texts or [f"[{lang}] {each.text}" for each in extraction.segments]
    forms, _ = settled(extraction.segments, given)
    return assert_read_back(ANDROID, data, forms, options).decode()


@pytest.mark.parametrize(
    ("lang", "quantities"),
    [
        ("de", "one other"),
        ("pl", "one few many other"),
        ("ja", "other"),
        ("ar", "zero one two few many other"),
        ("tlh", "one other"),  # unknown to Babel
    ],
)
def test_plurals_of_android_get_the_forms_of_the_language(lang: str, quantities: str) -> None:
    output = translated(PLURALS.encode(), lang)
    for each in ["zero", "one", "two", "few", "many", "other"]:
        noun = "file" if each == "one" else "files"
        wanted = f'\n    <item quantity="{each}">[{lang}] %1$d <b>{noun}</b></item>\n'
        assert (wanted in output) == (each in quantities.split())


def test_each_form_is_one_item_with_a_number_of_it() -> None:
    segments = ANDROID.extract(PLURALS.encode(), Options("pl", "en")).segments
    assert [(each.plural, each.text, each.number) for each in segments[:4]] == [
        ("one", "1 <g1>file</g1>", 1), ("few", "22 <g1>files</g1>", 22),
        ("many", "21 <g1>files</g1>", 21), ("other", "21 <g1>files</g1>", 21),
    ]  # fmt: skip


def test_a_source_with_one_form_gets_all_of_the_target() -> None:
    options = Options("de", "ja")
    data = plurals("\n  ", item("other", "%d X"), "\n")
    extraction = assert_identity(ANDROID, data, options)
    output = assert_read_back(ANDROID, data, ["1 Y", "21 Ys"], options)
    assert [each.plural for each in extraction.segments] == ["one", "other"]
    assert output == plurals("\n  ", item("one", "%d Y"), "\n  ", item("other", "%d Ys"), "\n")


def test_a_form_without_its_number_gets_the_general_one_and_untranslated_ones_the_source() -> None:
    output = translated(plurals(item("one", "%d I"), item("other", "%d Is")), "pl",
                        ["1 a", "b", "21 c", "21 d"])  # fmt: skip
    assert item("few", "%d d") in output
    assert translated(PLURALS.encode(), "pl", [None] * 4 + ["Cześć"]).count("<item") == 2


@pytest.mark.parametrize(
    "items",
    [
        (item("one", "%d I"), item("one", "%d I"), item("other", "%d Is")),
        (item("one", "%d I"), item("few", "%d Is"), item("other", "%d Is")),
        (item("one", "%d I"),),
        (item("one", "%d I"), item("lots", "%d Is"), item("other", "%d Is")),
        (item("one", "%d I"), "<!-- x -->", item("other", "%d Is")),
        (item("one", "@string/a"), item("other", "%d Is")),
        (item("one", ""), item("other", "%d Is")),
        ("<item quantity='one' a='b'>%d I</item>", item("other", "%d Is")),
        ("<item>%d I</item>", item("other", "%d Is")),
    ],
)
def test_items_that_are_no_plural_message_are_translated_as_they_are(items: Sequence[str]) -> None:
    data = plurals(*items)
    (remark,) = assert_identity(ANDROID, data, Options("pl", "en")).remarks
    assert remark.place == "p"
    assert translated(data, "pl").count("<item") == len(items) - ("<!-- x -->" in items)


def test_a_change_beside_the_forms_is_noticed() -> None:
    options = Options("pl", "en")
    data = plurals(item("one", "%d I"), item("other", "%d Is"))
    extraction = ANDROID.extract(data, options)
    texts = [f"x {each.text}" for each in extraction.segments]
    output = ANDROID.splice(data, extraction, texts, options)
    assert differing(ANDROID, output, extraction, texts, options) == []
    for old, new in [(b"name='p'", b"name='q'"), (b"<item ", b"<item  "), (b"few", b"two")]:
        with pytest.raises(SkeletonDiffers):
            differing(ANDROID, output.replace(old, new), extraction, texts, options)


_quantities = st.sampled_from(["zero", "one", "two", "few", "many", "other", "x"])
_texts = st.sampled_from(["%d a", "a b", "%d of %d a", "%1$d 21 a", "<b>%d</b> a", "", "%s a"])


@given(
    st.lists(st.tuples(_quantities, _texts), max_size=4), st.sampled_from(["de", "pl", "ja", "fr"])
)
@settings(deadline=None)
def test_any_plurals_of_android_read_back(items: list[tuple[str, str]], lang: str) -> None:
    translated(plurals(*(item(*each) for each in items), " "), lang)


def numerus(*forms: str, kind: str = ' type="unfinished"') -> bytes:
    held = "".join(f"\n  <numerusform>{each}</numerusform>" for each in forms)
    return (
        "<TS language='pl'><context><message numerus='yes'><source>%n file(s) &lt;</source>"
        f"<translation{kind}>{held}\n</translation></message></context></TS>"
    ).encode()


def test_numerus_forms_of_qt_are_filled_in_the_language() -> None:
    options = Options("pl", "en")
    extraction = assert_identity(QT, numerus("", "", ""), options)
    assert [each.text for each in extraction.segments] == [
        "1 file(s) <", "22 file(s) <", "21 file(s) <",
    ]  # fmt: skip
    output = assert_read_back(QT, numerus("", "", ""), ["1 a", "22 b&", "21 c"], options)
    assert output == numerus("%n a", "%n b&amp;", "%n c", kind="")


def test_numerus_forms_that_are_filled_are_targets_and_drafts_stay_unfinished() -> None:
    options = replace(Options("pl", "en"), drafts=frozenset({1}))
    extraction = QT.extract(numerus("%n x", "", ""), options)
    assert [(each.state, each.target) for each in extraction.segments] == [
        ("draft", "1 x"), ("empty", None), ("empty", None),
    ]  # fmt: skip
    output = QT.splice(numerus("%n x", "", ""), extraction, [None, "22 b", None], options)
    assert output == numerus("%n x", "%n b", "")
    output = QT.splice(numerus("%n x", "", ""), extraction, [None, "22 b", "21 c"], options)
    assert output == numerus("%n x", "%n b", "%n c")


def test_a_numerus_form_of_qt_takes_the_place_of_those_of_several_lengths() -> None:
    options = Options("pl", "en")
    lengths = "<lengthvariant>%n long</lengthvariant><lengthvariant>%n x</lengthvariant>"
    data = numerus("a", "b", "c").replace(b">a<", f" variants='yes'>{lengths}<".encode())
    extraction = QT.extract(data, options)
    assert [each.target for each in extraction.segments] == ["1 long", "b", "c"]
    assert lengths.encode() in assert_read_back(QT, data, [None, "22 b", None], options)
    output = assert_read_back(QT, data, ["1 a", None, None], options)
    assert output == numerus("%n a", "b", "c", kind="")


@pytest.mark.parametrize("forms", [(), ("",), ("", ""), ("", "", "", "")])
def test_a_message_of_qt_with_other_forms_than_the_language_is_left_alone(
    forms: Sequence[str],
) -> None:
    extraction = assert_identity(QT, numerus(*forms), Options("pl", "en"))
    (remark,) = extraction.remarks
    assert not extraction.segments
    assert "pl has 3" in remark.detail


def test_latvian_forms_of_qt_have_its_order() -> None:
    data = numerus("", "", "").replace(b"'pl'", b"'lv'")
    segments = QT.extract(data, Options("lv", "en")).segments
    assert [each.plural for each in segments] == ["one", "other", "zero"]
