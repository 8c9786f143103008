"""HTML: what is translated, how it is written, and the laws of codecs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import Options, Segment
from dragoman_documents.markup.html.codec import CODECS
from dragoman_documents.read_back import differing
from support.documents.laws import (
    GERMAN,
    HOSTILE,
    assert_identity,
    assert_read_back,
    tagged,
    translations,
)

HTML, XHTML = CODECS["html"], CODECS["xhtml"]
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A &amp; B</title>
<meta name="description" content="Some
  pages"><meta property="og:title" content='It"s'><meta name="viewport" content="width=3">
<script>var a = "<p>no</p>";</script></head>
<body><nav><ul><li><a href="/">Home</a></ul></nav>
<h1 id="top">The <em>first</em> heading</h1>
<p>One <b>bold</b> word,<br>
   a <code>code &lt;a&gt;</code> and an <img src="a.png" alt="A picture">.
<p>Next &nbsp; one<!-- remark -->
<ol><li>First<li>Second <a id="x"></a>item</ol>
<table><tr><td>Cell<td>42<td><p>In a cell</table>
<pre>kept   as is</pre><svg><text>kept</text></svg>
<form><input placeholder="Your name"><textarea title="Long">kept</textarea>
<select><optgroup label="Group"><option>One<option>Two</select></form>
</body></html>
"""


def texts(page: str, codec: str = "html", options: Options = GERMAN) -> list[str]:
    """Return the texts of a page's segments."""
    return [each.text for each in segments(page, codec, options)]


def segments(page: str, codec: str = "html", options: Options = GERMAN) -> tuple[Segment, ...]:
    """Return the segments of a page."""
    return CODECS[codec].extract(page.encode(), options).segments


def spliced(page: str, *translated: str | None, options: Options = GERMAN) -> str:
    """Return a page with translations."""
    extraction = HTML.extract(page.encode(), options)
    return HTML.splice(page.encode(), extraction, translated, options).decode()


def test_pronunciations_of_ruby_are_left_alone() -> None:
    page = "<p>A <ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp>字<rt>ji</ruby> word"
    assert texts(page) == ["A <g1>漢<x2/><x3/><x4/>字<x5/></g1> word"]
    assert_identity(HTML, page.encode())


def test_blocks_and_attributes_are_segments() -> None:
    assert texts(PAGE) == [
        "A & B", "Some pages", 'It"s', "Home", "The <g1>first</g1> heading", "A picture",
        "One <g1>bold</g1> word,<x2/> a <x3/> and an <x4/>.", "Next \u00a0 one", "First",
        "Second <x1/>item", "Cell", "In a cell", "Your name", "Long", "Group", "One", "Two",
    ]  # fmt: skip
    kinds = {each.text: (each.kind, each.place) for each in segments(PAGE)}
    assert kinds["A & B"] == ("title", "line 2")
    assert kinds["Some pages"] == ("metadata", "line 3")
    assert kinds["First"] == ("list_item", "line 11")
    assert kinds["Cell"] == ("cell", "line 12")


def test_a_page_without_translations_stays_as_it_is() -> None:
    assert_identity(HTML, PAGE.encode())


@pytest.mark.parametrize("language", ["de", "ar"])
@pytest.mark.parametrize("bilingual", [False, True])
def test_marked_texts_read_back(language: str, bilingual: bool) -> None:
    options = Options(language, "en", bilingual=bilingual)
    extraction = HTML.extract(PAGE.encode(), options)
    assert_read_back(HTML, PAGE.encode(), tagged(extraction), options)


def test_text_is_escaped_and_decoded() -> None:
    assert spliced("<p>a &lt; b &copy; c", '<b>&amp;\u00a0"') == '<p>&lt;b&gt;&amp;amp;&nbsp;"'
    assert texts("<p>a &lt; b &copyc &notit; &#x41;&#128;x") == ["a < b ©c ¬it; A€x"]
    assert texts('<a title="x&copy=1 &copy; &copyx &amp;x">') == ["x&copy=1 © &copyx &x"]


