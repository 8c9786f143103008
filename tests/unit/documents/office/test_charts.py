"""Tests of charts: which texts are sent, and where copies of cells stay."""

from __future__ import annotations

import pytest

from dragoman_documents import registry
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
)
from support.documents.office import package

POINTS = '<c:pt idx="0"><c:v>{}</c:v></c:pt><c:pt idx="1"><c:v>12</c:v></c:pt>'
COPIES = "<c:strRef><c:f>Sheet1!A1</c:f><c:strCache>{}</c:strCache></c:strRef>"
BOOK = {
    "xl/workbook.xml": '<workbook><sheet name="S" r:id="rId1"/></workbook>',
    "xl/_rels/workbook.xml.rels": (
        '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>'
    ),
    "xl/worksheets/sheet1.xml": "<worksheet/>",
}
RUN = "<a:p><a:r><a:t>{}</a:t></a:r></a:p>"


def book(content: str, name: str = "xl/charts/chart1.xml") -> bytes:
    return package({**BOOK, name: f"<c:chartSpace>{content}</c:chartSpace>"})


def slides(content: str, name: str = "ppt/charts/chart1.xml") -> bytes:
    presentation = {"ppt/presentation.xml": "<p:presentation/>"}
    return package({**presentation, name: f"<c:chartSpace>{content}</c:chartSpace>"})


def texts(name: str, data: bytes) -> list[str]:
    codec = registry.codec(name)
    extraction = assert_identity(codec, data)
    assert_itself_again(codec, data)
    assert_read_back(codec, data, tagged(extraction))
    return [each.text for each in extraction.segments]


LITERAL = [
    f"<c:cat><c:strLit>{POINTS.format('East')}</c:strLit></c:cat>",
    "<c:tx><c:v>East</c:v></c:tx>",
    "<c:tx>\n  <c:v >East</c:v></c:tx>",
    "<c:trendline><c:name>East</c:name></c:trendline>",
    f"<c:dispUnitsLbl><c:tx><c:rich>{RUN.format('East')}</c:rich></c:tx></c:dispUnitsLbl>",
    "<cx:tx><cx:txData><cx:v>East</cx:v></cx:txData></cx:tx>",
    '<cx:strDim type="cat"><cx:lvl><cx:pt idx="0">East</cx:pt></cx:lvl></cx:strDim>',
]
COPIED = [
    f"<c:cat>{COPIES.format(POINTS.format('East'))}</c:cat>",
    f"<c:tx>{COPIES.format(POINTS.format('East'))}</c:tx>",
    "<cx:tx><cx:txData><cx:f>_x</cx:f><cx:v>East</cx:v></cx:txData></cx:tx>",
    "<cx:strDim><cx:f>_x</cx:f><cx:lvl><cx:pt>East</cx:pt></cx:lvl></cx:strDim>",
    "<c15:datalabelsRange><c15:f>A1</c15:f><c15:dlblRangeCache>"
    + POINTS.format("East")
    + "</c15:dlblRangeCache></c15:datalabelsRange>",
]


@pytest.mark.parametrize("content", LITERAL)
def test_texts_that_a_chart_alone_holds_are_sent(content: str) -> None:
    assert texts("xlsx", book(content)) == texts("pptx", slides(content)) == ["East"]


@pytest.mark.parametrize("content", COPIED)
def test_copies_of_cells_are_sent_where_their_sheet_is_not_the_document(content: str) -> None:
    assert texts("xlsx", book(content)) == []
    assert texts("pptx", slides(content)) == ["East"]


def test_text_that_is_drawn_on_a_chart_is_sent() -> None:
    shape = (
        f'<cdr:cNvPr id="1" name="n" descr="A box"/><cdr:txBody>{RUN.format("Peak")}</cdr:txBody>'
    )
    assert texts("xlsx", book(shape, "xl/drawings/drawing2.xml")) == ["A box", "Peak"]
    place = registry.codec("xlsx").extract(book(shape, "xl/drawings/drawing2.xml"), GERMAN)
    assert place.segments[1].place == "drawing 2 of a chart"


def test_categories_may_have_one_translation() -> None:
    names = "<c:tx><c:v>sum</c:v></c:tx><c:tx><c:v>total</c:v></c:tx><c:tx><c:v>sum</c:v></c:tx>"
    assert texts("xlsx", book(names)) == ["sum", "total", "sum"]
    assert_read_back(registry.codec("xlsx"), book(names), ["Summe"] * 3)
