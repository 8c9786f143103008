"""Tests of the set of 8-byte digests by which equal lines are found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.operations.seen import SeenLines


@given(st.lists(st.binary(max_size=3)))
def test_a_line_is_new_exactly_once(lines: list[bytes]) -> None:
    seen = SeenLines()
    assert [seen.add(line) for line in lines] == [
        line not in lines[:number] for number, line in enumerate(lines)
    ]


def test_it_grows_and_forgets_no_line() -> None:
    seen, lines = SeenLines(), [str(number).encode() for number in range(20_000)]
    assert all(map(seen.add, lines))
    assert not any(map(seen.add, lines))