def test_attributes_keep_their_quotation_marks() -> None:
    page = "<img alt='a b'><img alt=ab><img alt=\"ab\">"
    assert spliced(page, 'it\'s "x"', "c d", 'e"f') == (
        '<img alt=\'it&#39;s "x"\'><img alt="c d"><img alt="e&quot;f">'
    )


def test_blanks_collapse_as_browsers_show_them_and_stay_where_nothing_is_translated() -> None:
    page = "<p>\n  one\n  two \t three\n</p>"
    assert texts(page) == ["one two three"]
    assert spliced(page, "eins zwei") == "<p>\n  eins\n  zwei\n</p>"
    assert spliced(page, None) == page


def test_blanks_that_html_would_collapse_are_written_as_references() -> None:
    assert spliced("<p>x</p>", " a  b\nc ") == "<p>&#32;a &#32;b&#10;c&#32;</p>"


def test_pairs_around_all_of_the_text_are_no_inline_codes() -> None:
    assert texts("<p><a href=x><b>All</b></a></p><p><b>One</b> two</p>") == [
        "All", "<g1>One</g1> two",
    ]  # fmt: skip


def test_tags_that_cross_are_single_codes() -> None:
    assert texts("<p>a <b>b <i>c</b> d</i> e") == ["a <g1>b <x2/>c</g1> d<x3/> e"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>One<p>Two<div>Three</div>Four", ["One", "Two", "Three", "Four"]),
        ("<dl><dt>A<dd>B<dt>C</dl>", ["A", "B", "C"]),
        ("<ul><li translate=no>no<li>yes</ul>", ["yes"]),
        ("<table><tr><th class=notranslate>no<td>yes<tr><td>too</table>", ["yes", "too"]),
        ("<select><option translate=no>no<option>yes</select>", ["yes"]),
        ("<div translate=no>no <p translate=yes>Yes</p> no</div> tail", ["Yes", "tail"]),
        ("<code>no</code>", []),
        ("<p>a <code translate=no>b <i translate=yes>c</i> d <i translate=yes>e</i></code>",
         ["c", "e", "a <x1/>"]),
        ("<pre translate=yes>a\n  b</pre>", ["a\n  b"]),
        ("<p><code>a<p>b", ["b"]),
        ("<!--[if IE]><p>no</p><![endif]--><![if !IE]><p>yes</p><![endif]>", ["yes"]),
        ("<a href=x>http://example.org/a</a> <p>12 % <p>© 2024", []),
        ("<p>a <math><mi>x</mi></math> b", ["a <x1/> b"]),
        ("<button>Save</button><button>Leave</button>", ["Save", "Leave"]),
        ("<svg/><p>x", ["x"]),
        ("<html translate=no><p>a", []),
        ("<html title='No tooltip' lang=en><p>a", ["a"]),
    ],
)  # fmt: skip
def test_what_is_a_segment(page: str, expected: list[str]) -> None:
    assert texts(page) == expected


@pytest.mark.parametrize(
    ("tag", "language", "expected"),
    [
        ("<html>", "de", '<html lang="de">'),
        ("<html lang=en class=x>", "fa", '<html dir="rtl" lang="fa" class=x>'),
        ('<html dir="rtl" lang="ar">', "zh-Hant", '<html dir="ltr" lang="zh-Hant">'),
        ('<HTML XML:LANG="en">', "uz-Arab", '<HTML lang="uz-Arab" dir="rtl" xml:lang="uz-Arab">'),
    ],
)
def test_the_root_names_the_language_and_its_direction(
    tag: str, language: str, expected: str
) -> None:
    options = Options(language)
    page = f"{tag}<p>a"
    output = spliced(page, "b", options=options)
    assert output == f"{expected}<p>b"
    extraction = HTML.extract(page.encode(), options)
    assert differing(HTML, output.encode(), extraction, ["b"], options) == []


