"""Tests of packages whose main part, or what it leads to, is not where it is looked for."""

from __future__ import annotations

import zipfile
from io import BytesIO

import pytest

from dragoman_documents import registry
from dragoman_documents.codec import DocumentError
from support.documents.laws import GERMAN, assert_identity, assert_read_back, tagged
from support.documents.office import docx, package, paragraph, zipped

WORKBOOK = '<workbook><sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>'
SHEET = '<worksheet><c r="A1" t="inlineStr"><is><t>Open file</t></is></c></worksheet>'
RELATIONS = '<Relationships><Relationship Id="rId1" Target="{}"/></Relationships>'
BOOK = {
    "xl/workbook.xml": WORKBOOK,
    "xl/_rels/workbook.xml.rels": RELATIONS.format("worksheets/sheet1.xml"),
    "xl/worksheets/sheet1.xml": SHEET,
}
SLIDES = "<p:presentation><p:sldIdLst><p:sldId r:id='rId1'/></p:sldIdLst></p:presentation>"
OPEN = "application/vnd.oasis.opendocument."
CONTAINER = "<container><rootfile full-path='b.opf'/></container>"


def with_backslashes(data: bytes) -> bytes:
    with zipfile.ZipFile(BytesIO(data)) as file:
        files = {name: file.read(name) for name in file.namelist()}
    return zipped({name.replace("/", "\\"): content for name, content in files.items()})


@pytest.mark.parametrize(
    ("kind", "data"),
    [("xlsx", package(BOOK)), ("docx", docx(paragraph("Open file")))],
)
def test_names_of_members_with_backslashes_are_read_and_kept(kind: str, data: bytes) -> None:
    codec = registry.codec(kind)
    odd = with_backslashes(data)
    found = assert_identity(codec, odd, GERMAN)
    assert [each.text for each in found.segments] == ["Open file"]
    output = assert_read_back(codec, odd, tagged(found))
    with zipfile.ZipFile(BytesIO(odd)) as before, zipfile.ZipFile(BytesIO(output)) as after:
        assert [each.orig_filename for each in before.infolist()] == [
            each.orig_filename for each in after.infolist()
        ]


def test_two_members_of_one_name_but_for_backslashes_are_refused() -> None:
    with pytest.raises(DocumentError) as refused:
        registry.codec("docx").extract(zipped({"a/b": "x", "a\\b": "y"}), GERMAN)
    assert refused.value.reason == "corrupt"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("docx", package({"word/document.xml": "<w:hdr/>"})),
        ("xlsx", package({name: xml for name, xml in BOOK.items() if "sheet1" not in name})),
        ("xlsx", package({**BOOK, "xl/workbook.xml": "<workbook/>"})),
        ("pptx", package({"ppt/presentation.xml": SLIDES})),
        ("pptx", package({"ppt/presentation.xml": "<p:other/>"})),
        ("odt", zipped({"mimetype": f"{OPEN}text", "content.xml": "<body/>"})),
        ("ods", zipped({"mimetype": f"{OPEN}spreadsheet", "content.xml": "<body/>"})),
        ("odp", zipped({"mimetype": f"{OPEN}presentation", "content.xml": "<body/>"})),
        (
            "epub",
            zipped({
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": CONTAINER,
                "b.opf": "<package><item id='a' href='a.xhtml' media-type='x'/></package>",
            }),
        ),
    ],
)  # fmt: skip
def test_a_document_without_its_main_part_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(DocumentError) as refused:
        registry.codec(kind).extract(data, GERMAN)
    assert refused.value.reason == "corrupt"
