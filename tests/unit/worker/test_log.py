"""Can a document's text reach the log by way of an error?"""

from __future__ import annotations

from dragoman_worker.log import where

SECRET = "the text of a document"


def test_where_tells_kind_and_place_of_an_error_but_not_its_message() -> None:
    def inner() -> None:
        raise ValueError(SECRET)

    try:
        inner()
    except ValueError as error:
        told = where(error)
    assert "ValueError" in told
    assert "inner" in told
    assert SECRET not in told


def test_where_tells_the_kind_of_an_error_that_was_never_raised() -> None:
    assert where(ValueError(SECRET)) == "ValueError"


def test_where_says_nothing_of_a_group_s_messages() -> None:
    try:
        raise ExceptionGroup(SECRET, [ValueError(SECRET)])
    except ExceptionGroup as group:
        assert SECRET not in where(group)
