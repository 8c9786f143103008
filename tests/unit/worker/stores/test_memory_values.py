"""Values of the machine tier: compact, and read tolerantly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_schemas.results import ItemResult
from dragoman_worker.ports import Remembered
from dragoman_worker.stores.memory_values import MOST_VALUE_BYTES, decode_value, encode_value

_CHECK = st.dictionaries(st.text(max_size=5), st.integers(1, 9) | st.text(max_size=5), max_size=2)
_ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)

_REMEMBERED = st.builds(
    Remembered,
    text=st.text(max_size=20).filter(str.strip),
    quality=st.sampled_from(["ok", "warn"]),
    warnings=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    checks=st.dictionaries(
        st.text(max_size=5), _CHECK.map(lambda more: more | {"verdict": "warn"}), max_size=2
    ),
)


@given(_REMEMBERED)
def test_every_translation_is_read_as_it_was_written(translation: Remembered) -> None:
    assert decode_value(encode_value(translation)) == translation


@given(st.binary(max_size=200))
def test_any_bytes_are_a_translation_or_none(value: bytes) -> None:
    decode_value(value)


def test_most_translations_take_one_byte_more_than_their_text() -> None:
    assert encode_value(Remembered("Grüße")) == "oGrüße".encode()


@given(st.sampled_from(["t", "q", "w", "c"]), _ANY_JSON)
def test_what_another_program_writes_can_be_stored_in_a_result_or_is_none(
    member: str, value: Any
) -> None:
    members = {"t": "Hallo.", "q": "warn", "w": [], "c": {}} | {member: value}
    found = decode_value(json.dumps(members).encode())
    if found is not None:
        item = ItemResult(text=found.text, checks=dict(found.checks), warnings=list(found.warnings))
        assert ItemResult.model_validate_json(item.model_dump_json()) == item


@pytest.mark.parametrize(
    "value",
    [
        b'{"t":"\\ud800","q":"ok"}',
        b'{"t":"a","q":"warn","w":["\\ud800"]}',
        b'{"t":"a","q":"ok","c":{"copy":{"verdict":"\\udfff"}}}',
        b'{"t":"a","q":"ok","c":{"copy":{"verdict":"warn","x":NaN}}}',
        b'{"t":"a","q":"ok","c":{"copy":{"verdict":"warn","x":1e999}}}',
        b'{"t":"a","q":"ok","c":{"copy":{"verdict":"warn","x":%d}}}' % 10**300,
        b'{"t":"a","q":"ok","c":{"copy":%s}}' % (b"[" * 900 + b"]" * 900),
        b'{"t":"a","q":"ok","c":{"copy":5}}',
        b'{"t":"a","q":"ok","c":{"copy":{}}}',
        b'{"t":"a","q":[]}',
        b"o",
        b"o \n",
        b'{"t":"\\u3000","q":"ok"}',
        b"o" + b"x" * MOST_VALUE_BYTES,
        b"[" * 100_000,
    ],
)
def test_values_that_no_gate_and_no_engine_leaves_are_none(value: bytes) -> None:
    assert decode_value(value) is None
