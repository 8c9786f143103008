"""Tests of HTML in texts of Android's resources: CDATA stays, tags are codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.catalogs.android.codec import CODECS
from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.putting_back import put_back
from support.documents.laws import GERMAN, assert_itself_again, assert_read_back

ANDROID = CODECS["android"]


def resources(content: str) -> bytes:
    return f'<resources>\n<string name="a">{content}</string>\n</resources>\n'.encode()


def written(content: str, text: str) -> str:
    output = assert_read_back(ANDROID, resources(content), [text]).decode()
    return output.partition('"a">')[2].partition("</string>")[0]


@pytest.mark.parametrize(
    ("content", "text", "new", "expected"),
    [
        (
            '<![CDATA[See <a href="%1$s">the site</a> now.]]>',
            "See <g1>the site</g1> now.",
            "Jetzt geht's zur <g1>Seite</g1>",
            '<![CDATA[Jetzt geht\\\'s zur <a href="%1$s">Seite</a>]]>',
        ),
        (
            'See &lt;a href=\\"%1$s\\">the site&lt;/a> &amp; more',
            "See <g1>the site</g1> & more",
            "<g1>Seite</g1> & <mehr",
            '&lt;a href=\\"%1$s\\">Seite&lt;/a> &amp; &lt;mehr',
        ),
        (
            "<b>Big <![CDATA[<i>x y</i><br/>]]></b> z",
            "<g1>Big <g2>x y</g2><x3/></g1> z",
            "z <g1><x3/><g2>a b</g2></g1>",
            "z <b>&lt;br/&gt;&lt;i&gt;a b&lt;/i&gt;</b>",
        ),
        ("1 &lt; 2 and &lt;branch>", "1 < 2 and <branch>", "2 &gt; 1", "2 &amp;gt; 1"),
        (
            "<b>one &lt;i>two</b> three&lt;/i>",
            "<g1>one <x2/>two</g1> three<x3/>",
            "<g1>x</g1> <x3/><x2/>y",
            "<b>x</b> &lt;/i>&lt;i>y",
        ),
    ],
)
def test_tags_of_html_in_a_text_are_codes(content: str, text: str, new: str, expected: str) -> None:
    (segment,) = ANDROID.extract(resources(content), GERMAN).segments
    assert segment.text == text
    assert_itself_again(ANDROID, resources(content))
    assert written(content, new) == expected


def test_a_tag_that_a_translation_lost_leaves_the_source() -> None:
    data = resources("<![CDATA[See <b>the site</b>]]>")
    found = ANDROID.extract(data, GERMAN)
    done = put_back(ANDROID, data, found, ["Die Seite"], GERMAN)
    assert (done.data, done.tags) == (data, [0])
    done = put_back(ANDROID, data, found, ["<g1>Die</g1> <i>Seite</i>"], GERMAN)
    assert done.data == data


def test_html_in_plurals_is_codes_and_its_numbers_are_put_back() -> None:
    items = "".join(
        f'<item quantity="{name}"><![CDATA[<b>%d</b> {text}]]></item>'
        for name, text in (("one", "file"), ("other", "files"))
    )
    data = f'<resources><plurals name="n">{items}</plurals></resources>'.encode()
    found = ANDROID.extract(data, Options("pl", "en"))
    assert [each.text for each in found.segments][:2] == ["<g1>1</g1> file", "<g1>22</g1> files"]
    texts = ["<g1>1</g1> a", "<g1>22</g1> b", "<g1>25</g1> c", "<g1>25</g1> c"]
    texts = [
        text.replace("25", str(each.number))
        for text, each in zip(texts, found.segments, strict=True)
    ]
    output = assert_read_back(ANDROID, data, texts, Options("pl", "en")).decode()
    assert '<item quantity="few"><![CDATA[<b>%d</b> b]]></item>' in output


PART = st.sampled_from(
    [
        "word",
        " a b ",
        "<b>",
        "</b>",
        "&lt;i>",
        "&lt;/i>",
        '<![CDATA[<a href="%s">x]]>',
        "<![CDATA[</a>]]>",
        "&lt;br/>",
        "&lt;odd>",
        "&lt;/odd>",
        "\\'",
        '"',
        "&amp;",
        "1 &lt; 2",
        "<xliff/>",
    ]
)


@given(st.lists(PART, min_size=1, max_size=8).map("".join))
def test_any_html_in_a_text_stays_if_its_text_does(content: str) -> None:
    data = resources(content)
    try:
        found = ANDROID.extract(data, GERMAN)
    except DocumentError:  # crossing tags of XML
        return
    assert_itself_again(ANDROID, data)
    texts = [f"x {each.text}" for each in found.segments]
    done = put_back(ANDROID, data, found, texts, GERMAN)
    assert not done.changed