@pytest.mark.parametrize("text", ["", "12", "https://example.org/", "< g1 >x"])
def test_a_text_that_would_be_another_segment_leaves_the_source(text: str) -> None:
    page = b"<p>a b</p>"
    extraction = HTML.extract(page, GERMAN)
    assert HTML.splice(page, extraction, [text], GERMAN) == page
    assert differing(HTML, page, extraction, [text], GERMAN) == [0]


@pytest.mark.parametrize("text", ["<g1></g1> b c", "<g1>a b</g1>"])
def test_a_pair_emptied_or_put_around_all_of_the_text_leaves_the_source(text: str) -> None:
    assert spliced("<p><b>a</b> b</p>", text) == "<p><b>a</b> b</p>"


def test_a_pair_may_move_to_an_end_of_the_text() -> None:
    assert spliced("<p><b>a</b> b</p>", "b <g1>a</g1>") == "<p>b <b>a</b></p>"


@pytest.mark.parametrize("text", [text for text in HOSTILE if any(map(str.isalpha, text))])
def test_hostile_texts_read_back(text: str) -> None:
    marks = [text, text, text]
    assert_read_back(HTML, b"<p>one</p><img alt=two><title>three</title>", marks)
    assert_read_back(XHTML, b"<p>one</p><img alt='two'/><title>three</title>", marks)


@given(st.lists(translations, min_size=17, max_size=17), st.booleans())
def test_any_text_reads_back(marks: list[str], bilingual: bool) -> None:
    extraction = HTML.extract(PAGE.encode(), GERMAN)
    held: list[str | None] = [
        f"{mark} {segment.text}" for mark, segment in zip(marks, extraction.segments, strict=True)
    ]
    assert_read_back(HTML, PAGE.encode(), held, replace(GERMAN, bilingual=bilingual))


@given(st.permutations(["<g1>w</g1>", "<g2>x <g3>y</g3></g2>", "<x4/>", "z"]))
def test_tags_in_any_order_that_nests_read_back(order: list[str]) -> None:
    page = b"<p>a <b>b</b> <i>c <u>d</u></i> <img src=x> e"
    assert_read_back(HTML, page, [" ".join(order)])


@given(st.lists(st.sampled_from([
    "<p>", "</p>", "<b>", "</b>", "<i title='x y'>", "</i>", "<div>", "</div>", "<li>", "<ul>",
    "</ul>", "<td>", "<table>", "</table>", "<br>", "<!--c-->", "text ", " more", "&nbsp;", "1 ",
    "<code>", "</code>", "<x translate=yes>", "</x>", "<x translate=no>", "<svg>", "</svg>",
    "<button>", "</button>", "<a id=q>", "</a>", "<nav>", "</nav>", "<h1>", "</h1>", "<img alt=t>",
    "&lt;g1&gt;", "<option>", "<html>", "<", "\n", "<title>", "</title>", "<![CDATA[x]]>",
]), max_size=30).map("".join), st.booleans())  # fmt: skip
def test_odd_pages_keep_their_bytes_and_read_back(page: str, xml: bool) -> None:
    codec = XHTML if xml else HTML
    extraction = assert_identity(codec, page.encode())
    assert_read_back(codec, page.encode(), tagged(extraction))
    assert_read_back(codec, page.encode(), [
        text if index % 2 else None for index, text in enumerate(tagged(extraction))
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"<meta charset=iso-8859-1><p>caf\xe9", "cp1252"),
        (b"<meta content='text/html; charset=Shift_JIS'><p>\x93\xfa", "cp932"),
        (b"\xef\xbb\xbf<meta charset=iso-8859-1><p>caf\xc3\xa9", "utf-8-sig"),
        ("\ufeff<p>x".encode("utf-16-le"), "utf-16-le"),
        (b"<?xml version='1.0' encoding='ISO-8859-2'?><p>\xb1", "iso8859-2"),
        (b"<meta charset=unicode_escape><p>x", "utf-8"),
        (b"<html><p>x", "ascii"),
        (b"<p>x", "utf-8"),
        ("<html><p>é".encode(), "utf-8"),
    ],
)  # fmt: skip
def test_declared_charsets_are_used_and_other_characters_become_references(
    data: bytes, encoding: str
) -> None:
    extraction = assert_identity(HTML, data)
    assert extraction.encoding == encoding
    assert_read_back(HTML, data, ["\u20ac \u4e2d x \U0001f600"] * len(extraction.segments))


