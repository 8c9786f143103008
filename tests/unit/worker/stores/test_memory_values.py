"""Values of the machine tier: compact, and read tolerantly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.ports import Remembered
from dragoman_worker.stores.memory_values import decode_value, encode_value

_REMEMBERED = st.builds(
    Remembered,
    text=st.text(max_size=20),
    quality=st.sampled_from(["ok", "warn"]),
    warnings=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    checks=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=2),
)


@given(_REMEMBERED)
def test_every_translation_is_read_as_it_was_written(translation: Remembered) -> None:
    assert decode_value(encode_value(translation)) == translation


@given(st.binary(max_size=200))
def test_any_bytes_are_a_translation_or_none(value: bytes) -> None:
    decode_value(value)


def test_most_translations_take_one_byte_more_than_their_text() -> None:
    assert encode_value(Remembered("Grüße")) == "oGrüße".encode()
