"""Tests of Apple's string catalogs: localizations of the target language, plurals, states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.plurals.rules import settled
from dragoman_documents.read_back import SkeletonDiffers, differing
from dragoman_documents.registry import codec
from support.documents.laws import HOSTILE, assert_identity, assert_read_back

CODEC = codec("xcstrings")
POLISH = Options("pl", "en")


def unit(value: str, state: str = "translated") -> dict[str, Any]:
    return {"stringUnit": {"state": state, "value": value}}


def plural(**forms: str) -> dict[str, Any]:
    return {"variations": {"plural": {name: unit(each) for name, each in forms.items()}}}


def catalog(**strings: object) -> bytes:
    value = {"sourceLanguage": "en", "strings": strings, "version": "1.0"}
    text = json.dumps(value, indent=2, separators=(",", " : "), ensure_ascii=False)
    return text.replace("{}", "{\n\n    }").encode()


def localized(**localizations: object) -> dict[str, Any]:
    return {"localizations": localizations}


def translated(
    data: bytes, texts: Sequence[str | None] = (), options: Options = POLISH
) -> dict[str, Any]:
    """Return the strings of the output, which must look as Xcode would write them."""
    extraction = assert_identity(CODEC, data, options)
    given = texts or [f"[{options.target_lang}] {each.text}" for each in extraction.segments]
    held, _ = settled(extraction.segments, given)
    output = assert_read_back(CODEC, data, held, options)
    value = json.loads(output)
    assert output == catalog(**value["strings"])
    strings: dict[str, Any] = value["strings"]
    return strings


FILES = plural(one="%lld file", other="%lld files")


def test_keys_without_a_source_text_are_translated_themselves() -> None:
    found = translated(catalog(Hello={}, Bye={"extractionState": "manual"}))
    assert found["Hello"] == localized(pl=unit("[pl] Hello"))
    assert found["Bye"] == {"extractionState": "manual", **localized(pl=unit("[pl] Bye"))}


def test_a_localization_has_its_place_in_the_alphabet() -> None:
    entry = {"comment": "c", **localized(de=unit("Ja"), en=unit("Yes"), zh=unit("x")),
             "shouldTranslate": True}  # fmt: skip
    found = translated(catalog(key=entry))["key"]
    assert list(found) == ["comment", "localizations", "shouldTranslate"]
    assert list(found["localizations"]) == ["de", "en", "pl", "zh"]
    found = translated(catalog(key=entry), options=Options("aa", "en"))["key"]
    assert list(found["localizations"]) == ["aa", "de", "en", "zh"]


@pytest.mark.parametrize(
    ("lang", "forms"),
    [("de", "one other"), ("pl", "few many one other"), ("ja", "other"), ("tlh", "one other")],
)
def test_plurals_get_the_forms_of_the_language(lang: str, forms: str) -> None:
    found = translated(catalog(key=localized(en=FILES)), options=Options(lang, "en"))
    held = found["key"]["localizations"][lang]
    assert held == plural(**{
        form: f"[{lang}] %lld file{'' if form == 'one' else 's'}" for form in forms.split()
    })  # fmt: skip


def test_each_form_is_one_item_with_a_number_and_one_that_lost_it_gets_the_general_one() -> None:
    data = catalog(key=localized(en=FILES))
    segments = CODEC.extract(data, POLISH).segments
    assert [(each.plural, each.text) for each in segments] == [
        ("one", "1 file"), ("few", "22 files"), ("many", "21 files"), ("other", "21 files"),
    ]  # fmt: skip
    found = translated(data, ["1 a", "b", "21 c", "21 d"])["key"]["localizations"]["pl"]
    assert found == plural(few="%lld d", many="%lld c", one="%lld a", other="%lld d")


def test_translations_that_are_there_are_targets_with_their_states() -> None:
    data = catalog(
        a=localized(pl=unit("x")), b=localized(pl=unit("y", "needs_review")),
        c=localized(pl=unit("z", "new")), d=localized(en=FILES, pl=plural(one="%lld p")),
    )  # fmt: skip
    segments = CODEC.extract(data, POLISH).segments
    assert [(each.state, each.target) for each in segments] == [
        ("done", "x"), ("draft", "y"), ("empty", None), ("done", "1 p"), *[("empty", None)] * 3,
    ]  # fmt: skip


def test_drafts_need_review_and_forms_without_translation_are_new() -> None:
    data = catalog(a={}, b=localized(en=FILES))
    extraction = CODEC.extract(data, POLISH)
    options = replace(POLISH, drafts=frozenset({0, 1}))
    texts = ["x", "1 y", None, None, "21 z"]
    output = json.loads(CODEC.splice(data, extraction, texts, options))["strings"]
    assert output["a"] == localized(pl=unit("x", "needs_review"))
    held = output["b"]["localizations"]["pl"]["variations"]["plural"]
    assert [(name, each["stringUnit"]) for name, each in held.items()] == [
        ("few", {"state": "new", "value": "%lld files"}),
        ("many", {"state": "new", "value": "%lld files"}),
        ("one", {"state": "needs_review", "value": "%lld y"}),
        ("other", {"state": "translated", "value": "%lld z"}),
    ]


@pytest.mark.parametrize(
    ("entry", "remarks"),
    [
        ({"shouldTranslate": False}, 0),
        ({"extractionState": "stale"}, 0),
        (localized(en=unit("42")), 0),
        (localized(en={"variations": {"device": {"mac": unit("Click")}}}), 1),
        (localized(en={"stringUnit": {}, "substitutions": {}}), 1),
        (localized(pl={"variations": {"device": {"mac": unit("Click")}}}), 1),
        (localized(en=plural(few="%d a", other="%d b")), 1),
        (localized(en=plural(one="%d a")), 1),
        ("a text", 1),
        (["x"], 1),
        (None, 1),
        ({"localizations": "en"}, 1),
        (localized(en="a text"), 1),
    ],
)
def test_other_entries_are_left_alone(entry: object, remarks: int) -> None:
    extraction = assert_identity(CODEC, catalog(key=entry), POLISH)
    assert (len(extraction.segments), len(extraction.remarks)) == (0, remarks)


def test_a_catalog_of_the_target_language_itself_has_no_segments() -> None:
    extraction = assert_identity(CODEC, catalog(Hello={}), Options("en", "de"))
    assert (extraction.segments, len(extraction.remarks)) == ((), 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{}", "wrong_type"),
        (b'{"sourceLanguage": "en"}', "wrong_type"),
        (b'{"sourceLanguage": "en", "strings": ["Hello"]}', "wrong_type"),
        (b"", "corrupt"),
        (b'{"a": 1, "a": 2}', "corrupt"),
        (b"[" * 129 + b"]" * 129, "bomb"),
        (b"[" * 100_000, "bomb"),
        ('{"sourceLanguage": "en", "strings": {"Größe": {}}}'.encode("cp1252"), "encoding"),
    ],
)
def test_other_files_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        CODEC.extract(data, POLISH)
    assert caught.value.reason == reason


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text(text: str) -> None:
    translated(catalog(Hello={}), [text])


def test_a_file_on_one_line_stays_on_one_line_and_other_line_ends_stay() -> None:
    compact = b'{"sourceLanguage":"en","strings":{"Hello":{}}}'
    assert b"\n" not in assert_read_back(CODEC, compact, ["Cześć"], POLISH)
    data = catalog(Hello={}).replace(b"\n", b"\r\n").replace(b"  ", b"\t")
    output = assert_read_back(CODEC, data, ["Cześć"], POLISH)
    assert output.count(b"\n") == output.count(b"\r\n")
    assert b"  " not in output


def test_a_change_beside_the_localization_is_noticed() -> None:
    data = catalog(Hello=localized(de=unit("Hallo")), Bye={})
    extraction = CODEC.extract(data, POLISH)
    output = CODEC.splice(data, extraction, ["x", "y"], POLISH)
    assert differing(CODEC, output, extraction, ["x", "y"], POLISH) == []
    for old, new in [(b"Hallo", b"Hullo"), (b'"de"', b'"fr"'), (b"Bye", b"By"), (b"1.0", b"2.0")]:
        with pytest.raises(SkeletonDiffers):
            differing(CODEC, output.replace(old, new, 1), extraction, ["x", "y"], POLISH)


_units = st.sampled_from([unit("a b"), unit("%d of 21"), unit("%lld", "new"), unit(""), {}])
_forms = st.dictionaries(st.sampled_from(["zero", "one", "few", "other"]), _units, max_size=3)
_localizations = _units | _forms.map(lambda forms: {"variations": {"plural": forms}})
_entries = st.dictionaries(st.sampled_from(["en", "pl", "de", "zh"]), _localizations, max_size=3)


@given(
    st.dictionaries(
        st.sampled_from(["a b", "%lld c", "", "<g1>"]), _entries.map(lambda each: localized(**each))
    ),
    st.sampled_from(["de", "pl", "ja"]),
)
@settings(deadline=None)
def test_any_catalog_reads_back(strings: dict[str, Any], lang: str) -> None:
    data, options = catalog(**strings), Options(lang, "en")
    extraction = assert_identity(CODEC, data, options)
    texts = [f"x {each.text}" for each in extraction.segments]
    held, _ = settled(extraction.segments, texts)
    assert_read_back(CODEC, data, held, options)
