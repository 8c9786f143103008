"""Hints for unknown names."""

from __future__ import annotations

import time

import pytest

from dragoman_schemas.languages import UnknownLanguage, normalise
from dragoman_schemas.nearest import alternatives, did_you_mean, invalid_choice


def test_the_nearest_name_is_offered_whatever_its_case_and_none_where_none_is_near() -> None:
    assert did_you_mean("Markdwn", ["html", "markdown"]) == " (did you mean markdown?)"
    assert did_you_mean("knd", ["kind", "url"], "engine.") == " (did you mean engine.kind?)"
    assert did_you_mean("colour", ["kind", "url"]) == ""


def test_a_refused_choice_names_all_choices() -> None:
    assert invalid_choice("flat", ["folders", "suffix"]) == (
        "'flat' is not valid; choose folders or suffix"
    )
    assert alternatives(["a", "b", "c"]) == "a, b, or c"
    assert alternatives(["a"]) == "a"


def test_a_name_of_any_length_is_answered_at_once() -> None:
    began = time.process_time()
    assert did_you_mean("x" * 10_000_000, ["x" * 50, "y"]) != ""
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize(("name", "tag"), [("german", "de"), ("français", "fr")])
def test_the_name_of_a_language_is_answered_with_its_tag(name: str, tag: str) -> None:
    with pytest.raises(UnknownLanguage, match=rf"is not a language \(did you mean {tag}\?\)"):
        normalise(name)