def test_copies_of_a_bilingual_page_carry_no_identifiers_and_no_attributes_to_translate() -> None:
    page = '<p id="a" class=c title="T">A <a name=n id=m title=U><img alt="I" src=x>b</a>'
    options = Options("he", bilingual=True)
    output = spliced(page, "t", "u", "i", "Ü <g1><x2/>z</g1>", options=options)
    copy = output[output.index('<p lang="he"') :]
    assert copy == '<p lang="he" dir="rtl"  class=c >Ü <a   ><img alt="" src=x>z</a></p>'


def test_navigation_and_captions_have_the_translation_in_the_element() -> None:
    options = Options("de", bilingual=True)
    page = "<nav><ol><li><a href=x>One</a></ol></nav><table><caption>Two</caption></table>"
    assert spliced(page, "Eins", "Zwei", options=options) == (
        '<nav><ol><li><a href=x>One <span lang="de">Eins</span></a></ol></nav>'
        '<table><caption>Two <span lang="de">Zwei</span></caption></table>'
    )


@pytest.mark.parametrize("bilingual", [False, True])
def test_attributes_of_markup_behind_the_text_are_translated_too(bilingual: bool) -> None:
    page = b"<div><br title=a>b<br title=c></div>"
    options = replace(GERMAN, bilingual=bilingual)
    assert [each.text for each in HTML.extract(page, options).segments] == ["a", "b", "c"]
    output = assert_read_back(HTML, page, ["A", "B", "C"], options)
    assert bilingual or output == b"<div><br title=A>B<br title=C></div>"


def test_headings_above_a_text_are_its_context() -> None:
    page = "<h1>A</h1><h2>B</h2><p>x<h2>C</h2><p>y<h1>D</h1>"
    found = segments(page, options=replace(GERMAN, headings=True))
    assert [(s.text, s.headings) for s in found] == [
        ("A", ()), ("B", ("A",)), ("x", ("A", "B")), ("C", ("A",)), ("y", ("A", "C")), ("D", ()),
    ]  # fmt: skip


def test_xhtml_without_a_dtd_knows_html_s_references_and_keeps_others() -> None:
    assert texts("<p>a&nbsp;&eacute; &foo; b</p>", "xhtml") == ["a\u00a0é <x1/> b"]
    assert texts("<p><a id='x'/>a <br/>b<script src='x'/> c</p>", "xhtml") == [
        "a <x1/>b<x2/> c"
    ]  # fmt: skip
    assert texts("<h:p xmlns:h='x'>a</h:p><h:code>b</h:code>", "xhtml") == ["a"]


