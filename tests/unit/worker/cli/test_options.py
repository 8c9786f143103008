"""Values of `--set` are JSON where they can be, otherwise text."""

from __future__ import annotations

import pytest

from dragoman_worker.cli.options import parse_pairs


@pytest.mark.parametrize("value", ["plain", "[1", "9" * 5_000, "[" * 100_000])
def test_a_value_that_is_no_json_is_text(value: str) -> None:
    assert parse_pairs([f"kafka.group_id={value}"]) == {"kafka.group_id": value}


def test_a_value_may_be_json_and_hold_an_equals_sign() -> None:
    assert parse_pairs(['engine.options={"a": "b=c"}']) == {"engine.options": {"a": "b=c"}}
