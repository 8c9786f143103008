"""Tests of a document's tags under the names of a model that knows only ``<s1>`` … ``</s1>``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.prompts.hunyuan_mt import renamed, restored

TAGS = st.lists(st.sampled_from(["<g1>", "</g1>", "<x2/>", "<g3>", "</g3>", " a ", "é<b", ".\n"]))


@given(TAGS)
def test_what_is_renamed_is_restored(parts: list[str]) -> None:
    text = "".join(parts)
    named = renamed(text)
    assert named is None or restored(named, text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("Save.", "<b>Save</b>", "<g1>Save</g1> <b>now</b>", "<s1>a</s1><g1>b</g1>", "<!-- a -->"),
        *("a <branch> b", "<g1>a</g1><x1/>", "<g1/>", "<x1>a</x1>"),
    ],
)
def test_a_text_with_other_tags_or_none_is_not_renamed(text: str) -> None:
    assert renamed(text) is None
    assert restored("<s1>a</s1>", text) == "<s1>a</s1>"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("< S1 >Sichern</ s1 >", "<g1>Sichern</g1>"),
        ("<s1>a</s1> <s9>b</s9>", "<g1>a</g1> <s9>b</s9>"),
        ("<s2>b</s2>", "<x2/>b"),
        ("<s2/>", "<x2/>"),
        ("<g1>a</g1>", "<g1>a</g1>"),
    ],
)
def test_tags_are_restored_as_models_spell_them(answer: str, expected: str) -> None:
    assert restored(answer, "<g1>Save</g1><x2/>") == expected