@pytest.mark.parametrize(
    "part",
    ["<b>", "<p>", "</p>", "<i></b>", "<p><button><b>", "<div></div>", "<li><b>", "&nbsp;", "&amp ",
     "<img alt=x>", "<i title=x>", "<td>", "<a>x</a>", "x <x translate=no>", "&lt;g1&gt;", "<!--",
     "<code><x translate=yes>y", "\r", "</x>", "<table><p>"],
)  # fmt: skip
@pytest.mark.parametrize("codec", ["html", "xhtml"])
def test_time_is_linear_in_the_size_of_odd_pages(part: str, codec: str) -> None:
    """Quadratic time would reach the timeout of the tests."""
    data = b"<p>x " + part.encode() * (100_000 // len(part))
    extraction = assert_identity(CODECS[codec], data)
    CODECS[codec].splice(data, extraction, tagged(extraction), GERMAN)


def test_codes_within_codes_take_memory_in_proportion() -> None:
    part = "<i translate=no><b translate=yes>x "
    data = b"<p>w" + part.encode() * 500
    extraction = assert_identity(HTML, data)
    held = sum(len(code.opening) for each in extraction.segments for code in each.codes)
    assert len(data) < held < 10 * len(data)


@pytest.mark.parametrize("codec", ["html", "xhtml"])
def test_a_reference_of_many_digits_is_no_character(codec: str) -> None:
    page = f"<p title='x &#{'9' * 5000};'>a &#{'9' * 5000}; &#{'0' * 5000}65;"
    assert texts(page, codec) == ["x \ufffd", "a \ufffd A"]


def test_random_bytes_raise_nothing_but_errors_of_documents() -> None:
    source = random.Random(7)
    data = PAGE.encode()
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(source.randrange(1, 12)):
            broken[source.randrange(len(broken))] = source.choice(b"<>&\"'/=!- \nab\xff;")
        page = bytes(broken).decode("utf-8", "replace").encode()
        assert_read_back(HTML, page, tagged(assert_identity(HTML, page)))


@pytest.mark.parametrize(("language", "written"), [("ar", "rtl"), ("de", "ltr")])
def test_the_direction_of_the_body_is_that_of_the_target(language: str, written: str) -> None:
    page = '<html dir=ltr><body title="One" dir="ltr"><p>Two <b dir=ltr>x</b></p></body></html>'
    options = replace(GERMAN, target_lang=language)
    output = assert_read_back(HTML, page.encode(), ["Eins", "Zwei <g1>y</g1>"], options).decode()
    assert f'<body title="Eins" dir="{written}"><p>Zwei <b dir=ltr>y</b>' in output


@pytest.mark.parametrize(
    "page",
    [
        "<p>&nbsp;a&nbsp;b \u00a0 c&#8217;d&rsquo;e\u2019f</p>",
        '<p>&quot;g&quot; "h" R&D A&amp;B x > y &gt; z</p>',
        "<p>one\r\n\t two   three\n<b> four\nfive</b>\n six<br/>seven<BR >\neight</p>",
        "<p>a &lt;g1> b &#60;x2/&gt;\nc</p><p>a < b</p><title>a <b> c</title>",
        "<pre>\n  one\r\n\ttwo  three &nbsp;&#10;four</pre>",
        "<img alt=it's title='  a\n b &#34;c&quot; > d' >",
        '<img alt="\u00a0&nbsp;x&#xA0;"><img alt=a"b/>',
        "<p>&#32;a&#xA0;b &notit; &amp&lt c&#xa0;</p>",
    ],
)
def test_what_a_translation_keeps_is_spelled_as_in_the_source(page: str) -> None:
    for codec in (HTML, CODECS["xhtml"]):
        found = codec.extract(page.encode(), GERMAN)
        again = [each.text for each in found.segments]
        assert codec.splice(page.encode(), found, again, GERMAN).decode() == page
        assert_read_back(codec, page.encode(), [f"x {each}" for each in again])


def test_a_spelling_that_would_be_read_as_something_else_is_not_kept() -> None:
    assert spliced("<p>R&D</p>", "x &copy") == "<p>x &amp;copy</p>"
    assert spliced("<p>a < b</p>", "a <b") == "<p>a &lt;b</p>"
    assert spliced("<p>a&nbsp;b c</p>", "x\u00a0y z &") == "<p>x&nbsp;y z &amp;</p>"


def test_a_language_that_is_there_stays_as_it_is_spelled() -> None:
    page = "<html lang=de dir='ltr'><body dir=ltr><p>a</p></body></html>"
    assert spliced(page, "b") == page.replace(">a<", ">b<")


@given(
    st.lists(
        st.sampled_from([
            "a", "b", " ", "\n", "\r\n", "\t", "&", ";", "&nbsp;", "\u00a0", "&#8217;", "\u2019",
            "<", ">",
            "&lt;", "&gt;", "&quot;", '"', "&#32;", "&#10;",
            "<b>", "</b>", "<br>", "g1", "&not", "amp",
            "<p>", "</p>", "<pre>", "</pre>",
            "<title>", "</title>", "<img alt=", "'", "/", "=", "x2/",
        ])
    ).map("".join),
    st.booleans(),
)  # fmt: skip
def test_every_page_is_itself_again(page: str, xml: bool) -> None:
    codec = CODECS["xhtml"] if xml else HTML
    data = f"<div>{page}".encode()
    found = codec.extract(data, GERMAN)
    assert codec.splice(data, found, [each.text for each in found.segments], GERMAN) == data


TEMPLATES = [
    ("{% extends 'a.html' %}\n{% block x %}\n{% endblock %}", []),
    ("<p>{% block x %}Text{% endblock %}</p>", ["Text"]),
    ("<title>{% block t %}Home{% endblock %} - Site</title>", ["Home<x1/> - Site"]),
    ("<p>Hello {{ user.name|title }}, you have {{ n }} files.", [
        "Hello <x1/>, you have <x2/> files."
    ]),
    ("<p>{{ greeting }}</p>", []),
    ("<p>{% if a < b %}Yes{% else %}No{% endif %}", ["Yes<x1/>No"]),
    ("{#-\n  A remark\n\n  of paragraphs\n-#}\n{{/* Another\n\none */}}<p>Text", ["Text"]),
    ("<p>{# a remark #}Text {{{ raw }}}.", ["Text <x1/>."]),
    ("<p>{{- if .Ok -}}Fine{{ end }}</p>{{#each x}}{{/each}}", ["Fine"]),
    ("<p>{% comment %}old <b>text</b>{% endcomment %}</p><p>New", ["New"]),
    ("<img alt='Photo of {{ name }}' title=\"{{ x }}\" src='{% static \"a.png\" %}'>", [
        "Photo of <x1/>"
    ]),
    ("<a title=\"{% if x %}One{% endif %} &amp; two\">Three {% y %} four</a>", [
        "<x1/>One<x2/> & two", "Three <x1/> four"
    ]),
    ("<p {% if x %}class='a'{% endif %}>Text {{ 'a < b' }} and &eacute; {{ ü }} ü {{ z", [
        "Text <x1/> and é <x2/> ü {{ z"
    ]),
    ("<p {% if a > b %}class='x'{% endif %}>One</p><p title=\"{{ a > b }}\">{{ a > b }} two", [
        "One", "<x1/> two"
    ]),
    ("<p>One</p><b{{>}}two", ["One"]),
    ("<p>A {{ b <g1>c</g1> }} <i>d {{ e }}</i> &lt;g7> {{ f }}", [
        "A <x1/><g2><x3/></g2><x4/> <g5>d <x6/></g5> <x7/> <x8/>"
    ]),
]  # fmt: skip


def test_text_in_a_picture_is_remarked() -> None:
    page = (
        "<p>A</p>\n<svg><text x='1'>One</text><text>12</text><text><tspan>Two</tspan></text></svg>"
    )
    found = assert_identity(HTML, f"{page}<svg><path d='M 1'/></svg>".encode())
    assert [each.text for each in found.segments] == ["A"]
    assert [(each.place, each.kind, each.count) for each in found.remarks] == [
        ("line 2", "html", 2)
    ]


@pytest.mark.parametrize(("page", "expected"), TEMPLATES)
def test_templates_are_codes(page: str, expected: list[str]) -> None:
    data = page.encode()
    extraction = assert_identity(HTML, data)
    assert [each.text for each in extraction.segments] == expected
    assert HTML.splice(data, extraction, expected, Options("en", "en")) == data
    assert_read_back(HTML, data, tagged(extraction))
    output = HTML.splice(data, extraction, tagged(extraction), GERMAN).decode()
    for mark in ("{{", "}}", "{%", "%}", "{#"):
        assert output.count(mark) == page.count(mark)


@pytest.mark.parametrize("text", ["<x1/>Ja nein", "Ja {% x %}<x1/>nein", "Ja {{ a }}<x1/>nein"])
def test_templates_that_a_translation_moves_to_an_end_or_adds_leave_the_source(text: str) -> None:
    data = b"<p>Yes{% else %}no</p>"
    extraction = HTML.extract(data, GERMAN)
    output = HTML.splice(data, extraction, [text], GERMAN)
    assert differing(HTML, output, extraction, [text], GERMAN) == [0]


@pytest.mark.parametrize(
    "part", ["{{", "{%", "{#", "{# ", "{{ a }}", "{#\n", "}}", "{% raw %}", "{{{"]
)
def test_time_is_linear_in_the_number_of_templates(part: str) -> None:
    data = (part * (2**18 // len(part)) + "a #}").encode()
    assert_identity(HTML, data)


def test_values_of_buttons_are_texts_and_those_of_fields_are_not() -> None:
    page = (
        '<form><input type="submit" value="Send form"><INPUT VALUE=Cancel TYPE=button>'
        '<input type="reset" value="Start again"><input type="hidden" value="Not shown">'
        '<input value="A default"><input type="text" value="A name"></form>'
    )
    assert texts(page) == ["Send form", "Cancel", "Start again"]
    output = spliced(page, "Absenden", "Nicht jetzt", None)
    assert '<input type="submit" value="Absenden">' in output
    assert '<INPUT VALUE="Nicht jetzt" TYPE=button>' in output


def test_passages_of_another_language_are_left_alone_and_remarked() -> None:
    page = (
        '<html lang="en">\n<body><p>A sense of <i lang="fr">déjà vu</i> again.</p>'
        '<p lang="en-GB">Colour</p><div xml:lang="ja" title="x y"><p>日本</p></div>'
        '<ul><li><a lang="de" href="/de">Deutsch</a></ul>'
    )
    extraction = assert_identity(HTML, page.encode())
    assert [each.text for each in extraction.segments] == ["A sense of <x1/> again.", "Colour"]
    [remark] = extraction.remarks
    assert (remark.kind, remark.count, remark.place) == ("html", 2 + 1, "line 2")
    output = assert_read_back(HTML, page.encode(), tagged(extraction)).decode()
    assert '<html lang="de">' in output
    assert '<i lang="fr">déjà vu</i>' in output
    assert (
        texts(page.replace('<html lang="en">', ""), options=Options("de"))[0]
        == "A sense of <g1>déjà vu</g1> again."
    )


def test_passages_of_another_language_stay_one_text_in_bilingual_pages() -> None:
    page = b'<html lang="en"><p>A <i lang="fr">mot</i> here.</p>'
    both = replace(GERMAN, bilingual=True)
    assert_read_back(HTML, page, ["Ein <g1>mot</g1> hier."], both)


@pytest.mark.parametrize(
    ("tag", "wanted"),
    [
        ('<html lang="{{ page.lang }}">', None),
        ('<html lang="{{ site.lang | default: "en-US" }}" dir="{{ x }}">', None),
        ('<html lang="{% if a %}en{% else %}de{% endif %}">', None),
        ("<html lang='<%= lang %>'>", None),
        ("<html {{ attributes }}>", None),
        ('<html lang="en" dir="{{ x }}">', '<html lang="ar" dir="{{ x }}">'),
        ('<html class="{{ x }}" lang="en">', '<html dir="rtl" class="{{ x }}" lang="ar">'),
    ],
)
def test_a_language_that_a_template_decides_stays(tag: str, wanted: str | None) -> None:
    data = f"<!DOCTYPE html>{tag}<body><p>Hello you</p></body></html>".encode()
    arabic = Options("ar", "en")
    output = assert_read_back(HTML, data, ["B"], arabic)
    assert output == data.replace(b"Hello you", b"B").replace(
        tag.encode(), (wanted or tag).encode()
    )


@pytest.mark.parametrize("options", [GERMAN, Options("de")])
def test_a_passage_whose_language_a_template_decides_is_no_other_one(options: Options) -> None:
    page = '<html lang="en"><p lang="{{ x }}">One</p><p lang="fr">Deux</p></html>'
    found = assert_identity(HTML, page.encode(), options)
    assert [each.text for each in found.segments] == ["One"]
    page = '<html lang="{{ x }}"><p lang="en">One</p></html>'
    found = assert_identity(HTML, page.encode(), options)
    assert [each.text for each in found.segments] == ["One"]
