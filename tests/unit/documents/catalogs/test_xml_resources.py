"""Tests of Android strings, RESX, Qt TS and TTML."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from dragoman_documents import registry
from dragoman_documents.codec import Extraction, Options
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
    translations,
)


def extracted(name: str, xml: str) -> Extraction:
    codec = registry.codec(name)
    extraction = assert_identity(codec, xml.encode())
    assert_read_back(codec, xml.encode(), tagged(extraction))
    return extraction


def texts(name: str, xml: str) -> list[str]:
    return [each.text for each in extracted(name, xml).segments]


def written(name: str, xml: str, *given_texts: str | None) -> str:
    return assert_read_back(registry.codec(name), xml.encode(), given_texts).decode()


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("Don\\'t\\n\\u0041  b\n  c", "Don't\nA b c"),
        ('"  a  b "', "a  b"),
        ("a <b>c</b> %1$s", "a <g1>c</g1> %1$s"),
        ('a <xliff:g id="x">%s</xliff:g>', "a <x1/>"),
        ("a &lt;b&gt;", "a <x1/>"),
        ("<![CDATA[<b>a</b>]]>", "<g1>a</g1>"),
        ("a &app; b", "a <x1/> b"),
        ("\\@a", "@a"),
    ],
)
def test_texts_of_android(content: str, wanted: str) -> None:
    xml = (
        '<!DOCTYPE resources [<!ENTITY app "App">]>'
        '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">'
        f'<string name="n">{content}</string></resources>'
    )
    assert texts("android", xml) == [wanted]


def test_items_of_android_are_read_and_references_are_not() -> None:
    xml = (
        '<resources><string name="a" translatable="false">A</string>'
        '<string name="b">@string/c</string><string name="c">?attr/d</string>'
        '<string-array name="e"><item>F</item><item>G</item></string-array>'
        '<plurals name="h"><item quantity="one">%d I</item><item quantity="few">%d Is</item>'
        '<item quantity="other">%d Is</item></plurals></resources>'
    )
    extraction = extracted("android", xml)
    assert [(each.text, each.place) for each in extraction.segments] == [
        ("F", "e.0"), ("G", "e.1"), ("%d I", "h.one"), ("%d Is", "h.few"),
        ("%d Is", "h.other"),
    ]  # fmt: skip
    assert [each.place for each in extraction.remarks] == ["h"]


def test_translations_of_android_are_escaped() -> None:
    xml = "<resources><string name='a'>A</string></resources>"
    assert '>\\@l\\\'eau \\"x\\"\\n&amp;\\\\</string>' in written(
        "android", xml, '@l\'eau "x"\n&\\'
    )


@given(translations)
def test_any_translation_of_android_reads_back(text: str) -> None:
    if any(map(str.isalpha, text)):
        xml = "<resources><string name='a'>A <b>c</b></string></resources>"
        written("android", xml, f"{text} <g1>{text}</g1>")


def test_values_of_resx_without_a_type_are_read() -> None:
    xml = (
        '<root><data name="a" xml:space="preserve"><value>A</value><comment>C</comment></data>'
        '<data name="b" type="System.Drawing.Point"><value>B</value></data>'
        '<data name="&gt;&gt;c.Name"><value>C</value></data><resheader><value>D</value></resheader>'
        "</root>"
    )
    (segment,) = extracted("resx", xml).segments
    assert (segment.text, segment.place, segment.context) == ("A", "a", "C")
    assert "<value>&lt;b&gt;x</value>" in written("resx", xml, "<b>x")


QT = "<!DOCTYPE TS><TS><context><name>Main</name>{}</context></TS>"
MESSAGE = "<message{}><source>A</source><comment>c</comment><translation{}</translation></message>"


def test_messages_of_qt_have_states() -> None:
    xml = QT.format("".join((
        MESSAGE.format("", ' type="unfinished">'),
        MESSAGE.format("", ' type="unfinished">x'),
        MESSAGE.format("", ">y"),
        MESSAGE.format("", ' type="vanished">z'),
        MESSAGE.format(' numerus="yes"', "><numerusform></numerusform>"),
    )))  # fmt: skip
    extraction = extracted("qt", xml)
    assert [(each.state, each.target, each.context) for each in extraction.segments] == [
        ("empty", None, "c"), ("draft", "x", "c"), ("done", "y", "c"),
    ]  # fmt: skip
    assert len(extraction.remarks) == 1


def test_translations_of_qt_are_finished_unless_they_are_drafts() -> None:
    xml = QT.format(MESSAGE.format("", ' type="unfinished">') + MESSAGE.format("", "/><!-- >"))
    xml = xml.replace("/><!-- ></translation>", "/>")
    codec = registry.codec("qt")
    extraction = codec.extract(xml.encode(), GERMAN)
    options = replace(GERMAN, drafts=frozenset({1}))
    output = codec.splice(xml.encode(), extraction, ["B", "C"], options).decode()
    assert "<translation>B</translation>" in output
    assert '<translation type="unfinished">C</translation>' in output


def test_a_message_of_qt_without_a_translation_gets_one_behind_its_source() -> None:
    xml = QT.format("<message><source>A</source><comment>c</comment></message>")
    assert written("qt", xml, "B") == xml.replace(
        "</source>", "</source><translation>B</translation>"
    ).replace("<TS>", '<TS language="de">')
    plural = extracted("qt", xml.replace("<message>", '<message numerus="yes">'))
    assert (plural.segments, len(plural.remarks)) == ((), 1)


def test_messages_of_qt_outside_of_a_context_are_read_and_those_within_a_message_are_not() -> None:
    inner = QT.removeprefix("<!DOCTYPE TS>").format(MESSAGE.format("", ">y"))
    message = f"<message><source>A {inner}</source></message>"
    xml = f"<!DOCTYPE TS><TS>{message}<message id='b'><source>B</source></message></TS>"
    found = assert_identity(registry.codec("qt"), xml.encode())
    assert [(each.text, each.place) for each in found.segments] == [
        ("A <x1/>", "message 0"), ("B", "message 1"),
    ]  # fmt: skip
    assert_read_back(registry.codec("qt"), xml.encode(), ["<x1/> C", "D"])


def test_an_item_of_android_that_is_a_string_is_read() -> None:
    xml = (
        '<resources><item type="string" name="a">One</item><item type="id" name="b"/>'
        '<item type="dimen" name="c">two</item><item type="string" name="d">@string/a</item>'
        "</resources>"
    )
    (segment,) = extracted("android", xml).segments
    assert (segment.text, segment.place) == ("One", "a")
    assert written("android", xml, "Eins") == xml.replace("One", "Eins")


@pytest.mark.parametrize(
    ("spelled", "text", "expected"),
    [
        ('" a', "a", "\\u0020[de] a"),
        ('" a""', "a", "\\u0020[de] a"),
        ('"\\u0020a', "a", "\\u0020[de] a"),
        ('" "a', "a", '" "[de] a'),
        ('a " b', "a  b", '[de] a " b'),
        ('"a  b', "a  b", '[de] "a  b'),
    ],
)
def test_quotes_of_android_that_do_not_end(spelled: str, text: str, expected: str) -> None:
    xml = "<resources><string name='k'>{}</string></resources>"
    codec, data = registry.codec("android"), xml.format(spelled).encode()
    assert [each.text for each in assert_identity(codec, data).segments] == [text]
    assert_itself_again(codec, data)
    assert assert_read_back(codec, data, [f"[de] {text}"]).decode() == xml.format(expected)


def test_a_newline_within_a_tag_in_cdata_of_android_stays() -> None:
    data = b'<resources><string name="k"><![CDATA[<a"\r\n>h]]></string></resources>'
    output = assert_read_back(registry.codec("android"), data, ["[de] <x1/>h"])
    assert output == data.replace(b"[<a", b"[[de] <a")


LENGTHS = "<lengthvariant>Long &lt;one</lengthvariant><lengthvariant>one</lengthvariant>"


def test_a_translation_of_qt_takes_the_place_of_those_of_several_lengths() -> None:
    xml = QT.format(
        MESSAGE.format("", f' variants="yes">{LENGTHS}')
        + MESSAGE.format("", f" type='unfinished' variants='yes'>{LENGTHS}")
        + MESSAGE.format("", ' variants="yes" type="unfinished">')
    )
    codec = registry.codec("qt")
    extraction = codec.extract(xml.encode(), GERMAN)
    assert [(each.state, each.target) for each in extraction.segments] == [
        ("done", "Long <one"), ("draft", "Long <one"), ("empty", None),
    ]  # fmt: skip
    output = assert_read_back(codec, xml.encode(), [None, "B", "C"])
    assert b"".join((LENGTHS.encode(), b"</translation>")) in output
    assert b"<translation>B</translation>" in output
    assert b"<translation>C</translation>" in output


def test_a_passage_of_another_document_in_a_cue_of_ttml_stays() -> None:
    xml = (
        '<tt xml:lang="en" xmlns="http://www.w3.org/ns/ttml"><body xml:lang="en"><div>'
        '<p>A <metadata><div xml:lang="en">b</div></metadata></p></div></body></tt>'
    )
    output = written("ttml", xml, "B <x1/>")
    assert output == xml.replace('"en"', '"de"').replace(
        '<div xml:lang="de">', '<div xml:lang="en">'
    ).replace(">A ", ">B ")


def test_cues_of_ttml_keep_their_times() -> None:
    xml = (
        '<tt xmlns="http://www.w3.org/ns/ttml"><body><div>'
        '<p begin="1s" end="2s">A <span>b</span><br/>c</p></div></body></tt>'
    )
    (segment,) = extracted("ttml", xml).segments
    assert (segment.text, segment.place) == ("A <g1>b</g1><x2/>c", "cue at 1s")
    assert '<p begin="1s" end="2s"><span>B</span><br/>C</p>' in written(
        "ttml", xml, "<g1>B</g1><x2/>C"
    )


RUBY = '<span tts:ruby="container">{}</span>'
BASE, READING = '<span tts:ruby="base">b</span>', '<span tts:ruby="text">r</span>'


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (RUBY.format(BASE + READING), "A <g1>b</g1>"),
        (RUBY.format(f'<span tts:ruby="delimiter">(</span>{READING}{BASE}'), "A <g1>b</g1>"),
        (RUBY.format(f'<span tts:ruby="baseContainer">{BASE}</span>{READING}'), "A <g1>b</g1>"),
        (
            RUBY.format(f'<span tts:ruby="baseContainer">{BASE}{BASE}</span>'),
            "A <g1><g2>b</g2><g3>b</g3></g1>",
        ),
        (RUBY.format(READING), "A <g1><x2/></g1>"),
        (RUBY.format('<span tts:ruby="base"/>'), "A <g1><x2/></g1>"),
        (
            '<span style="s r"><span style="b">b</span><span style="t">r</span></span>',
            "A <g1>b</g1>",
        ),
        ('<span style="s">b</span>', "A <g1>b</g1>"),
    ],
)
def test_what_is_written_over_a_ruby_of_ttml_is_no_text(content: str, wanted: str) -> None:
    styles = "".join(
        f'<style xml:id="{name}" tts:ruby="{role}"/>'
        for name, role in (("r", "container"), ("b", "base"), ("t", "text"))
    )
    xml = (
        '<tt xml:lang="en" xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling">'
        f"<head><styling>{styles}</styling></head><body><div><p>A {content}</p></div></body></tt>"
    )
    assert texts("ttml", xml) == [wanted]
    assert_itself_again(registry.codec("ttml"), xml.encode(), Options("en", "en"))
    assert_read_back(registry.codec("ttml"), xml.encode(), [f"[de] {wanted}"])


def test_a_paragraph_of_ttml_inside_another_belongs_to_it() -> None:
    xml = '<tt xmlns="http://www.w3.org/ns/ttml">' + "<p>A" * 190 + "</p>" * 190 + "</tt>"
    assert texts("ttml", xml) == ["A<x1/>"]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('" and "', '" B "'),
        ("\\u0020and\\n", "\\u0020B\\n"),
        ("\n  and\n ", "\n  B\n "),
        ("and\\ ", "B\\ "),
    ],
)
def test_blanks_of_android_that_show_stay(content: str, wanted: str) -> None:
    xml = f'<resources><string name="n">{content}</string></resources>'
    assert texts("android", xml) == ["and"]
    assert f">{wanted}</string>" in written("android", xml, "B")


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("", ""),
        (' tools:locale="en"', ' tools:locale="de"'),
        (' tools:locale="de-AT"', ' tools:locale="de-AT"'),
        (" x:locale='en'", " x:locale='en'"),
    ],
)
def test_the_locale_of_android_is_set_where_there_is_one(there: str, wanted: str) -> None:
    tools = "http://schemas.android.com/tools"
    xml = f'<resources xmlns:tools="{tools}" xmlns:x="{tools}"{there}><string name="n">A</string>'
    output = written("android", f"{xml}</resources>", "B")
    assert f'"{tools}"{wanted}><string name="n">B</string>' in output


@pytest.mark.parametrize(
    ("there", "wanted", "remarks"),
    [
        ("", ' language="de"', 0),
        (' language=""', ' language="de"', 0),
        (' language="de_AT"', ' language="de_AT"', 0),
        (' language="fr"', ' language="fr"', 1),
    ],
)
def test_files_of_qt_name_their_language(there: str, wanted: str, remarks: int) -> None:
    xml = QT.format(MESSAGE.format("", ' type="unfinished">')).replace("<TS>", f"<TS{there}>")
    assert len(extracted("qt", xml).remarks) == remarks
    assert f"<TS{wanted}>" in written("qt", xml, "B")


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("", ' xml:lang="de"'),
        (' xml:lang="en"', ' xml:lang="de"'),
        (' xml:lang="de-AT"', ' xml:lang="de-AT"'),
    ],
)
def test_the_language_of_ttml_is_set(there: str, wanted: str) -> None:
    xml = '<tt xmlns="http://www.w3.org/ns/ttml"{0}><body{0}><div xml:lang="fr"><p>A</p></div>'
    output = written("ttml", xml.format(there) + "</body></tt>", "B")
    assert f'<tt{wanted} xmlns="http' in output or f'ttml"{wanted}><body' in output
    assert f"<body{wanted if there else ''}>" in output
    assert '<div xml:lang="fr"><p>B</p>' in output
