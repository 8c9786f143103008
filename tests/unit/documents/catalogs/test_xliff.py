"""Tests of XLIFF 1.2 and 2.x."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from dragoman_documents import registry
from dragoman_documents.codec import DocumentError, Segment
from dragoman_documents.read_back import differing
from dragoman_documents.xml.targets import with_attribute
from support.documents.laws import GERMAN, assert_identity, assert_read_back, tagged, translations

CODEC = registry.codec("xliff")
ONE = (
    '<?xml version="1.0"?>\r\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    '<file source-language="en"{}><body>\r\n{}</body></file></xliff>'
)
TWO = (
    '<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0"{}>'
    '<file id="f">{}</file></xliff>'
)


def one(*units: str, attributes: str = ' target-language="de"') -> bytes:
    whole = "".join(f'<trans-unit id="{n}">{each}</trans-unit>' for n, each in enumerate(units, 1))
    return ONE.format(attributes, whole).encode()


def two(*segments: str, attributes: str = ' trgLang="de"') -> bytes:
    return TWO.format(attributes, f'<unit id="u">{"".join(segments)}</unit>').encode()


def segments(data: bytes) -> tuple[Segment, ...]:
    extraction = assert_identity(CODEC, data)
    assert_read_back(CODEC, data, tagged(extraction))
    return extraction.segments


def written(data: bytes, *texts: str | None, drafts: frozenset[int] = frozenset()) -> str:
    extraction = CODEC.extract(data, GERMAN)
    output = CODEC.splice(data, extraction, texts, replace(GERMAN, drafts=drafts))
    assert differing(CODEC, output, extraction, texts, GERMAN) == []
    return output.decode()


def test_a_file_inside_of_a_source_is_no_file_to_translate() -> None:
    inner = '<xliff><file source-language="en"><body><trans-unit id="2"/></body></file></xliff>'
    (segment,) = segments(one(f"<source>A {inner}</source>"))
    assert segment.text == "A <x1/>"


def test_inline_elements_are_codes() -> None:
    (segment,) = segments(one('<source>A <g id="1">b</g> <x id="2"/><bpt id="3">{</bpt></source>'))
    assert (segment.text, segment.place) == ("A <g1>b</g1> <x2/><x3/>", "unit 1")


def test_a_target_is_inserted_after_its_source_with_its_indentation() -> None:
    data = one("\n  <source> A </source>\n  <note>n</note>\n")
    assert '<source> A </source>\n  <target state="translated"> B </target>\n  <note>' in written(
        data, "B"
    )


@pytest.mark.parametrize(
    "target", ["<target/>", '<target state="new"></target>', "<target>x</target>"]
)
def test_a_target_that_is_there_is_replaced(target: str) -> None:
    output = written(one(f"<source>A</source> {target}"), "B")
    assert '<source>A</source> <target state="translated">B</target></trans-unit>' in output


def test_drafts_have_a_state_of_their_own() -> None:
    output = written(
        one("<source>A</source>", "<source>B</source>"), "a", "b", drafts=frozenset({1})
    )
    assert '<target state="translated">a</target>' in output
    assert '<target state="needs-review-translation">b</target>' in output


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("<source>A</source>", ("empty", None)),
        ("<source>A</source><target/>", ("empty", None)),
        ("<source>A</source><target>B</target>", ("done", "B")),
        ('<source>A</source><target state="final">B</target>', ("done", "B")),
        ('<source>A</source><target state="needs-translation">B</target>', ("draft", "B")),
        (
            '<source>A <x id="1"/><x id="2"/></source><target><x id="2"/>B <x id="1"/></target>',
            ("done", "<x2/>B <x1/>"),
        ),
    ],
)
def test_states_and_targets_are_read(unit: str, wanted: tuple[str, str | None]) -> None:
    (segment,) = segments(one(unit))
    assert (segment.state, segment.target) == wanted


def test_units_that_are_not_to_be_translated_are_left_alone() -> None:
    data = ONE.format(
        "", '<trans-unit id="1" translate="no"><source>A</source></trans-unit>'
        '<group translate="no"><trans-unit id="2"><source>B</source></trans-unit></group>'
        '<trans-unit id="3"><source>C</source><alt-trans><source>D</source></alt-trans>'
        "</trans-unit>"
    ).encode()  # fmt: skip
    assert [each.text for each in segments(data)] == ["C"]


def test_notes_and_lengths_are_known() -> None:
    data = ONE.format(
        "", '<trans-unit id="1" maxwidth="20" size-unit="char"><source>A</source><note>n</note>'
        "</trans-unit>"
    ).encode()  # fmt: skip
    (segment,) = segments(data)
    assert (segment.context, segment.max_chars) == ("n", 20)


@pytest.mark.parametrize(
    "data",
    [
        one("<source>A</source>", attributes=""),
        two("<segment><source>A</source></segment>", attributes=""),
    ],
)
def test_the_language_of_the_targets_is_set(data: bytes) -> None:
    output = written(data, "B")
    assert 'target-language="de"' in output or 'trgLang="de"' in output


def test_another_language_of_the_targets_is_remarked() -> None:
    data = one("<source>A</source>", attributes=' target-language="fr"')
    assert len(CODEC.extract(data, GERMAN).remarks) == 1
    assert 'target-language="fr"' in written(data, "B")


def test_segments_of_version_2_have_their_state() -> None:
    data = two(
        "<segment><source>A <pc id='1'>b</pc><ph id='2'/></source></segment>",
        '<segment state="initial"><source>C</source><target>x</target></segment>',
        "<ignorable><source> </source></ignorable>",
    )
    assert [(each.text, each.state) for each in segments(data)] == [
        ("A <g1>b</g1><x2/>", "empty"),
        ("C", "draft"),
    ]
    output = written(data, "<x2/><g1>B</g1>", "c", drafts=frozenset({1}))
    assert '<segment state="translated"><source>' in output
    assert "<target><ph id='2'/><pc id='1'>B</pc></target></segment>" in output
    assert '<segment state="initial"><source>C</source><target>c</target>' in output


@given(translations)
def test_any_translation_reads_back(text: str) -> None:
    if any(map(str.isalpha, text)):
        data = one('<source>A <g id="1">b</g>\n</source><target>old</target>', "<source>C</source>")
        assert_read_back(CODEC, data, [f"{text} <g1>{text}</g1>", text])
        assert_read_back(CODEC, two("<segment><source>A</source></segment>"), [text])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "corrupt"),
        (b"<a/>", "wrong_type"),
        (b"plain text", "wrong_type"),
        (b"<xliff>", "corrupt"),
        (b'<!DOCTYPE xliff [<!ENTITY a "b">]><xliff>&a;</xliff>', "wrong_type"),
    ],
)
def test_what_is_no_xliff_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        CODEC.extract(data, GERMAN)
    assert caught.value.reason == reason


def test_only_the_attributes_of_a_target_are_replaced() -> None:
    tag = b"<target" + b" " * 200_000 + b"note=\" state='x'\" state='new' >"
    assert with_attribute(tag, "state", "final").endswith(b'note=" state=\'x\'" state="final">')
    assert with_attribute(b'<a state = "x"/>', "state", None) == b"<a>"


def test_targets_have_the_segments_of_their_source() -> None:
    marks = '<mrk mtype="seg" mid="1">A.</mrk> <mrk mtype="seg" mid="2">B.</mrk>'
    unit = f'<trans-unit id="a"><source>A. B.</source><seg-source>{marks}</seg-source></trans-unit>'
    xml = f'<xliff version="1.2"><file>{unit}</file></xliff>'.encode()
    extraction = assert_identity(CODEC, xml)
    assert [each.text for each in extraction.segments] == ["<g1>A.</g1> <g2>B.</g2>"]
    output = assert_read_back(CODEC, xml, ["<g1>C.</g1> <g2>D.</g2>"]).decode()
    assert marks.replace("A", "C").replace("B", "D") + "</target>" in output
    assert '<target state="translated"><mrk' in output
