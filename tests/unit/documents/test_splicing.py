"""Tests of replacements of ranges."""

from __future__ import annotations

import pytest

from dragoman_documents.splicing import Replacement, replaced, skeleton


def test_ranges_are_replaced_in_any_order() -> None:
    given = [Replacement(4, 5, "Z"), Replacement(0, 1, "YY"), Replacement(2, 2, "+")]
    assert replaced("abcdef", given) == "YYb+cdZf"


def test_bytes_are_replaced_too() -> None:
    assert replaced(b"abc", [Replacement(1, 2, b"")]) == b"ac"


def test_overlapping_replacements_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap at 1"):
        replaced("abc", [Replacement(0, 2, ""), Replacement(1, 3, "")])


def test_a_skeleton_ignores_what_is_in_the_ranges() -> None:
    assert skeleton("# one\n", [(2, 5)]) == skeleton("# three\n", [(2, 7)])


def test_a_skeleton_tells_the_places_of_ranges() -> None:
    assert skeleton("ab", [(0, 1)]) != skeleton("ab", [(1, 2)])
    assert skeleton("ab", []) != skeleton("ab", [(2, 2)])
    assert skeleton("a", [], "b") != skeleton("a", [], "c")
