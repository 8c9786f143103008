"""Can a document's text reach the log by way of an error?"""

from __future__ import annotations

import pytest

from dragoman_worker.log import where

QUOTED = "the text of a document"


def test_where_tells_kind_and_place_of_an_error_but_not_its_message() -> None:
    def inner() -> None:
        raise ValueError(QUOTED)

    with pytest.raises(ValueError, match=QUOTED) as caught:
        inner()
    told = where(caught.value)
    assert "ValueError" in told
    assert "inner" in told
    assert QUOTED not in told


def test_where_tells_the_kind_of_an_error_that_was_never_raised() -> None:
    assert where(ValueError(QUOTED)) == "ValueError"


def test_where_says_nothing_of_a_group_s_messages() -> None:
    def together() -> None:
        raise ExceptionGroup(QUOTED, [ValueError(QUOTED)])

    with pytest.raises(ExceptionGroup) as caught:
        together()
    assert QUOTED not in where(caught.value)
