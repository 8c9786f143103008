"""EPUB: which members are translated, what stays, and which books are refused."""

from __future__ import annotations

import zipfile
from collections import Counter
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest

from dragoman_documents.archive.reading import Archive
from dragoman_documents.books.epub import EpubCodec
from dragoman_documents.codec import DocumentError, Options
from support.documents.laws import GERMAN, HOSTILE, assert_identity, assert_read_back, tagged

EPUB = EpubCodec()
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A &amp; B</dc:title>
<dc:language> en </dc:language><dc:description>A book</dc:description></metadata>
<manifest><item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="two" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="gone" href="gone.xhtml" media-type="application/xhtml+xml"/>
<item id="p" href="picture.png" media-type="image/png"/></manifest>
<spine toc="n"><itemref idref="one"/><itemref idref="two"/></spine></package>
"""
PAGE = (
    '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><head><title>T</title></head>'
    '<body><p id="a">{} <b>word</b>&#160;x<br/>end</p></body></html>'
)
NAV = (
    '<html xmlns="http://www.w3.org/1999/xhtml"><body><nav><ol><li><a href="text/one.xhtml">First'
    "</a></li></ol></nav></body></html>"
)
NCX = (
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" xml:lang="en"><docTitle><text>Book</text>'
    "</docTitle><docAuthor><text>Ann</text></docAuthor><navMap><navPoint id='x'><navLabel><text>"
    "Chapter</text></navLabel><content src='text/one.xhtml'/></navPoint></navMap></ncx>"
)
MEMBERS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OEBPS/content.opf": PACKAGE,
    "OEBPS/toc.ncx": NCX,
    "OEBPS/text/two b.xhtml": PAGE.format("Two"),
    "OEBPS/text/one.xhtml": PAGE.format("One"),
    "OEBPS/nav.xhtml": NAV,
    "OEBPS/picture.png": "png",
}


def book(**members: str | bytes) -> bytes:
    """Return a book with other contents for some members; `container` is that of META-INF."""
    contents = MEMBERS | {
        name.replace("__", "/").replace("_", "."): m for name, m in members.items()
    }
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            method = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return written.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    """Return the contents of an archive."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_title_pages_in_reading_order_and_tables_of_contents_are_segments() -> None:
    found = EPUB.extract(book(), GERMAN)
    page = ["T", " <g1>word</g1>\u00a0x<x2/>end"]
    assert [each.text for each in found.segments] == [
        "A & B", "A book", page[0], "One" + page[1], page[0], "Two" + page[1], "First", "Book",
        "Chapter",
    ]  # fmt: skip
    assert found.segments[3].place == "OEBPS/text/one.xhtml, line 1"
    assert [each.detail for each in found.remarks] == ["the book lacks its file 'OEBPS/gone.xhtml'"]


def test_a_book_without_translations_stays_as_it_is() -> None:
    assert_identity(EPUB, book())


@pytest.mark.parametrize("language", ["de", "ar"])
@pytest.mark.parametrize("bilingual", [False, True])
def test_marked_texts_read_back_and_the_pages_are_well_formed(
    language: str, bilingual: bool
) -> None:
    options = Options(language, "en", bilingual=bilingual)
    output = assert_read_back(
        EPUB, book(), tagged(EPUB.extract(book(), options), language), options
    )
    for name, content in members(output).items():
        if name.endswith(("xhtml", "ncx", "opf")):
            root = ET.fromstring(content)  # noqa: S314  our own
            ids = [each.get("id") for each in root.iter() if each.get("id")]
            assert len(ids) == len(set(ids))


def test_pages_are_read_once_when_a_book_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    data, reads, read = book(), Counter[str](), Archive.read
    extraction = EPUB.extract(data, GERMAN)

    def counting(archive: Archive, name: str) -> bytes:
        reads[name] += 1
        return read(archive, name)

    monkeypatch.setattr(Archive, "read", counting)
    assert EPUB.splice(data, extraction, tagged(extraction), GERMAN) != data
    assert reads["OEBPS/text/one.xhtml"] == 1  # compared with what is written


def test_language_is_set_and_other_members_and_the_mimetype_stay() -> None:
    output = assert_read_back(EPUB, book(), tagged(EPUB.extract(book(), GERMAN)))
    found = members(output)
    assert b"<dc:language> de </dc:language>" in found["OEBPS/content.opf"]
    assert b'xml:lang="de"' in found["OEBPS/text/one.xhtml"]
    assert found["OEBPS/picture.png"] == b"png"
    assert list(found) == list(MEMBERS)
    assert output[30:58] == b"mimetypeapplication/epub+zip"


def test_a_bilingual_table_of_contents_has_both_in_one_link() -> None:
    options = replace(GERMAN, bilingual=True)
    output = assert_read_back(EPUB, book(), tagged(EPUB.extract(book(), options)), options)
    found = members(output)
    assert b'First <span xml:lang="de">[de] First</span></a></li>' in found["OEBPS/nav.xhtml"]
    assert b"<text>Chapter / [de] Chapter</text>" in found["OEBPS/toc.ncx"]
    assert b"<dc:language> en </dc:language>" in found["OEBPS/content.opf"]


@pytest.mark.parametrize("text", [text for text in HOSTILE if any(map(str.isalpha, text))])
def test_hostile_texts_read_back(text: str) -> None:
    assert_read_back(EPUB, book(), [text] * 9)


def test_a_protected_book_is_refused_and_obfuscated_fonts_are_not() -> None:
    method = (
        '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
        '<e:EncryptionMethod Algorithm="{}"/></e:EncryptedData></encryption>'
    )
    fonts = method.format("http://www.idpf.org/2008/embedding")
    assert_identity(EPUB, book(**{"META-INF__encryption_xml": fonts}))
    drm = method.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc")
    with pytest.raises(DocumentError) as error:
        EPUB.extract(book(**{"META-INF__encryption_xml": drm}), GERMAN)
    assert error.value.reason == "encrypted"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"mimetype": "application/zip"}, "wrong_type"),
        ({"META-INF__container_xml": "<container/>"}, "corrupt"),
        ({"META-INF__container_xml": CONTAINER.replace("content", "other")}, "corrupt"),
    ],
)
def test_what_is_no_book_is_refused(members: dict[str, str], reason: str) -> None:
    with pytest.raises(DocumentError) as error:
        EPUB.extract(book(**members), GERMAN)
    assert error.value.reason == reason


def test_a_page_with_bytes_that_are_not_utf_8_is_named() -> None:
    damaged = PAGE.format("Zwölf Bücher für Größen").encode().replace("ü".encode(), b"\xfc", 1)
    with pytest.raises(DocumentError, match=r"one\.xhtml': the bytes are neither UTF-8") as error:
        EPUB.extract(book(OEBPS__text__one_xhtml=damaged), GERMAN)
    assert error.value.reason == "encoding"


def test_files_outside_of_the_book_are_not_read() -> None:
    package = PACKAGE.replace("text/one.xhtml", "../../../one.xhtml").replace("gone", "http://x")
    found = EPUB.extract(book(OEBPS__content_opf=package), GERMAN)
    assert "One" not in " ".join(each.text for each in found.segments)
