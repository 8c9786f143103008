"""Tests of the bytes of stored glossaries, and of the tags under which terms are looked up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_schemas.glossaries import (
    GlossaryEntry,
    UnreadableGlossary,
    decode_meta,
    decode_terms,
    digest_of,
    encode_terms,
)
from dragoman_schemas.languages import lookup_tags, other_script_tag

TERMS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
ENTRIES = st.builds(
    GlossaryEntry,
    TERMS,
    st.lists(TERMS, min_size=1, max_size=4).map(tuple),
    st.booleans(),
    st.none() | TERMS,
)


@given(st.lists(ENTRIES, max_size=8))
def test_terms_survive_their_bytes(entries: list[GlossaryEntry]) -> None:
    assert list(decode_terms(encode_terms(entries))) == entries


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_other_json_is_unreadable_and_raises_nothing_else(value: object) -> None:
    try:
        list(decode_terms(json.dumps(value).encode()))
    except UnreadableGlossary:
        return
    assert isinstance(value, list)


def test_blanks_between_terms_are_allowed() -> None:
    assert list(decode_terms(b' [ ["a", ["b"]] ,\n["c", ["d"], {}] ] ')) == [
        GlossaryEntry("a", ("b",)),
        GlossaryEntry("c", ("d",)),
    ]
    assert list(decode_terms(b"[ ]")) == []


def test_options_that_a_newer_client_writes_are_ignored() -> None:
    terms = b'[["a",["b"],{"case_sensitive":"x","note":7,"gender":"f"}]]'
    assert list(decode_terms(terms)) == [GlossaryEntry("a", ("b",))]


@pytest.mark.parametrize("terms", [b'[["\\ud800",["a"]]]', b'[["a",["\\ud800"]]]'])
def test_terms_with_a_lone_surrogate_are_unreadable(terms: bytes) -> None:
    with pytest.raises(UnreadableGlossary):
        list(decode_terms(terms))


@pytest.mark.parametrize(
    ("source_lang", "read"),
    [
        (None, None),
        ("en", "en"),
        ("EN_us", "en-US"),
        ("not a tag!", "unreadable"),
        ("", "unreadable"),
    ],
)
def test_a_source_language_is_normalised_and_an_invalid_one_unreadable(
    source_lang: str | None, read: str | None
) -> None:
    meta = {"version": 1, "digest": "0" * 64, "source_lang": source_lang, "counts": {}}
    value = json.dumps(meta | {"created_at": "", "updated_at": ""}).encode()
    if read == "unreadable":
        with pytest.raises(UnreadableGlossary):
            decode_meta(value)
    else:
        assert decode_meta(value).source_lang == read


def test_the_digest_changes_with_term_language_and_source() -> None:
    terms = {"de": b"[1]", "fr": b"[2]"}
    others = [
        digest_of("en", terms),
        digest_of(None, terms),
        digest_of("en", {"de": b"[2]", "fr": b"[1]"}),
        digest_of("en", {"de": b"[1]"}),
    ]
    assert len(set(others)) == len(others)
    assert digest_of("en", dict(reversed(terms.items()))) == others[0]


@pytest.mark.parametrize(
    ("tag", "tags"),
    [
        ("de", ("de",)),
        ("de-CH", ("de-CH", "de")),
        ("zh", ("zh", "zh-Hans")),
        ("zh-SG", ("zh-SG", "zh-Hans", "zh")),
        ("zh-TW", ("zh-TW", "zh-Hant")),
        ("zh-Hant-HK", ("zh-Hant-HK", "zh-Hant")),
        ("sr-Latn", ("sr-Latn",)),
        ("sr-RS", ("sr-RS", "sr-Cyrl", "sr")),
        ("pa-Arab", ("pa-Arab",)),
    ],
)
def test_a_tag_is_looked_up_with_its_likely_script_and_as_a_language_of_that_script(
    tag: str, tags: tuple[str, ...]
) -> None:
    assert lookup_tags(tag) == tags


def test_a_held_tag_in_another_script_is_found_and_invalid_ones_ignored() -> None:
    held = ["zh", "zh-Hans", "zh-HK", "de", "zh-!", "", "zh-" + "x" * 1_000]
    assert other_script_tag("zh-TW", held) == "zh"
    assert other_script_tag("de", held) is None
