"""Tests of ODT, ODS and ODP."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.read_back import differing
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
    translations,
)
from support.documents.office import zipped

ODF = "urn:oasis:names:tc:opendocument:xmlns"
NAMES = (
    *("office", "text", "table", "style", "presentation", "form"),
    *("drawing", "svg-compatible"),
)
PREFIXES = {"drawing": "draw", "svg-compatible": "svg"}
NAMESPACES = " ".join(f'xmlns:{PREFIXES.get(name, name)}="{ODF}:{name}:1.0"' for name in NAMES)
RSID = 'xmlns:o="http://openoffice.org/2009/office" o:rsid="1"'
STYLES = (
    '<style:style style:name="T1" style:family="text">'
    f"<style:text-properties {RSID}/></style:style>"
    '<style:style style:name="T2" style:family="text">'
    '<style:text-properties style:bold="1"/></style:style>'
)
SPAN = '<text:span text:style-name="{}">{}</text:span>'
LIST = "<text:list><text:list-item>{}</text:list-item></text:list>"
NOTE = "<text:note><text:note-body><text:p>{}</text:p></text:note-body></text:note>"


def odf(body: str, kind: str = "text", **more: str) -> bytes:
    content = (
        f"<office:document-content {NAMESPACES}><office:automatic-styles>{STYLES}"
        f"</office:automatic-styles><office:body>{body}</office:body></office:document-content>"
    )
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            **{name.replace("_", "."): xml for name, xml in more.items()},
        }
    )


def found(data: bytes, kind: str = "odt") -> list[tuple[str, str]]:
    codec = registry.codec(kind)
    extraction = assert_identity(codec, data)
    assert_read_back(codec, data, tagged(extraction))
    return [(each.text, each.place) for each in extraction.segments]


def content(data: bytes) -> str:
    with zipfile.ZipFile(BytesIO(data)) as file:
        return file.read("content.xml").decode()


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("<text:p> One </text:p><text:h>Two</text:h>", ["One", "Two"]),
        (f"<text:p>One {SPAN.format('T2', 'two')}</text:p>", ["One <g1>two</g1>"]),
        (f"<text:p>O{SPAN.format('T1', 'ne')}</text:p>", ["One"]),
        ("<text:p>a<text:s text:c='2'/>b<text:tab/></text:p>", ["a<x1/>b<x2/>"]),
        ("<text:p>a<text:date>May</text:date></text:p>", ["a<x1/>"]),
        ("<text:p>a<office:annotation><text:p>b</text:p></office:annotation></text:p>", ["a<x1/>"]),
        (
            f"<text:p>a{NOTE.format('n')}b</text:p>{LIST.format('<text:p>c</text:p>')}",
            ["a<x1/>b", "n", "c"],
        ),
        ("<text:tracked-changes><text:p>old</text:p></text:tracked-changes>", []),
        ("<draw:frame><svg:title>A cat</svg:title></draw:frame>", ["A cat"]),
        ("<text:index-body><text:p>One 1</text:p></text:index-body>", []),
    ],
)
def test_segments_of_a_text(body: str, wanted: list[str]) -> None:
    assert [text for text, _ in found(odf(body))] == wanted


def test_headers_and_the_title_are_read() -> None:
    header = f"<style:header {NAMESPACES}><text:p>Head</text:p></style:header>"
    meta = '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title></m>'
    data = odf("<text:p>Body</text:p>", styles_xml=header, meta_xml=meta)
    assert [text for text, _ in found(data)] == ["Body", "Head", "T"]


def test_cells_with_strings_are_read_and_formulas_and_numbers_are_not() -> None:
    cell = '<table:table-cell office:value-type="{}"{}><text:p>{}</text:p></table:table-cell>'
    many = '<table:table-cell table:number-columns-repeated="3"/>'
    row = "".join((
        cell.format("string", ' office:string-value="One"', "One"),
        many,
        cell.format("float", "", "12 May"),
        cell.format("string", ' table:formula="of:=A1"', "One"),
        cell.format("string", "", "Two"),
        cell.format("float", ' table:formula="of:=IF([.A1]=&quot;two&quot;;1;0)"', "1"),
    ))  # fmt: skip
    skipped = '<table:table-row table:number-rows-repeated="4"/>'
    data = odf(
        f'<table:table table:name="S">{skipped}<table:table-row>{row}</table:table-row>'
        "</table:table>",
        "spreadsheet",
    )
    assert found(data, "ods") == [("One", "sheet S, A5")]
    codec = registry.codec("ods")
    assert [each.place for each in codec.extract(data, GERMAN).remarks] == ["sheet S, G5"]
    assert 'office:string-value="Eins"' in content(assert_read_back(codec, data, ["Eins"]))


def test_a_workbook_that_is_its_own_translation_stays_as_it_is() -> None:
    cell = (
        '<table:table-cell office:string-value="it\'s &gt; &#8222;a&#9;b  c">'
        "<text:p>it's > &#8222;a<text:tab/>b<text:s text:c='2'/>c</text:p></table:table-cell>"
    )
    row = f"<table:table-row>{cell}</table:table-row>"
    data = odf(f'<table:table table:name="S">{row}</table:table>', "spreadsheet")
    codec = registry.codec("ods")
    assert_itself_again(codec, data)
    output = content(assert_read_back(codec, data, ["x<x1/>y <x2/>z's > &"]))
    assert 'string-value="x&#9;y   z\'s &gt; &amp;"' in output


def test_spans_of_revisions_stay_in_a_translation() -> None:
    small, red, cats = SPAN.format("T1", " small"), SPAN.format("T2", " red"), "<!-- c -->ca"
    data = odf(f"<text:p>Two{small}{red}{SPAN.format('T1', ' ')}{cats}</text:p>")
    text = "Zwei kleine<g1> rote</g1> <x2/>Katzen"
    output = content(assert_read_back(registry.codec("odt"), data, [text]))
    wanted = content(data).replace("small", "kleine").replace("red", "rote")
    assert output == wanted.replace("Two", "Zwei").replace("-->ca", "-->Katzen")


def test_slides_and_notes_are_read() -> None:
    notes = "<presentation:notes><text:p>Say</text:p></presentation:notes>"
    data = odf(
        f"<draw:page><text:p>A</text:p>{notes}</draw:page><draw:page><text:p>B</text:p></draw:page>",
        "presentation",
    )
    wanted = [("A", "slide 1"), ("Say", "slide 1, notes"), ("B", "slide 2")]
    assert found(data, "odp") == wanted


@given(
    st.lists(
        st.sampled_from([
            "a", " ", SPAN.format("T2", "b"), SPAN.format("T1", "c"), "<text:s/>", "&lt;x1/&gt;",
            SPAN.format("T2", ""), "<text:span/>", SPAN.format("T2", SPAN.format("T2", "d")),
            "<!-- e -->", NOTE.format("n"), "&quot;", '"', "f&#8217;\n", "g ",
            SPAN.format("T1", ""),
            SPAN.format("T1", SPAN.format("T2", "h") + " i" + SPAN.format("T1", "j")),
        ])
    ),
    translations,
)  # fmt: skip
def test_any_order_of_tags_reads_back(parts: list[str], text: str) -> None:
    codec = registry.codec("odt")
    data = odf(f"<text:p>{''.join(parts)}</text:p>")
    extraction = assert_identity(codec, data)
    assert_itself_again(codec, data)
    texts = [
        "".join(
            f"<x{n}/>" if code.closing is None else f"<g{n}>{text}</g{n}>"
            for n, code in reversed(list(enumerate(each.codes, 1)))
        )
        + text
        for each in extraction.segments
    ]
    if any(map(str.isalpha, text)):
        assert_read_back(codec, data, texts)


def test_a_bilingual_text_has_the_translation_after_each_paragraph() -> None:
    codec, options = registry.codec("odt"), Options("de", bilingual=True)
    data = odf('<text:p text:style-name="P" xml:id="i">One<text:tab/></text:p><text:h>Two</text:h>')
    extraction = assert_identity(codec, data, options)
    texts = ["Eins<x1/>", "Zwei"]
    output = codec.splice(data, extraction, texts, options)
    assert differing(codec, output, extraction, texts, options) == []
    assert '<text:p text:style-name="P">Eins<text:tab/></text:p><text:h>' in content(output)


def test_a_bilingual_paragraph_with_a_note_has_its_translation_at_its_end() -> None:
    codec, options = registry.codec("odt"), Options("de", bilingual=True)
    data = odf(f"<text:p>One{NOTE.format('a note')} {SPAN.format('T2', 'two')}</text:p>")
    output = content(assert_read_back(codec, data, ["<g2>Zwei</g2> <x1/> eins", "b"], options))
    assert output.count("<text:note>") == 1
    zwei = SPAN.format("T2", "Zwei")
    assert f"{SPAN.format('T2', 'two')}<text:line-break/>{zwei}  eins</text:p>" in output


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (odf("", "spreadsheet"), "wrong_type"),
        (zipped({"content.xml": "<a/>"}), "wrong_type"),
        (odf("<text:p>"), "corrupt"),
        (zipped({**dict.fromkeys(["mimetype"], "application/vnd.oasis.opendocument.text"),
                 "content.xml": b"\1\2",
                 "META-INF/manifest.xml": "<m:encryption-data/>"}), "encrypted"),
    ],
)  # fmt: skip
def test_what_is_no_text_document_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        registry.codec("odt").extract(data, GERMAN)
    assert caught.value.reason == reason


def test_paragraphs_in_paragraphs_are_written_however_deep() -> None:
    assert len(found(odf("<text:p>a b" * 190 + "</text:p>" * 190))) == 190


def test_headings_above_a_paragraph_are_its_context_if_asked() -> None:
    body = "".join(
        f'<text:h text:outline-level="{level}">{text}</text:h><text:p>Below {text}.</text:p>'
        for level, text in ((1, "A"), (2, "B"), (2, "C"), (1, "D"))
    )
    options = replace(GERMAN, headings=True)
    segments = registry.codec("odt").extract(odf(body), options).segments
    assert [each.headings for each in segments] == [
        (), ("A",), ("A",), ("A", "B"), ("A",), ("A", "C"), (), ("D",),
    ]  # fmt: skip


def field(name: str, text: str, attributes: str = "") -> str:
    return f"<text:{name} {attributes}>{text}</text:{name}>"


RUBY = (
    "<text:ruby><text:ruby-base>{}</text:ruby-base><text:ruby-text>{}</text:ruby-text></text:ruby>"
)
CASES = 'text:string-value-if-true="yes" text:string-value-if-false="no"'
FORM = (
    '<office:forms><form:form form:name="n"><form:button form:label="Press" form:title="Tip"/>'
    "{}</form:form></office:forms>"
)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (f"<text:p>A {RUBY.format('base', 'reading')}.</text:p>", ["A <g1>base</g1>."]),
        (
            f"<text:p>A {RUBY.format(SPAN.format('T2', 'b'), 'r')}</text:p>",
            ["A <g1><g2>b</g2></g1>"],
        ),
        ("<text:p>A <text:ruby><text:ruby-base/></text:ruby></text:p>", ["A <x1/>"]),
        ("<text:p>A <text:ruby/></text:p>", ["A <x1/>"]),
        (f"<text:p>Dear {field('placeholder', '&lt;name&gt;')}</text:p>", ["Dear <g1><name></g1>"]),
        (f"<text:p>A {field('text-input', 'b')}</text:p>", ["A <g1>b</g1>"]),
        (f"<text:p>A {field('execute-macro', 'b')}</text:p>", ["A <g1>b</g1>"]),
        (f"<text:p>A {field('page-number', '1')}</text:p>", ["A <x1/>"]),
        (f"<text:p>A {field('conditional-text', 'no', CASES)}</text:p>", ["A <x1/>", "yes", "no"]),
        (f"<text:p>A {field('conditional-text', 'x', CASES)}</text:p>", ["A <x1/>", "yes", "no"]),
        (f"<text:p>{field('hidden-text', 'a', 'text:string-value=&quot;a&quot;')}</text:p>", None),
        (FORM.format(""), ["Press", "Tip"]),
        ("<text:index-title-template>Contents</text:index-title-template>", ["Contents"]),
        ("<table:table><table:title>Sales</table:title></table:table>", ["Sales"]),
    ],
)
def test_what_readers_see_besides_paragraphs_is_sent(body: str, wanted: list[str] | None) -> None:
    data = odf(body.replace("&quot;", '"'))
    codec = registry.codec("odt")
    texts = [text for text, _ in found(data)]
    assert texts == (["a"] if wanted is None else wanted)
    assert_itself_again(codec, data)
    assert_read_back(codec, data, tagged(codec.extract(data, GERMAN)))
    assert codec.extract(data, GERMAN).remarks == ()


def test_the_text_that_a_condition_shows_follows_its_case() -> None:
    data = odf(f"<text:p>A {field('conditional-text', 'no', CASES)}</text:p>")
    output = content(assert_read_back(registry.codec("odt"), data, ["A <x1/>", "ja", "nein"]))
    assert 'if-true="ja" text:string-value-if-false="nein">nein<' in output


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (FORM.format('<form:listbox><form:option form:label="One"/></form:listbox>'), "name"),
        (
            '<text:p>A <text:drop-down><text:label text:value="b"/>b</text:drop-down></text:p>',
            "name",
        ),
        ("<text:index-body><text:p>Chapter</text:p></text:index-body>", "generated"),
        ('<text:p><text:a office:title="A tip">b</text:a></text:p>', "attribute"),
    ],
)
def test_what_stays_is_remarked(body: str, kind: str) -> None:
    assert [each.kind for each in registry.codec("odt").extract(odf(body), GERMAN).remarks] == [
        kind
    ]


MESSAGES = (
    '<table:content-validations><table:content-validation table:base-cell-address="S.A1">'
    '<table:help-message table:title="Help"><text:p>A number</text:p></table:help-message>'
    '<table:error-message table:title="Bad"><text:p>No</text:p><text:p>Sorry</text:p>'
    "</table:error-message></table:content-validation></table:content-validations>"
)


def test_messages_of_cells_are_sent() -> None:
    data = odf(f'{MESSAGES}<table:table table:name="S"/>', "spreadsheet")
    places = [("message of S.A1", text) for text in ("Help", "A number", "Bad", "No", "Sorry")]
    assert [(place, text) for text, place in found(data, "ods")] == places
    assert_itself_again(registry.codec("ods"), data)


def test_values_of_cells_that_are_not_their_paragraph_are_sent() -> None:
    cell = '<table:table-cell office:string-value="{}">{}</table:table-cell>'
    cells = (
        cell.format("Only a value", ""),
        cell.format("A value", "<text:p>Another</text:p>"),
        cell.format("two lines", "<text:p>two</text:p><text:p>lines</text:p>"),
        cell.format(" a  b ", "<text:p>a<text:s text:c='2'/>b</text:p>"),
        cell.format(" ab ", "<text:p>ab</text:p>"),
        cell.format("=A1+1", ""),
        cell.format("", ""),
    )
    row = f"<table:table-row>{''.join(cells)}</table:table-row>"
    data = odf(f'<table:table table:name="S">{row}</table:table>', "spreadsheet")
    wanted = ["Only a value", "Another", "A value", "two", "lines", "two lines"]
    wanted += ["a<x1/>b", "a  b", "ab"]
    assert [text for text, _ in found(data, "ods")] == wanted
    assert_itself_again(registry.codec("ods"), data)


def test_footers_of_slides_are_sent() -> None:
    footer = "<presentation:footer-decl>Our company</presentation:footer-decl>"
    assert found(odf(footer, "presentation"), "odp") == [("Our company", "paragraph 0, footer")]
