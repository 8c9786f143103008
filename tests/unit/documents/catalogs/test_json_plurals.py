"""Tests of the plural keys of i18next in the forms of the target language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_documents.catalogs.json.codec import CODECS
from dragoman_documents.codec import Options
from dragoman_documents.plurals.rules import settled
from dragoman_documents.read_back import SkeletonDiffers, differing
from support.documents.laws import assert_identity, assert_read_back

CODEC = CODECS["json"]
CART = """{
  "cart": {
    "item_one": "{{count}} item",
    "item_other": "{{count}} items"
  },
  "end": "The end"
}"""


def translated(text: str, options: Options, texts: Sequence[str | None] = ()) -> str:
    extraction = assert_identity(CODEC, text.encode(), options)
    given = texts or [f"[{options.target_lang}] {each.text}" for each in extraction.segments]
    held, _ = settled(extraction.segments, given)
    return assert_read_back(CODEC, text.encode(), held, options).decode()


def keys(members: Mapping[str, object], lang: str, source: str = "en") -> list[str]:
    return list(json.loads(translated(json.dumps(members), Options(lang, source))))


@pytest.mark.parametrize(
    ("lang", "forms"),
    [
        ("de", ["one", "other"]),
        ("pl", ["one", "few", "many", "other"]),
        ("ja", ["other"]),
        ("ar", ["zero", "one", "two", "few", "many", "other"]),
        ("tlh", ["one", "other"]),  # unknown to Babel
    ],
)
def test_keys_are_those_of_the_language_with_the_order_and_indentation_of_the_source(
    lang: str, forms: Sequence[str]
) -> None:
    members = ",\n".join(
        f'    "item_{form}": "[{lang}] {{{{count}}}} item{"" if form == "one" else "s"}"'
        for form in forms
    )
    assert translated(CART, Options(lang, "en")) == (
        f'{{\n  "cart": {{\n{members}\n  }},\n  "end": "[{lang}] The end"\n}}'
    )


def test_each_form_is_one_item_with_a_number_of_it() -> None:
    segments = CODEC.extract(CART.encode(), Options("pl", "en")).segments
    assert [(each.plural, each.text, each.place) for each in segments[:4]] == [
        ("one", "1 item", "cart.item"), ("few", "22 items", "cart.item"),
        ("many", "21 items", "cart.item"), ("other", "21 items", "cart.item"),
    ]  # fmt: skip


def test_a_form_without_its_number_gets_the_general_one() -> None:
    output = translated(CART, Options("pl", "en"), ["1 a", "b", "21 c", "21 d", "e"])
    assert json.loads(output)["cart"]["item_few"] == "{{count}} d"


def test_keys_stay_while_none_of_them_has_a_translation() -> None:
    output = translated(CART, Options("pl", "en"), [None] * 4 + ["Koniec"])
    assert output == CART.replace("The end", "Koniec")


def test_a_key_for_zero_stays_in_every_language_and_ordinals_have_their_own_forms() -> None:
    bags = {"bag_zero": "No bags", "bag_one": "One bag", "bag_other": "{{count}} bags"}
    assert keys(bags, "ja") == ["bag_zero", "bag_other"]
    places = {"place_ordinal_one": "{{count}}st place", "place_ordinal_other": "{{count}}th place"}
    assert keys(places, "it") == ["place_ordinal_many", "place_ordinal_other"]


def test_a_form_is_translated_from_the_text_that_its_number_has_in_the_source() -> None:
    places = {"p_ordinal_one": "{{count}}st place", "p_ordinal_other": "{{count}}th place"}
    segments = CODEC.extract(json.dumps(places).encode(), Options("it", "en")).segments
    assert [(each.plural, each.text) for each in segments] == [
        ("many", "80th place"), ("other", "21st place"),
    ]  # fmt: skip


def test_a_source_with_one_form_gets_all_of_the_target() -> None:
    assert keys({"item_other": "{{count}} X"}, "pl", "ja") == [
        "item_one", "item_few", "item_many", "item_other",
    ]  # fmt: skip
    output = translated('{\n  "a_other": "{{count}} X"}', Options("de", "ja"))
    assert output == '{\n  "a_one": "[de] {{count}} X",\n  "a_other": "[de] {{count}} X"}'


@pytest.mark.parametrize(
    ("members", "remarks"),
    [
        ({"button_one": "First", "button_other": "Another"}, 0),  # no count: not of one message
        ({"item_one": "{{count}} item"}, 1),
        ({"item_few": "{{count}} items", "item_other": "{{count}} items"}, 1),
        ({"item_one": "{{count}} item", "x": 1, "item_other": "{{count}} items"}, 2),
        ({"item_one": "{{count}}", "item_other": "{{count}} items"}, 1),
        ({"item_one": "{{count}} item", "item_other": "{{count}} items", "item_few": None}, 1),
        ({"item_many": {}, "item_one": "{{count}} item", "item_other": "{{count}} items"}, 1),
    ],
)
def test_keys_that_are_no_plural_message_are_translated_as_they_are(
    members: Mapping[str, object], remarks: int
) -> None:
    data = json.dumps(members).encode()
    assert len(CODEC.extract(data, Options("pl", "en")).remarks) == remarks
    assert keys(members, "pl") == list(members)


@pytest.mark.parametrize(
    "text",
    [
        '{"a_one": "{{count}} x", "a_one": "{{count}} x", "a_other": "{{count}} y"}',
        '{"a_one": "{{count}} x", /* y */ "a_other": "{{count}} y"}',
        '{"a\\u005fone": "{{count}} x", "a_other": "{{count}} y"}',
        '{"a_one" /* x */: "{{count}} x", "a_other": "{{count}} y"}',
    ],
)
def test_members_that_cannot_be_written_anew_stay(text: str) -> None:
    assert translated(text, Options("ja", "en")).count('":') == text.count('":')


def test_keys_select_plural_messages_whole() -> None:
    options = replace(Options("pl", "en"), keys=("cart.item_one",))
    assert [each.text for each in CODEC.extract(CART.encode(), options).segments] == [
        "{{count}} item"
    ]
    options = replace(options, keys=("cart.*",))
    assert len(CODEC.extract(CART.encode(), options).segments) == 4


def test_a_change_beside_the_forms_is_noticed() -> None:
    options = Options("pl", "en")
    extraction = CODEC.extract(CART.encode(), options)
    texts = [f"x {each.text}" for each in extraction.segments]
    output = CODEC.splice(CART.encode(), extraction, texts, options)
    assert differing(CODEC, output, extraction, texts, options) == []
    for old, new in [
        (b"item_", b"thing_"), (b"item_few", b"item_two"),
        (b'    "item_one"', b'"a": 1, "item_one"'),
        (b'"item_one"', b'"item_zero": "z", "item_one"'),
        (b',\n    "item_other"', b',"x": "y", "item_other"'), (b'  "end"', b'"end"'),
        (b"item_few", b"item_many"), (b"}", b',"more": "z"}'),
    ]:  # fmt: skip
        with pytest.raises(SkeletonDiffers):
            differing(CODEC, output.replace(old, new, 1), extraction, texts, options)


_names = st.sampled_from(
    [
        f"{base}_{form}"
        for base in ("a", "a_ordinal", "")
        for form in ("zero", "one", "few", "other")
    ]
)
_values = st.sampled_from(["{{count}} a", "a b", "{{count}} of {{count}} a", "{{count}} 21 a", 1])


@given(
    st.lists(st.tuples(_names, _values), max_size=6),
    st.sampled_from(["de", "pl", "ja", "fr"]),
    st.sampled_from([None, 2]),
)
@settings(deadline=None)
def test_any_members_read_back(
    members: Sequence[tuple[str, object]], lang: str, indent: int | None
) -> None:
    translated(json.dumps([dict(members), dict(members[:2])], indent=indent), Options(lang, "en"))
