"""Values and fields of approved translations."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_schemas.approved import (
    MOST_TARGET_BYTES,
    MOST_VALUE_BYTES,
    ApprovedTranslation,
    decode_approved,
    encode_approved,
    lookup_fields,
)
from dragoman_schemas.jobs import MAX_CONTEXT_BYTES, MAX_TEXT_BYTES

SAVE = ApprovedTranslation("Save", "Speichern", "de", "en", "a menu")


def test_field_is_what_the_page_says() -> None:
    """docs/reference/memory.md, for programs in other languages."""
    assert SAVE.field == hashlib.sha256(b'["Save","en","de","a menu"]').digest()
    assert SAVE.shard == hashlib.sha256(b"Save").digest()[0]
    plain = ApprovedTranslation("Grüße", "Salut", "fr")
    assert plain.field == hashlib.sha256('["Grüße","und","fr",null]'.encode()).digest()
    assert (
        encode_approved(plain).decode() == '{"source":"Grüße","target":"Salut","target_lang":"fr"}'
    )


def test_every_member_of_an_entry_makes_another_field() -> None:
    others = [
        ApprovedTranslation("save", "Speichern", "de", "en", "a menu"),
        ApprovedTranslation("Save", "Speichern", "fr", "en", "a menu"),
        ApprovedTranslation("Save", "Speichern", "de", "nl", "a menu"),
        ApprovedTranslation("Save", "Speichern", "de", "en"),
    ]
    assert len({one.field for one in (SAVE, *others)}) == 5
    assert ApprovedTranslation("Save", "Sichern", "de", "en", "a menu").field == SAVE.field


def test_fields_are_looked_up_by_context_then_target_then_source() -> None:
    found = lookup_fields("Save", "de-AT", "en-GB", "a menu")
    wanted = [
        ApprovedTranslation("Save", "x", target, source, context).field
        for context in ("a menu", None)
        for target in ("de-AT", "de")
        for source in ("en-GB", "en", None)
    ]
    assert found == wanted


def test_item_without_context_and_source_is_looked_up_once() -> None:
    assert lookup_fields("Save", "de", None, "") == [ApprovedTranslation("Save", "x", "de").field]


_PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
_CONTEXT = st.text(_PRINTABLE, min_size=1, max_size=20)
_TEXT = _CONTEXT.filter(lambda text: bool(text.strip()))  # what an import stores is not blank


@example(ApprovedTranslation("Save", "Speichern", "de", None, " "))
@given(
    st.builds(
        ApprovedTranslation,
        _TEXT,
        _TEXT,
        st.just("de"),
        st.none() | st.just("en"),
        st.none() | _CONTEXT,
    )
)
def test_every_entry_is_read_as_it_was_written(entry: ApprovedTranslation) -> None:
    assert decode_approved(encode_approved(entry)) == entry


def test_the_largest_entry_of_an_import_is_read_with_all_its_escapes() -> None:
    source, target, context = (
        "\x01" * size for size in (MAX_TEXT_BYTES, MOST_TARGET_BYTES, MAX_CONTEXT_BYTES)
    )
    entry = ApprovedTranslation(source, target, "de", "en", context)
    assert decode_approved(encode_approved(entry)) == entry


@given(st.binary(max_size=200))
def test_any_bytes_are_an_entry_or_none(value: bytes) -> None:
    decode_approved(value)


@pytest.mark.parametrize(
    "value",
    [
        b'{"source":"a","target":"\\ud800","target_lang":"de"}',
        b'{"source":"a","target":" \\n","target_lang":"de"}',
        b'{"source":"a","target":"%s","target_lang":"de"}' % (b"b" * (MOST_TARGET_BYTES + 1)),
        b'{"source":"a","target":"b","target_lang":"de"}' + b" " * MOST_VALUE_BYTES,
        b"[" * 100_000,
        b"1e999",
        b"",
    ],
)
def test_values_that_cannot_be_used_are_none(value: bytes) -> None:
    assert decode_approved(value) is None


def test_the_example_of_the_reference_page_holds() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/memory.md").read_text(encoding="utf-8")
    entry = ApprovedTranslation("Save", "any", "de", "en")
    assert entry.field.hex() in page
    assert f"`{entry.shard:02x}`" in page


def test_the_field_is_of_json_without_needless_escapes() -> None:
    entry = ApprovedTranslation('a/b <&> "é"\u2028\n', "any", "de", "en")
    written = '["a/b <&> \\"é\\"\u2028\\n","en","de",null]'
    assert entry.field == hashlib.sha256(written.encode()).digest()
