"""The fingerprint is the SHA-256 of the canonical JSON, by the fast and the slow encoder."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import Any

import pytest
import rfc8785
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_schemas.fingerprint import OUTSIDE_THE_FINGERPRINT, fingerprint

# Other tests share the machine, so slowness is not a failure here.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
INTEGERS = st.integers(1 - 2**53, 2**53 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | st.text()
NAMES = st.text(max_size=6) | st.sampled_from(sorted(OUTSIDE_THE_FINGERPRINT))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
# Without floats and non-ASCII names the fast encoder is used.
PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(max_codepoint=127), max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def by_the_book(fields: dict[str, Any]) -> str:
    kept = {n: v for n, v in without_nulls(fields).items() if n not in OUTSIDE_THE_FINGERPRINT}
    return sha256(rfc8785.dumps(kept)).hexdigest()


@UNHURRIED
@given(st.dictionaries(NAMES, VALUES))
def test_any_record_has_the_fingerprint_of_its_canonical_json(fields: dict[str, Any]) -> None:
    assert fingerprint(fields) == by_the_book(fields)


@UNHURRIED
@given(st.dictionaries(st.text(st.characters(max_codepoint=127)), PLAIN_VALUES))
def test_the_fast_path_spells_the_same_bytes(fields: dict[str, Any]) -> None:
    assert fingerprint(fields) == by_the_book(fields)


@UNHURRIED
@given(st.dictionaries(NAMES, VALUES), st.randoms())
def test_the_order_of_members_does_not_matter(fields: dict[str, Any], random: Any) -> None:
    shuffled = list(fields.items())
    random.shuffle(shuffled)
    assert fingerprint(dict(shuffled)) == fingerprint(fields)


@pytest.mark.parametrize("name", sorted(OUTSIDE_THE_FINGERPRINT))
def test_six_names_count_only_in_nested_objects(name: str) -> None:
    assert fingerprint({"text": "x", name: 1}) == fingerprint({"text": "x"})
    assert fingerprint({"in": {name: 1}}) != fingerprint({"in": {}})


def test_the_spelling_of_a_whole_number_does_not_matter() -> None:
    assert fingerprint({"n": 1.0}) == fingerprint({"n": 1})
    assert fingerprint({"n": True}) != fingerprint({"n": 1})


def test_a_string_enum_is_its_value() -> None:
    level = StrEnum("level", {"OFF": "off"})
    assert fingerprint({"level": level("off")}) == fingerprint({"level": "off"})


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), 2**53, -(2**53), "\ud800", {1}, b"x", ["\udfff"]],
)
def test_what_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        fingerprint({"x": value})


def test_endless_nesting_is_refused() -> None:
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(ValueError, match="100 levels"):
        fingerprint({"x": ring})
