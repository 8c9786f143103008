"""An ordinary document of each format, in any size: what stands around a unit that repeats."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.documents.office import package, zipped

_ODF: Final = "urn:oasis:names:tc:opendocument:xmlns"
_ODF_NAMES: Final = " ".join(
    f'xmlns:{name}="{_ODF}:{space}:1.0"'
    for name, space in (
        *((each, each) for each in ("office", "text", "table", "style", "presentation")),
        ("draw", "drawing"),
    )
)
_XHTML: Final = (
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>A page</title></head><body>'
)
_XLIFF: Final = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" '
    'source-language="en" target-language="de" datatype="plaintext"><body>'
)


class Ordinary(NamedTuple):
    """A document: `{n}` in the unit is its number."""

    head: str
    unit: str
    tail: str = ""
    pack: Callable[[str], bytes] = str.encode

    def units(self, size: int) -> str:
        """Return units of about a size in bytes."""
        count = max(1, size // len(self.unit.encode()))
        return "".join(self.unit.replace("{n}", str(number)) for number in range(count))

    def document(self, body: str) -> bytes:
        return self.pack(self.head + body + self.tail)


def _docx(xml: str) -> bytes:
    return package({"word/document.xml": xml})


def _pptx(xml: str) -> bytes:
    return package({"ppt/presentation.xml": "<p:presentation/>", "ppt/slides/slide1.xml": xml})


def _xlsx(xml: str) -> bytes:
    relation = (
        '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>'
    )
    book = '<workbook><sheet name="Data" r:id="rId1"/></workbook>'
    return package(
        {
            "xl/workbook.xml": book,
            "xl/_rels/workbook.xml.rels": relation,
            "xl/worksheets/sheet1.xml": xml,
        }
    )


def _odf(kind: str) -> Callable[[str], bytes]:
    def pack(xml: str) -> bytes:
        return zipped(
            {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": xml}
        )

    return pack


def _epub(xhtml: str) -> bytes:
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
        'full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc='
        '"http://purl.org/dc/elements/1.1/"><dc:title>A</dc:title></metadata><manifest><item '
        'id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>'
    )
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "a.opf": book,
            "a.xhtml": xhtml,
        }
    )


def _odf_document(kind: str, unit: str, around: str) -> Ordinary:
    before, _, behind = around.partition("|")
    return Ordinary(
        f"<office:document-content {_ODF_NAMES}><office:body>{before}",
        unit,
        f"{behind}</office:body></office:document-content>",
        _odf(kind),
    )


_PAGE: Final = (
    "\n## Chapter {n}\n\nA *paragraph* with **bold** words, `code` and a [link](https://example.org/{n})"
    " that goes\non in a second line, and a third.\n\n- an item\n- another one\n\n> A quote.\n\n"
    "| a | b |\n|---|---|\n| one cell | two cells |\n\n```sh\nls\n```\n"
)
_HTML_UNIT: Final = (
    "<h2>Chapter {n}</h2>\n<p>A <em>paragraph</em> with <b>bold</b> words &amp; a "
    '<a href="/{n}" title="A title">link</a>.</p>\n<ul><li>One item</li><li>Two</li></ul>\n'
    "<table><tr><td>A cell</td><td><img src='a.png' alt='A picture'/></td></tr></table>\n"
)
_CUE: Final = (
    "\n{n}\n00:00:01,000 --> 00:00:02,000\n<i>It was a long day</i> and\nthe night came.\n"
)
ORDINARY: Final[Mapping[str, Ordinary]] = {
    "android": Ordinary(
        "<resources>\n",
        '    <string name="a{n}">A text with %1$s and <b>bold</b> words, number {n}</string>\n'
        '    <plurals name="p{n}"><item quantity="one">%d file</item>'
        '<item quantity="other">%d files</item></plurals>\n',
        "</resources>\n",
    ),
    "arb": Ordinary(
        '{"@@locale": "en"',
        ',\n"m{n}": "You have {count, plural, one{one letter} other{{count} letters}} today",\n'
        '"@m{n}": {"placeholders": {"count": {"type": "int"}}}',
        "}\n",
    ),
    "chrome": Ordinary(
        '{"name": {"message": "A name"}',
        ',\n"m{n}": {"message": "A message for $USER$", "description": "What it says"}',
        "}\n",
    ),
    "csv": Ordinary("id,text,note\n", '{n},"A text, with a comma",and a note of some words\n'),
    "docx": Ordinary(
        "<w:document><w:body>",
        "<w:p><w:r><w:t>A paragraph </w:t></w:r><w:r><w:rPr><w:b/></w:rPr>"
        "<w:t>with bold words, number {n}.</w:t></w:r></w:p>",
        "<w:sectPr/></w:body></w:document>",
        _docx,
    ),
    "epub": Ordinary(_XHTML, _HTML_UNIT, "</body></html>", _epub),
    "html": Ordinary("<!doctype html>" + _XHTML, _HTML_UNIT, "</body></html>\n"),
    "ipynb": Ordinary(
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "markdown",'
        ' "metadata": {}, "source": ["A start"]}',
        ',\n{"cell_type": "markdown", "metadata": {}, "source": ["# Chapter {n}\\n", "\\n", '
        '"A *text* of it"]},\n{"cell_type": "code", "metadata": {}, "outputs": [], '
        '"execution_count": 1, "source": ["print(1)"]}',
        "]}\n",
    ),
    "json": Ordinary('{"a": "A text"', ',\n"m{n}": {"title": "A text of words", "n": {n}}', "}\n"),
    "jsonl": Ordinary("", '{"id": {n}, "title": "A text of words", "body": "And a longer one"}\n'),
    "markdown": Ordinary("---\ntitle: A page\n---\n", _PAGE),
    "mdx": Ordinary(
        "---\ntitle: A page\n---\n\nimport A from 'a'\n",
        _PAGE + "\n<A title='x'>\n\nText\n\n</A>\n",
    ),
    "odp": _odf_document(
        "presentation",
        '<draw:page draw:name="p{n}"><draw:frame><draw:text-box><text:p>A slide <text:span>with'
        "</text:span> words</text:p></draw:text-box></draw:frame></draw:page>",
        "<office:presentation>|</office:presentation>",
    ),
    "ods": _odf_document(
        "spreadsheet",
        '<table:table-row><table:table-cell office:value-type="string"><text:p>A cell {n}</text:p>'
        "</table:table-cell></table:table-row>",
        '<office:spreadsheet><table:table table:name="A">|</table:table></office:spreadsheet>',
    ),
    "odt": _odf_document(
        "text",
        "<text:p>A paragraph <text:span>with</text:span> words<text:line-break/>and {n}</text:p>",
        "<office:text>|</office:text>",
    ),
    "po": Ordinary(
        'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n',
        '\n#: a.py:{n}\nmsgid "A text {n} "\n"of two lines"\nmsgstr ""\n\nmsgid "%d file {n}"\n'
        'msgid_plural "%d files {n}"\nmsgstr[0] ""\nmsgstr[1] ""\n',
    ),
    "pptx": Ordinary(
        "<p:sld>",
        '<p:sp><p:nvSpPr><p:cNvPr id="{n}" name="n"/><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:pPr/>'
        "<a:r><a:t>A text </a:t></a:r><a:r><a:rPr b='1'/><a:t>in bold {n}</a:t></a:r></a:p>"
        "</p:txBody></p:sp>",
        "</p:sld>",
        _pptx,
    ),
    "properties": Ordinary("# a file\n", "key.{n} = A text of words \\\n    in two lines {0}\n"),
    "qt": Ordinary(
        '<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS version="2.1" language="de"><context>'
        "<name>A</name>",
        '<message><source>A text &amp; %1, {n}</source><translation type="unfinished">'
        "</translation></message>\n",
        "</context></TS>\n",
    ),
    "resx": Ordinary(
        "<root>",
        '<data name="a{n}" xml:space="preserve"><value>A text of words {0}</value></data>\n',
        "</root>\n",
    ),
    "srt": Ordinary("", _CUE),
    "strings": Ordinary("/* a file */\n", '/* a comment */\n"key.{n}" = "A text of %@ words";\n'),
    "stringsdict": Ordinary(
        '<plist version="1.0"><dict>',
        "<key>k{n}</key><dict><key>NSStringLocalizedFormatKey</key><string>%#@a@</string><key>a</key>"
        "<dict><key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string><key>"
        "NSStringFormatValueTypeKey</key><string>d</string><key>one</key><string>%d file</string>"
        "<key>other</key><string>%d files</string></dict></dict>\n",
        "</dict></plist>\n",
    ),
    "tsv": Ordinary("id\ttext\tnote\n", "{n}\tA text, with a comma\tand a note of some words\n"),
    "ttml": Ordinary(
        '<tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en"><body><div>',
        '<p begin="00:00:01.000" end="00:00:02.000">A cue<br/><span>in two</span> lines {n}</p>\n',
        "</div></body></tt>\n",
    ),
    "txt": Ordinary(
        "",
        "A line of text that stands alone, number {n}.\n\nAnother paragraph that goes on and\n"
        "on over two lines or even more of them.\n\n",
    ),
    "vtt": Ordinary("WEBVTT\n", _CUE.replace(",000", ".000")),
    "xcstrings": Ordinary(
        '{"sourceLanguage": "en", "version": "1.0", "strings": {"A": {}',
        ',\n"A text %@ {n}": {"comment": "What it is", "localizations": {"en": {"stringUnit": '
        '{"state": "translated", "value": "A text of %@"}}}}',
        "}}\n",
    ),
    "xhtml": Ordinary('<?xml version="1.0"?>\n' + _XHTML, _HTML_UNIT, "</body></html>\n"),
    "xliff": Ordinary(
        _XLIFF,
        '<trans-unit id="{n}"><source>A text <g id="1">of</g> words<x id="2"/></source>'
        "</trans-unit>\n",
        "</body></file></xliff>\n",
    ),
    "xlsx": Ordinary(
        "<worksheet><sheetData>",
        '<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>A cell of words {n}</t></is></c></row>',
        "</sheetData></worksheet>",
        _xlsx,
    ),
    "yaml": Ordinary(
        "a: A text\n", "m{n}:\n  title: A text of words\n  list:\n    - One item\n    - 'two'\n"
    ),
}
