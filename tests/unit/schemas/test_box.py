"""What a publisher learns from the hash of a box, whatever wrote it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_schemas import box
from dragoman_schemas.names import Keys


def test_an_announced_bound_is_read_back() -> None:
    set_, expire = box.announce(Keys(), 42)
    fields = dict(zip(set_[2::2], set_[3::2], strict=True))
    assert set_[:2] == ("HSET", "dragoman:box")
    assert fields == {"pid": 42, "bound": box.BOUND}
    assert expire == ("EXPIRE", "dragoman:box", 60)
    assert box.bound_in([str(fields["bound"]).encode()]) == 512 * 1024


@pytest.mark.parametrize("reply", [[None], [], None, ValueError("NOPERM"), b"OK"])
def test_without_a_box_there_is_no_bound(reply: Any) -> None:
    assert box.bound_in(reply) is None


@given(st.binary() | st.text())
def test_a_bound_that_is_no_number_counts_as_the_usual_one(value: bytes | str) -> None:
    bound = box.bound_in([value])
    assert bound is not None
    assert 0 <= bound < 10**16
