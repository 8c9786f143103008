"""Tests of inline markup as numbered tags."""

from __future__ import annotations

import html
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import (
    ClosingCode,
    OpeningCode,
    Piece,
    SingleCode,
    composed,
    fits,
    pieces,
    plain,
    rendered,
    same_tags,
)

BOLD = InlineCode("<b>", "</b>")
BREAK = InlineCode("<br>")

_texts = st.text(st.sampled_from("<g1>x2/ ab"), min_size=1, max_size=12)


def _nested(children: st.SearchStrategy[list[Piece]]) -> st.SearchStrategy[list[Piece]]:
    pair = children.map(lambda inner: [OpeningCode("<b>", "</b>"), *inner, ClosingCode()])
    return st.lists(st.one_of(pair, children), max_size=3).map(lambda parts: [*chain(*parts)])


_trees = st.recursive(
    st.one_of(_texts.map(lambda text: [text]), st.just([SingleCode("<br>")])), _nested, max_leaves=8
)


def source_of(parts: list[Piece]) -> str:
    spelled: list[str] = []
    for piece in parts:
        match piece:
            case str():
                spelled.append(html.escape(piece))
            case OpeningCode(opening, _):
                spelled.append(opening)
            case ClosingCode():
                spelled.append("</b>")
            case SingleCode(code):
                spelled.append(code)
    return "".join(spelled)


@given(_trees)
def test_what_is_composed_is_rendered_as_it_was(parts: list[Piece]) -> None:
    text, codes = composed(parts, html.escape)
    assert fits(text, codes)
    assert rendered(text, codes, html.escape) == source_of(parts)


def test_text_that_looks_like_a_tag_is_a_code() -> None:
    text, codes = composed(["see <g1> and < X2 />"], html.escape)
    assert text == "see <x1/> and <x2/>"
    assert [code.opening for code in codes] == ["&lt;g1&gt;", "&lt; X2 /&gt;"]


def test_tags_may_change_their_order() -> None:
    assert rendered("<x2/><g1>b</g1>", (BOLD, BREAK), str) == "<br><b>b</b>"


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "<g1>open<x2/>",
        "</g1><g1><x2/>",
        "<g1>a</g1><x2/><x2/>",
        "<g1>a</g1><g1>b</g1><x2/>",
        "<g1>a</g1><x2/><x3/>",
        "<x1/><x2/>",
        "<g1>a</g1><g2>b</g2>",
    ],
)
def test_a_translation_without_exactly_its_tags_does_not_fit(text: str) -> None:
    assert not fits(text, (BOLD, BREAK))
    with pytest.raises(ValueError, match="tags"):
        list(pieces(text, (BOLD, BREAK)))


def test_pairs_that_cross_do_not_fit() -> None:
    assert not fits("<g1>a<g2>b</g1>c</g2>", (BOLD, BOLD))


@pytest.mark.parametrize("parts", [[ClosingCode()], [OpeningCode("<b>", "</b>")]])
def test_pieces_that_do_not_nest_are_refused(parts: list[Piece]) -> None:
    with pytest.raises(ValueError, match="pair"):
        composed(parts)


def test_plain_text_has_no_tags() -> None:
    assert plain("<g1>a</g1><x2/> <b>") == "a <b>"


@pytest.mark.parametrize(
    ("source", "target", "same"),
    [
        ("One.", "Eins.", True),
        ("One.", "Eins <x1/>.", False),
        ("<g1>One</g1> <x2/>.", "<x2/> <g1>Eins</g1>.", True),
        ("<g1>One</g1> <x2/>.", "<g1>Eins</g1>.", False),
        ("<g1>One</g1> <x2/>.", "</g1>Eins<g1> <x2/>.", False),
        ("<x1/> <x2/>", "<x1/> <x1/>", False),
    ],
)
def test_tags_are_compared_without_their_codes(source: str, target: str, same: bool) -> None:
    assert same_tags(source, target) is same
