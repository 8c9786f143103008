"""Tests of plural messages in YAML, as Rails has them, in the forms of the target language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.catalogs.yaml.codec import CODECS
from dragoman_documents.codec import Options
from dragoman_documents.plurals.rules import settled
from dragoman_documents.read_back import SkeletonDiffers, differing
from support.documents.laws import assert_identity, assert_read_back

CODEC = CODECS["yaml"]
CART = """\
en:
  cart:
    items:
      one: "%{count} item"
      other: "%{count} items"
    empty: Nothing here  # yet
"""


def translated(text: str, options: Options, texts: Sequence[str | None] = ()) -> str:
    extraction = assert_identity(CODEC, text.encode(), options)
    given = texts or [f"[{options.target_lang}] {each.text}" for each in extraction.segments]
    held, _ = settled(extraction.segments, given)
    return assert_read_back(CODEC, text.encode(), held, options).decode()


def loaded(members: str, lang: str, source: str = "en") -> Any:
    return yaml.safe_load(translated(members, Options(lang, source)))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("lang", "forms"),
    [
        ("de", ["one", "other"]),
        ("pl", ["one", "few", "many", "other"]),
        ("ja", ["other"]),
        ("ar", ["zero", "one", "two", "few", "many", "other"]),
    ],
)
def test_keys_are_those_of_the_language_with_the_spelling_of_the_source(
    lang: str, forms: Sequence[str], newline: str
) -> None:
    members = "".join(
        f'      {form}: "[{lang}] %{{count}} item{"" if form == "one" else "s"}"\n'
        for form in forms
    )
    expected = f'en:\n  cart:\n    items:\n{members}    empty: "[{lang}] Nothing here"  # yet\n'
    output = translated(CART.replace("\n", newline), Options(lang, "en"))
    assert output == expected.replace("\n", newline)


def test_each_form_is_one_item_with_a_number_of_it() -> None:
    segments = CODEC.extract(CART.encode(), Options("pl", "en")).segments
    assert [(each.plural, each.text, each.place) for each in segments[:4]] == [
        ("one", "1 item", "en.cart.items"), ("few", "22 items", "en.cart.items"),
        ("many", "21 items", "en.cart.items"), ("other", "21 items", "en.cart.items"),
    ]  # fmt: skip


def test_keys_stay_while_none_of_them_has_a_translation() -> None:
    output = translated(CART, Options("pl", "en"), [None] * 4 + ["Nic"])
    assert output == CART.replace("Nothing here", "Nic")


def test_a_form_without_its_number_gets_the_general_one() -> None:
    output = translated(CART, Options("pl", "en"), ["1 a", "b", "21 c", "21 d", "e"])
    assert yaml.safe_load(output)["en"]["cart"]["items"]["few"] == "%{count} d"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a: {one: 1 X, other: '%{count} Xs'}", ["one", "few", "many", "other"]),
        ("a: {other: '%{count} Xs'}", ["one", "few", "many", "other"]),
        ("a: {\n  other: '%{count} Xs'\n}", ["one", "few", "many", "other"]),
        ("a:\n  other: \"%{count} Xs\"\nb: c", ["one", "few", "many", "other"]),
        ('a:\n  "one": User\n\n  "other": Users', ["one", "few", "many", "other"]),
        ("a:\n  zero: No Xs\n  one: One X\n  other: '%{count} Xs'",
         ["zero", "one", "few", "many", "other"]),
        ("a:\n  one: |\n    %{count} line\n    more\n  other: |\n    %{count} lines\n    more\n",
         ["one", "few", "many", "other"]),
    ],
)  # fmt: skip
def test_mappings_of_every_style_get_the_forms_of_polish(
    source: str, expected: Sequence[str]
) -> None:
    assert list(loaded(source, "pl")["a"]) == expected


def test_a_mapping_in_a_list_keeps_its_place() -> None:
    assert translated("- other: '{count} Xs'\n- end\n", Options("de", "ja")) == (
        "- one: '[de] {count} Xs'\n  other: '[de] {count} Xs'\n- \"[de] end\"\n"
    )


@pytest.mark.parametrize(
    ("source", "remarks"),
    [
        ("a: {other: Another one}", 0),  # alone and without a count: a word of a menu
        ("a: {one: First one, two: Second one, name: The name}", 0),
        ("a: {one: First one, two: Second one}", 0),
        ("a: {one: '%{count} X', other: 3}", 0),
        ("a: {one: '%{count} X', other: [List item]}", 0),
        ("a: {one: '%{count} X', other: {deep: Deep text}}", 0),
        ("a: {one: &b '%{count} X', other: '%{count} Xs'}\nc: *b", 1),
        ("a:\n  one: '%{count} X' # c\n  other: '%{count} Xs'", 1),
        ("a: {few: '%{count} X', other: '%{count} Xs'}", 1),
        ("a: {one: '%{count} X'}", 1),
        ("a: {one: '%{count}', other: '%{count} Xs'}", 1),
        ('a: {"o\\x6ee": "%{count} X", other: "%{count} Xs"}', 1),
        ("a:\n  ? one\n  : '%{count} X'\n  ? other\n  : '%{count} Xs'", 1),
        ("one: *x\nother: Another one", None),
    ],
)
def test_mappings_that_are_no_plural_message_are_translated_as_they_are(
    source: str, remarks: int | None
) -> None:
    if remarks is None:
        source = "x: &x Text of x\ny: {one: *x, other: Another one}"
    found = CODEC.extract(source.encode(), Options("pl", "en"))
    assert len(found.remarks) == (remarks or 0)
    assert [each.plural for each in found.segments] == [None] * len(found.segments)
    before, after = yaml.safe_load(source), loaded(source, "pl")
    assert list(keys_of(before)) == list(keys_of(after))


def keys_of(value: Any) -> Any:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)


def test_a_key_that_is_selected_alone_is_no_message() -> None:
    options = Options("pl", "en", keys=("**.other",))
    segments = CODEC.extract(CART.encode(), options).segments
    assert [each.text for each in segments] == ["%{count} items"]


def test_two_documents_with_one_message_each_are_two_messages() -> None:
    source = "one: User\nother: Users\n---\none: File\nother: Files\n"
    documents = list(yaml.safe_load_all(translated(source, Options("ja", "en"))))
    assert documents == [{"other": "[ja] Users"}, {"other": "[ja] Files"}]


@given(
    st.lists(st.sampled_from(["1 a", "22 b", "21 c", "x: y", "- z", "'q"]), min_size=4),
    st.sampled_from(["pl", "ar", "ja", "de"]),
)
def test_any_translations_read_back(texts: Sequence[str], lang: str) -> None:
    options = Options(lang, "en")
    count = len(CODEC.extract(CART.encode(), options).segments)
    translated(CART, options, (list(texts) * count)[:count])


def test_an_output_with_other_forms_is_not_the_output_of_its_source() -> None:
    options = Options("pl", "en")
    extraction = CODEC.extract(CART.encode(), options)
    texts: list[str | None] = ["1 a", "22 b", "21 c", "21 d", "e"]
    output = CODEC.splice(CART.encode(), extraction, texts, options)
    broken = output.replace(b"      few:", b"      two:")
    with pytest.raises(SkeletonDiffers):
        differing(CODEC, broken, extraction, texts, options)
