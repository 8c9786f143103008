"""Small office documents made of their XML."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Final

_OFFICE: Final = "http://schemas.openxmlformats.org"
_TYPES: Final = f"{_OFFICE}/package/2006/content-types"
_RELATIONS: Final = f"{_OFFICE}/package/2006/relationships"
WORD: Final = f"{_OFFICE}/wordprocessingml/2006/main"
STRICT_WORD: Final = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_NAMESPACES: Final = " ".join((
    f'xmlns:w="{WORD}"',
    f'xmlns:p="{_OFFICE}/presentationml/2006/main"',
    f'xmlns:a="{_OFFICE}/drawingml/2006/main"',
    f'xmlns:c="{_OFFICE}/drawingml/2006/chart"',
    f'xmlns:r="{_OFFICE}/officeDocument/2006/relationships"',
    f'xmlns:wp="{_OFFICE}/drawingml/2006/wordprocessingDrawing"',
    f'xmlns:xdr="{_OFFICE}/drawingml/2006/spreadsheetDrawing"',
    f'xmlns:mc="{_OFFICE}/markup-compatibility/2006"',
    f'xmlns:m="{_OFFICE}/officeDocument/2006/math"',
    'xmlns:v="urn:schemas-microsoft-com:vml"',
    'xmlns:x14="http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"',
    'xmlns:xm="http://schemas.microsoft.com/office/excel/2006/main"',
    f'xmlns:cdr="{_OFFICE}/drawingml/2006/chartDrawing"',
    'xmlns:c15="http://schemas.microsoft.com/office/drawing/2012/chart"',
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"',
    'xmlns:w15="http://schemas.microsoft.com/office/word/2012/wordml"',
    'xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex"',
    'xmlns:dc="http://purl.org/dc/elements/1.1/"',
))  # fmt: skip
_APPLICATION: Final = "application/vnd.openxmlformats-officedocument."
_CONTENT_TYPES: Final = {
    "word/document.xml": "wordprocessingml.document.main+xml",
    "word/styles.xml": "wordprocessingml.styles+xml",
    "word/header1.xml": "wordprocessingml.header+xml",
    "word/footnotes.xml": "wordprocessingml.footnotes+xml",
    "ppt/presentation.xml": "presentationml.presentation.main+xml",
    "ppt/slides/slide1.xml": "presentationml.slide+xml",
    "ppt/slides/slide2.xml": "presentationml.slide+xml",
    "ppt/slides/slide\u00b2.xml": "presentationml.slide+xml",
    "ppt/notesSlides/notesSlide1.xml": "presentationml.notesSlide+xml",
    "ppt/charts/chart1.xml": "drawingml.chart+xml",
    "ppt/charts/chartEx1.xml": "ms-office.chartex+xml",
    "ppt/diagrams/data1.xml": "drawingml.diagramData+xml",
    "xl/workbook.xml": "spreadsheetml.sheet.main+xml",
    "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet+xml",
    "xl/sharedStrings.xml": "spreadsheetml.sharedStrings+xml",
    "xl/tables/table1.xml": "spreadsheetml.table+xml",
    "xl/pivotCache/pivotCacheDefinition1.xml": "spreadsheetml.pivotCacheDefinition+xml",
    "xl/comments1.xml": "spreadsheetml.comments+xml",
    "xl/charts/chart1.xml": "drawingml.chart+xml",
    "xl/charts/chartEx1.xml": "ms-office.chartex+xml",
    "xl/drawings/drawing1.xml": "drawing+xml",
    "xl/drawings/vmlDrawing1.vml": "vmlDrawing",
    "xl/drawings/drawing2.xml": "drawingml.chartshapes+xml",
}


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of the files."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as writing:
        for name, content in files.items():
            writing.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def package(parts: Mapping[str, str]) -> bytes:
    """Return an Office Open XML package of parts, whose roots lack namespaces."""
    overrides = "".join(
        f'<Override PartName="/{name}" ContentType="{_APPLICATION}{_CONTENT_TYPES[name]}"/>'
        for name in parts
        if name in _CONTENT_TYPES
    )
    types = f'<Types xmlns="{_TYPES}">{overrides}</Types>'
    return zipped({"[Content_Types].xml": types, **{n: _rooted(n, x) for n, x in parts.items()}})


def _rooted(name: str, xml: str) -> str:
    """Return a part with the namespaces in its root element."""
    main = f' xmlns="{_OFFICE}/spreadsheetml/2006/main"' if name.startswith("xl/") else ""
    if name.endswith(".rels"):
        main = f' xmlns="{_RELATIONS}"'
    end = min(index for index in (xml.find(">"), xml.find(" "), xml.find("/")) if index > 0)
    return f"{xml[:end]} {_NAMESPACES}{main}{xml[end:]}"


def docx(body: str, **parts: str) -> bytes:
    """Return a DOCX of a body's XML; other parts by names such as `header1`."""
    others = {f"word/{name}.xml": xml for name, xml in parts.items()}
    document = f"<w:document><w:body>{body}<w:sectPr/></w:body></w:document>"
    return package({"word/document.xml": document, **others})


def paragraph(*runs: str, properties: str = "") -> str:
    """Return a paragraph of runs; text becomes a run."""
    return f"<w:p>{properties}{''.join(each if '<' in each else run(each) for each in runs)}</w:p>"


def run(text: str, properties: str = "") -> str:
    """Return a run with some properties."""
    formatting = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{formatting}<w:t xml:space="preserve">{text}</w:t></w:r>'
