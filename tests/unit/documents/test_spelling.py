"""The source's own spelling of characters and line breaks, in translations."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import rendered
from dragoman_documents.spelling import Spelling


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


_NBSP = ("\u00a0", "&nbsp;")
_BREAK = (" ", " \n  ")


@pytest.mark.parametrize(
    ("pieces", "text", "written"),
    [
        ([("10", "10"), _NBSP, ("km", "km")], "ca. 10\u00a0km", "ca. 10&nbsp;km"),
        (
            [("a", "a"), _NBSP, ("\u00a0", "\u00a0"), ("b", "b")],
            "x\u00a0y\u00a0z",
            "x&nbsp;y\u00a0z",
        ),
        ([("a", "a"), _NBSP, ("\u00a0", "\u00a0"), ("b", "b")], "x\u00a0y", "x\u00a0y"),
        ([("a", "a"), ("&", "&#38;"), ("b > c", "b &gt; c")], "& < >", "&#38; &lt; &gt;"),
        ([("a ", "a "), ("'", "&apos;")], "it's '", "it&apos;s &apos;"),
    ],
)
def test_characters_that_stand_again_are_spelled_as_in_the_source(
    pieces: list[tuple[str, str]], text: str, written: str
) -> None:
    assert rendered(text, (), Spelling(pieces, _escaped).keeping(text)) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("aaa bbb ccc", "aaa bbb \n  ccc"),
        ("aaaaaaaaaa bbbb c ddddd", "aaaaaaaaaa bbbb \n  c ddddd"),
        ("使用说明", "使用说明"),
        ("eins", "eins"),
    ],
)
def test_a_line_break_goes_to_the_blank_nearest_to_its_share(text: str, written: str) -> None:
    spelling = Spelling([("aaa bbb", "aaa bbb"), _BREAK, ("ccc", "ccc")])
    assert spelling.keeping(text)(text) == written


def test_a_translation_has_at_most_the_line_breaks_of_its_source() -> None:
    pieces = [("a", "a"), _BREAK, ("b", "b"), _BREAK, ("c", "c"), _BREAK, ("d", "d")]
    text = "eins zwei"
    assert Spelling(pieces).keeping(text)(text) == "eins \n  zwei"


def test_continued_lines_are_continued_between_words_and_where_they_were() -> None:
    pieces = [
        ("to", "to"),
        ("", "\\\n  "),
        ("gether now ", "gether now "),
        ("", "\\\n"),
        ("x", "x"),
    ]
    source, text = "together now x", "zusammen jetzt x"
    assert Spelling(pieces).keeping(source)(source) == "to\\\n  gether now \\\nx"
    assert Spelling(pieces).keeping(text)(text) == "zusammen \\\n  jetzt \\\nx"


def test_tags_between_characters_do_not_count() -> None:
    spelling = Spelling([("a", "a"), _NBSP, ("b", "b"), _BREAK, ("c", "c")])
    text = "x\u00a0<g1>y z</g1>"
    codes = (InlineCode("<b>", "</b>"),)
    assert rendered(text, codes, spelling.keeping(text)) == "x&nbsp;<b>y \n  z</b>"


_pieces = st.lists(
    st.one_of(
        st.text("ab c\u00a0<&", min_size=1, max_size=5).map(lambda text: (text, _escaped(text))),
        st.sampled_from(
            [_NBSP, _BREAK, ("", "\\\n"), ("a", "&#97;"), ("<", "&#60;"), (" ", "&#32;")]
        ),
        st.just(("\u00a0a", "&both;")),
    )
)


@given(_pieces)
def test_a_text_that_did_not_change_is_written_as_its_source(pieces: list[tuple[str, str]]) -> None:
    spelling = Spelling(pieces, _escaped)
    assert spelling.keeping(spelling.text)(spelling.text) == "".join(raw for _, raw in pieces)
