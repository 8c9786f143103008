"""Fragments of HTML and XML: markup stays, text is what callers say, nothing is refused."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.markup.html.fragments import Fragment, rules_for

KEPT = [
    'Hello <x id="7"></x>, see <b>this\n  thing</b> &lt;b&gt; &amp; a < b\n* two',
    "1-<i>London, Paris</i>",
    "a<br>b<br/>c</br>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "c">]>\n<a>Some text &b; here.</a>',
    "<a>London</a>, <a>Paris\r\nand Rome</a> tail",
    '<a><em><span>Go</span></em> <em>on "now"</em></a>',
    "<p>Not closed <b>at all",
    "</p>Closed too often</b>",
    "Ein <x1/> und <g2>zwei</g2>.",
]
"""Texts that other programs lost a part of."""
_PIECES = st.sampled_from(
    ["<b>", "</b>", "<p>", "</p>", '<x id="1"/>', "<raw>", "</raw>", "<br>", "&lt;", "&amp;", "&",
     "<", ">", "\n", "\r\n", " ", "word", "ein Satz.", "日本語", "<g1>", "</g1>", "<!-- c -->",
     "<![CDATA[x]]>", "{{ name }}", "%s"]
)  # fmt: skip
MARKED = st.lists(_PIECES, max_size=14).map("".join)


@pytest.mark.parametrize("xml", [True, False])
@pytest.mark.parametrize("text", KEPT)
def test_translations_equal_to_their_sources_change_no_byte(text: str, xml: bool) -> None:
    fragment = Fragment(text, rules_for(xml=xml, preserved=xml), xml=xml)
    assert fragment.written(fragment.texts) == text


def _shown(text: str) -> str:
    """Return a text without blanks, in one of the spellings that mean the same."""
    return "".join(html.unescape(text).split())


@given(MARKED, st.booleans(), st.booleans(), st.booleans())
def test_no_markup_changes_a_byte(text: str, xml: bool, outline: bool, preserved: bool) -> None:
    rules = rules_for(xml=xml, outline=outline, preserved=preserved, ignored=["raw"])
    fragment = Fragment(text, rules, xml=xml)
    fitting = [fragment.fitting(*each) for each in enumerate(fragment.texts)]
    assert fitting == fragment.texts
    assert fragment.written(fitting) == text


@given(MARKED, st.booleans())
def test_a_translation_leaves_the_tags_of_its_source(text: str, xml: bool) -> None:
    fragment = Fragment(text, rules_for(xml=xml, ignored=["raw"]), xml=xml)
    translated = [f"Xy {each}" for each in fragment.texts]
    written = fragment.written([fragment.fitting(*each) for each in enumerate(translated)])
    assert _shown(written.replace("Xy", "")) == _shown(text)


def test_named_elements_split_do_not_split_or_stay() -> None:
    text = "<doc><title>A title</title><par>One <span>two</span> <raw>stay</raw></par></doc>"
    rules = rules_for(
        xml=True, splitting=["title", "PAR"], non_splitting=["span"], ignored=["raw"], outline=False
    )
    fragment = Fragment(text, rules, xml=True)
    assert fragment.texts == ["A title", "One <g1>two</g1> <x2/>"]
    assert fragment.written(["Titel", "<x2/> zwei <g1>eins</g1>"]) == (
        "<doc><title>Titel</title><par><raw>stay</raw> zwei <span>eins</span></par></doc>"
    )


def test_attributes_of_xml_are_no_text() -> None:
    assert Fragment('<a title="Words">x y</a>', rules_for(xml=True), xml=True).texts == ["x y"]
    assert Fragment('<a title="Words">x y</a>', rules_for(xml=False), xml=False).texts == [
        "Words",
        "x y",
    ]


def test_line_ends_are_kept_where_asked() -> None:
    kept = Fragment("Liste:\n* <b>x</b> y", rules_for(xml=True, preserved=True), xml=True)
    assert kept.texts == ["Liste:\n* <g1>x</g1> y"]
    assert kept.written(["Liste:\n\n* <g1>u</g1> v"]) == "Liste:\n\n* <b>u</b> v"


def test_a_translation_that_lost_a_tag_does_not_fit() -> None:
    fragment = Fragment("See <b>this</b>.", rules_for(xml=True), xml=True)
    assert fragment.fitting(0, "Siehe <g1>das</g1>.") == "Siehe <g1>das</g1>."
    assert fragment.fitting(0, "Siehe < G1 >das</ g1>.") == "Siehe <g1>das</g1>."
    assert fragment.fitting(0, "Siehe das.") is None
    assert fragment.written([None]) == "See <b>this</b>."
