"""Positions of HTML's tokens, with html5lib's tokenizer as the reference."""

from __future__ import annotations

from typing import Any

import pytest
from html5lib._tokenizer import HTMLTokenizer
from html5lib.constants import tokenTypes
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.markup.html.tokens import attributes, tokens

PARTS = (
    "<", ">", "</", "/>", "<a", "<b ", "<br/>", "</a>", "<p", "</p\t", "<!--", "-->", "--!>", "<!",
    "<!-->", "<?", "<![CDATA[", "]]>", "a", "x", "=", '"', "'", " ", "\n", "/", "b='", 'c="', "d=e",
    "é", "&amp;", "-", "<i a=b/>", "<i a='>'>", "<title>", "</title>", "</>", "</3",
)  # fmt: skip


def tags(text: str) -> list[tuple[str, str]]:
    """Return the tags of a text as our tokenizer finds them."""
    return [(t.kind, t.name) for *_, t in tokens(text) if t.kind in {"start", "end"}]


def reference_tags(text: str) -> list[tuple[str, str]]:
    """Return the tags of a text as html5lib finds them, with the raw text of titles."""
    tokenizer: Any = HTMLTokenizer(text)
    names = {tokenTypes["StartTag"]: "start", tokenTypes["EndTag"]: "end"}
    found: list[tuple[str, str]] = []
    for token in tokenizer:
        if token["type"] in names:
            found.append((names[token["type"]], token["name"]))
            if found[-1] == ("start", "title"):
                tokenizer.state = tokenizer.rcdataState
    return found


@given(st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
def test_tags_are_those_that_html5lib_finds(text: str) -> None:
    assert tags(text) == reference_tags(text)


@given(st.lists(st.sampled_from(PARTS), max_size=25).map("".join), st.booleans())
def test_tokens_follow_each_other_without_gaps(text: str, xml: bool) -> None:
    end = 0
    for start, stop, _ in tokens(text, xml=xml):
        assert start == end < stop
        end = stop
    assert end == len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a b=c d = 'e' f g=\"h>\">", [("b", "c"), ("d", "'e'"), ("f", None), ("g", '"h>"')]),
        ("<a =x b=>", [("=x", None), ("b", None)]),
        ("<a b=c/ b=d>", [("b", "c/")]),
        ("<A\nB=1/>", [("b", "1/")]),
        ("<a/b=1/c='2'/>", [("b", "1/c='2'/")]),
    ],
)
def test_attributes_have_the_ranges_of_their_values(
    text: str, expected: list[tuple[str, str | None]]
) -> None:
    ((*at, _),) = tokens(text)
    found = [
        (each.name, text[each.value_start : each.end] if each.value_start >= 0 else None)
        for each in attributes(text, *at)
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<script>if (a<b) '</scripty>'</SCRIPT >x", "if (a<b) '</scripty>'"),
        ("<script><!-- <script> </script> --></script>x", "<!-- <script> </script> -->"),
        ("<script><!--></script>x", "<!-->"),
        ("<script>a", "a"),
        ("<style></p></style>", "</p>"),
        ("<title><b></title>", "<b>"),
        ("<textarea><p></textarea>", "<p>"),
        ("<plaintext></plaintext>", "</plaintext>"),
    ],
)
def test_content_without_markup_is_one_token_of_text(text: str, content: str) -> None:
    assert next(text[a:b] for a, b, tag in tokens(text) if tag.kind == "text") == content


def test_cdata_is_markup_in_xml_and_in_drawings_only() -> None:
    assert [tag.kind for *_, tag in tokens("<![CDATA[<b>]]>", xml=True)] == ["cdata"]
    assert [tag.kind for *_, tag in tokens("<svg><![CDATA[<b>]]></svg>")] == [
        "start",
        "cdata",
        "end",
    ]
    assert [tag.kind for *_, tag in tokens("<![CDATA[<b>]]>")] == ["other", "text"]


def test_a_drawing_that_is_never_closed_ends_before_a_paragraph() -> None:
    assert tags("<svg><style><p>") == [("start", "svg"), ("start", "style"), ("start", "p")]
    assert tags("<svg><p><style><b>") == [("start", "svg"), ("start", "p"), ("start", "style")]


@pytest.mark.parametrize(
    "part",
    ["<a ", "<a b='", "<!--", "<!", "<?", "</a", "<![", "<svg><![CDATA[", "<script>", "<a b=\"'",
     "<script><!--<script>", "&#", "<", "<a =", "<!DOCTYPE x ["],
)  # fmt: skip
@pytest.mark.parametrize("xml", [False, True])
def test_time_is_linear_in_what_is_never_closed(part: str, xml: bool) -> None:
    """Quadratic time would reach the timeout of the tests."""
    text = part * (100_000 // len(part))
    assert sum(end - start for start, end, _ in tokens(text, xml=xml)) == len(text)
