"""Inline tags are parsed, paired and compared; tags that are prose are left to the translator."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_text.inline import (
    Differences,
    InlineTag,
    compare,
    find_tags,
    pairs,
    pieces,
    respelled,
)
from support.pace import LINEAR_S

TEXTS = st.text(max_size=20) | st.lists(
    st.sampled_from(["<g1>", "</g1>", "<x2/>", "<b>", "</b>", "<B>", "<br>", "a", "<", ">", "<c>"]),
    max_size=12,
).map("".join)


def texts(text: str) -> list[str]:
    return [tag.text for tag in find_tags(text)]


@pytest.mark.parametrize(
    "tag",
    [
        "<g1>",
        "</g1>",
        "<x2/>",
        "<b>",
        "<BR>",
        '<a href="x">',
        "<foo/>",
        "</foo>",
        "<!-- a -->",
        "<0/>",
    ],
)
def test_markup_is_found(tag: str) -> None:
    assert texts(f"eins {tag} zwei") == [tag]


@pytest.mark.parametrize("prose", ["<branch>", "<your name>", "a < b > c", "<3", "<>", "<g>x"])
def test_prose_is_not_markup(prose: str) -> None:
    assert texts(prose) == []


def test_a_name_that_is_closed_is_markup() -> None:
    assert texts("<branch>x</branch>") == ["<branch>", "</branch>"]
    assert texts("<0>x</0> and <1>") == ["<0>", "</0>"]


@given(TEXTS)
def test_pieces_joined_are_the_text(text: str) -> None:
    parts = [part.text if isinstance(part, InlineTag) else part for part in pieces(text)]
    assert "".join(parts) == text
    assert [tag for tag in pieces(text) if isinstance(tag, InlineTag)] == find_tags(text)


@given(TEXTS)
def test_every_tag_is_in_a_pair_or_alone_or_empty(text: str) -> None:
    paired, alone = pairs(find_tags(text))
    found = [tag for pair in paired for tag in pair] + alone
    assert sorted(tag.start for tag in found) == [
        tag.start for tag in find_tags(text) if tag.form != "empty"
    ]
    assert all(opening.start < closing.start for opening, closing in paired)
    assert all(opening.name == closing.name for opening, closing in paired)


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert compare(text, text) == Differences()


def test_tags_nest() -> None:
    paired, alone = pairs(find_tags("<g1>a<g2>b</g2></g1><g1>c</g1>"))
    assert [opening.start for opening, _ in paired] == [5, 0, 20]
    assert alone == []


def test_missing_and_repeated_tags_are_named() -> None:
    assert compare("<g1>a</g1> <x2/>", "<g1>a</g1></g1>") == Differences(("<x2/>",), ("</g1>",))


def test_crossed_tags_are_named_unless_the_source_crosses_them_too() -> None:
    crossed = "<g1>a<g2>b</g1>c</g2>"
    assert compare("<g1>a</g1><g2>b</g2>", crossed) == Differences(crossed=("<g2>", "</g2>"))
    assert compare(crossed, crossed) == Differences()
    assert compare("<b>a</b>", "</b>a<b>").crossed


def test_siblings_may_change_their_order() -> None:
    assert compare("<g1>a</g1> <g2>b</g2><x3/>", "<x3/><g2>b</g2> <g1>a</g1>") == Differences()


@pytest.mark.parametrize(
    "spelling", ["< g1 >a</ G1>", "<G1>a</g1 >", "＜g1＞a＜/g1＞", "<g１>a</g1>", "<g1>a<／g1>"]
)
def test_numbered_tags_are_respelled_as_in_the_source(spelling: str) -> None:
    assert respelled(f"{spelling} <x9/>", "<g1>b</g1>") == "<g1>a</g1> <x9/>"


@given(TEXTS)
def test_a_text_spelled_as_its_source_is_unchanged(text: str) -> None:
    assert respelled(text, text) == text


def test_ten_thousand_tags_take_linear_time() -> None:
    started = time.process_time()
    for text in ("<g1>" * 30_000, "<g1></b>" * 15_000, "<" * 130_000, "<g1" + " " * 130_000):
        compare(text, text[::-1])
        respelled(text, "<g1>" + text)
    deep = "".join(f"<g{number}>" for number in range(15_000))
    closed = "".join(f"</g{number}>" for number in range(15_000))
    assert len(compare(deep + closed, closed + deep).crossed) > 0
    assert time.process_time() - started < LINEAR_S
