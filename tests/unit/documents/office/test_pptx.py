"""Tests of PPTX."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from io import BytesIO

import pytest

from dragoman_documents import registry
from dragoman_documents.codec import DocumentError
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
)
from support.documents.office import package

CODEC = registry.codec("pptx")
SHAPE = (
    '<p:sp><p:nvSpPr><p:cNvPr id="1" name="n"{alt}/><p:nvPr>{ph}</p:nvPr></p:nvSpPr>'
    "<p:txBody><a:p><a:pPr/>{runs}<a:endParaRPr/></a:p></p:txBody></p:sp>"
)
RUN = "<a:r><a:rPr {attributes}/><a:t>{text}</a:t></a:r>"
RELATION = '<Relationships><Relationship Id="r1" Target="{}"/></Relationships>'


def shape(*texts: tuple[str, str], alt: str = "", ph: str = "") -> str:
    runs = "".join(RUN.format(text=text, attributes=attributes) for text, attributes in texts)
    return SHAPE.format(runs=runs, alt=alt, ph=ph)


def pptx(*shapes: str, **parts: str) -> bytes:
    folder = {
        "notesSlide1": "notesSlides",
        "chart1": "charts",
        "chartEx1": "charts",
        "data1": "diagrams",
    }
    return package(
        {
            "ppt/presentation.xml": "<p:presentation/>",
            "ppt/slides/slide1.xml": f"<p:sld>{''.join(shapes)}</p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": RELATION.format("../notesSlides/notesSlide1.xml"),
            "ppt/notesSlides/_rels/notesSlide1.xml.rels": RELATION.format("../slides/slide1.xml"),
            **{
                f"ppt/charts/_rels/{name}"
                if name.endswith(".rels")
                else f"ppt/{folder[name]}/{name}.xml": xml
                for name, xml in parts.items()
            },
        }
    )


def test_runs_that_differ_in_language_or_spelling_marks_are_one() -> None:
    data = pptx(shape(("On", 'lang="en-US" dirty="0"'), ("e ", 'lang="de"'), ("two", 'b="1"')))
    (segment,) = assert_identity(CODEC, data).segments
    assert (segment.text, segment.place) == ("One <g1>two</g1>", "slide 1")
    assert_read_back(CODEC, data, ["<g1>Zwei</g1> eins"])


def test_a_presentation_that_is_its_own_translation_stays_as_it_is() -> None:
    runs = (("One ", 'lang="en-US" dirty="0"'), ("&quot;e&quot;", 'err="1"'), ("two", 'b="1"'))
    data = pptx(
        shape(*runs, alt=" descr='A \"cat\"\n&#38;'"),
        chart1="<c:chart><c:title><cx:v> it&apos;s </cx:v></c:title></c:chart>",
    )
    assert_itself_again(CODEC, data)
    output = assert_read_back(CODEC, data, ["Eine \"'Katze'\"", 'Eins "e" <g1>zwei</g1>', None])
    with zipfile.ZipFile(BytesIO(output)) as file:
        slide = file.read("ppt/slides/slide1.xml").decode()
    assert 'dirty="0"/><a:t>Eins </a:t>' in slide
    assert 'err="1"/><a:t>&quot;e&quot; </a:t>' in slide
    assert "descr='Eine\n\"&apos;Katze&apos;\"'" in slide


def test_titles_alternative_texts_notes_charts_and_diagrams_are_read() -> None:
    data = pptx(
        shape(("Top", ""), ph='<p:ph type="title"/>'),
        shape(("Text", ""), alt=' descr="A cat"'),
        notesSlide1=f"<p:notes>{shape(('Say', ''))}</p:notes>",
        chart1="<c:chart><c:title><a:p>" + RUN.format(text="Sales", attributes="") + "</a:p>"
        "</c:title><c:ser><c:v>East</c:v></c:ser></c:chart>",
        data1="<p:data><a:p>" + RUN.format(text="Point", attributes="") + "</a:p></p:data>",
    )
    extraction = assert_identity(CODEC, data)
    assert [(each.text, each.kind, each.place) for each in extraction.segments] == [
        ("Top", "title", "slide 1"),
        ("A cat", "attribute", "slide 1, alternative text"),
        ("Text", "paragraph", "slide 1"),
        ("Say", "note", "slide 1, notes"),
        ("Sales", "title", "chart 1, title"),
        ("Point", "paragraph", "diagram 1"),
    ]
    assert_read_back(CODEC, data, tagged(extraction))


def test_numbers_of_slides_and_breaks_stay() -> None:
    field = '<a:fld id="{x}" type="slidenum"><a:rPr/><a:t>7</a:t></a:fld>'
    page, after = RUN.format(text="Page ", attributes=""), RUN.format(text=" end", attributes="")
    data = pptx(SHAPE.format(runs=f"{page}{field}<a:br/>{after}", alt="", ph=""))
    (segment,) = assert_identity(CODEC, data).segments
    assert segment.text == "Page <x1/><x2/> end"
    assert_read_back(CODEC, data, ["<x2/>Seite <x1/> Ende"])


def test_a_workbook_with_the_name_of_a_presentation_is_refused() -> None:
    with pytest.raises(DocumentError) as caught:
        CODEC.extract(package({"xl/workbook.xml": "<workbook/>"}), GERMAN)
    assert caught.value.reason == "wrong_type"


def test_slides_are_in_the_order_of_the_presentation() -> None:
    relations = "".join(
        f'<Relationship Id="r{number}" Target="slides/slide{number}.xml"/>' for number in (1, 2)
    )
    data = package(
        {
            "ppt/presentation.xml": '<p:presentation><p:sldId r:id="r2"/><p:sldId r:id="r1"/>'
            "</p:presentation>",
            "ppt/_rels/presentation.xml.rels": f"<Relationships>{relations}</Relationships>",
            "ppt/slides/slide1.xml": f"<p:sld>{shape(('Last', ''))}</p:sld>",
            "ppt/slides/slide2.xml": f"<p:sld>{shape(('First', ''))}</p:sld>",
        }
    )
    assert [(each.text, each.place) for each in assert_identity(CODEC, data).segments] == [
        ("First", "slide 1"), ("Last", "slide 2"),
    ]  # fmt: skip


def test_a_shape_after_a_table_holds_no_cells() -> None:
    cell = "<a:tc><a:p>" + RUN.format(text="Cell", attributes="") + "</a:p></a:tc>"
    data = pptx(f"<p:graphicFrame>{cell}</p:graphicFrame>", shape(("Text", "")))
    assert [each.kind for each in assert_identity(CODEC, data).segments] == ["cell", "paragraph"]


def test_nested_shapes_have_each_alternative_text_once() -> None:
    data = pptx('<p:cNvPr descr="One">' * 3 + "</p:cNvPr>" * 3)
    extraction = assert_identity(CODEC, data)
    assert [each.text for each in extraction.segments] == ["One", "One", "One"]
    assert_read_back(CODEC, data, tagged(extraction))


def test_a_part_with_a_digit_that_is_no_number_is_read() -> None:
    data = package(
        {
            "ppt/presentation.xml": "<p:presentation/>",
            "ppt/slides/slide\u00b2.xml": f"<p:sld>{shape(('Text', ''))}</p:sld>",
        }
    )
    assert [each.text for each in assert_identity(CODEC, data).segments] == ["Text"]


def test_the_title_of_a_slide_is_the_context_of_its_texts_and_notes_if_asked() -> None:
    shapes = (shape(("Text", "")), shape(("Top", ""), ph='<p:ph type="title"/>'))
    data = pptx(*shapes, notesSlide1=f"<p:notes>{shape(('Say', ''))}</p:notes>")
    segments = CODEC.extract(data, replace(GERMAN, headings=True)).segments
    assert [(each.text, each.headings) for each in segments] == [
        ("Text", ("Top",)), ("Top", ()), ("Say", ("Top",)),
    ]  # fmt: skip


def test_titles_of_charts_of_new_kinds_are_read() -> None:
    runs = RUN.format(text="Sales", attributes="")
    data = pptx(
        shape(("Text", "")),
        chartEx1=f"<cx:chartSpace><cx:title><cx:tx><cx:txData><cx:v>Sales</cx:v></cx:txData>"
        f"<cx:rich><a:p>{runs}</a:p></cx:rich></cx:tx></cx:title><cx:v>East</cx:v></cx:chartSpace>",
    )
    extraction = assert_identity(CODEC, data)
    assert [each.text for each in extraction.segments] == ["Text", "Sales", "Sales"]
    assert_read_back(CODEC, data, tagged(extraction))


def test_categories_and_names_of_series_are_read_once_and_written_in_all_places() -> None:
    point = '<c:pt idx="0"><c:v>{}</c:v></c:pt>'
    names = "".join(map(point.format, ("East &amp; West", "North", "2024", "Q1")))
    series = (
        "<c:ser><c:tx><c:strRef><c:f>Sheet1!$B$1</c:f><c:strCache>"
        f"{point.format('Units sold')}</c:strCache></c:strRef></c:tx>"
        f"<c:dLbls><c:dLbl><c:tx><c:rich><a:p>{RUN.format(text='Best', attributes='')}</a:p>"
        "</c:rich></c:tx></c:dLbl></c:dLbls>"
        f"<c:cat><c:strRef><c:f>Sheet1!$A$2</c:f><c:strCache>{names}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache>{point.format('7')}</c:numCache></c:numRef></c:val></c:ser>"
    )
    data = pptx(
        shape(("Text", "")),
        chart1=f"<c:chart>{series * 2}</c:chart>",
        **{"chart1.xml.rels": RELATION.format("../embeddings/Sheet1.xlsx")},
    )
    extraction = assert_identity(CODEC, data)
    wanted = ["Text", "Best", "Best", "Units sold", "East & West", "North"]
    assert [each.text for each in extraction.segments] == wanted
    assert [each.place for each in extraction.remarks] == ["chart 1"]
    output = assert_read_back(CODEC, data, tagged(extraction))
    with zipfile.ZipFile(BytesIO(output)) as file:
        chart = file.read("ppt/charts/chart1.xml").decode()
    assert chart.count("<c:v>[de] East &amp; West</c:v>") == chart.count("[de] Units sold") == 2
    assert_itself_again(CODEC, data)


def test_categories_of_charts_of_new_kinds_are_read() -> None:
    data = pptx(
        shape(("Text", "")),
        chartEx1='<cx:chartSpace><cx:strDim type="cat"><cx:lvl><cx:pt idx="0">East</cx:pt>'
        '</cx:lvl></cx:strDim><cx:numDim><cx:lvl><cx:pt idx="0">7</cx:pt></cx:lvl></cx:numDim>'
        "<cx:series><cx:tx><cx:txData><cx:v>Units</cx:v></cx:txData></cx:tx></cx:series>"
        "</cx:chartSpace>",
    )
    extraction = assert_identity(CODEC, data)
    assert [each.text for each in extraction.segments] == ["Text", "East", "Units"]
    assert_read_back(CODEC, data, tagged(extraction))
