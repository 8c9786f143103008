"""HTML and XHTML."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import (
    Codec,
    Extraction,
    InlineCode,
    Options,
    Remark,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.markup.html.bilingual import doubled
from dragoman_documents.markup.html.blocks import HtmlPlace
from dragoman_documents.markup.html.language import (
    direction,
    having,
    replaced_within,
    tag_in,
    without_language,
)
from dragoman_documents.markup.html.reader import Page, read_page
from dragoman_documents.markup.html.spelling import block_spelled, value_spelled
from dragoman_documents.markup.html.text import holdable
from dragoman_documents.references import reference
from dragoman_documents.splicing import Replacement, replaced, skeleton

_DECLARATION: Final = re.compile(rb"\s*<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)")
_PICTURE: Final = re.compile(r"<svg\b(?:[^<]|<(?!/svg\b))*+")
_DRAWN: Final = re.compile(r"<(?:text|tspan)\b[^<>]*+>[^<>]*?[^\W\d_]")
_META: Final = re.compile(rb"<meta[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_MOST_BEFORE_CHARSET: Final = 4096
"""Bytes in which a charset is looked for; the standard demands the first 1,024."""
_WHOLE: Final = re.compile(r"<(?:!doctype|html|head)\b", re.IGNORECASE)
_ENCODINGS: Final = {
    "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252",
    "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "tis-620": "cp874", "windows-874": "cp874",
    "shift_jis": "cp932", "shift-jis": "cp932", "x-sjis": "cp932", "windows-31j": "cp932",
    "gb2312": "gbk", "x-gbk": "gbk", "euc-kr": "cp949", "ks_c_5601-1987": "cp949",
    "big5": "big5hkscs", "macintosh": "mac-roman", "x-mac-cyrillic": "mac-cyrillic",
    "utf-16": "utf-8", "utf-16le": "utf-8", "utf-16be": "utf-8",
}  # fmt: skip
"""Labels that browsers read as another encoding (WHATWG Encoding)."""
_SAFE: Final = re.compile(
    r"utf-?8|iso-8859-\d+|windows-125\d|cp\d+|koi8-[ru]|euc-jp|iso-2022-jp|gbk|gb18030|big5hkscs"
    r"|mac-(?:roman|cyrillic)|ibm866"
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a document was read."""

    decoded: Decoded
    page: Page


@dataclass(frozen=True, slots=True)
class HtmlCodec:
    """Codec of HTML, and of XHTML where a document begins with an XML declaration."""

    name: str = "html"
    suffixes: frozenset[str] = frozenset({".html", ".htm"})
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = True
    xml: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return blocks and attributes as segments. Raises DocumentError (`encoding`)."""
        return self._extracted(data, options, options.source_lang)

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the segments of an output: its root names another language than its source's."""
        return self._extracted(data, options, layout_of(before, _Layout).page.language)

    def _extracted(self, data: bytes, options: Options, language: str | None) -> Extraction:
        found = decoded_page(data, xml=self.xml)
        xml = self.xml or found.text[:100].lstrip("\ufeff \t\r\n").startswith("<?xml")
        own = None if options.bilingual else language or ""
        page = read_page(found.text, xml=xml, headings=options.headings, language=own)
        encoding = found.encoding + ("-sig" if found.mark and found.encoding == "utf-8" else "")
        return Extraction(
            tuple(page.segments),
            skeleton_of(page),
            encoding,
            tuple(_remarks(page)),
            _Layout(found, page),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the document with translations, and its language where one was put in."""
        content = changed_page(extraction, texts, options)
        return data if content is None else content


def _remarks(page: Page) -> Iterator[Remark]:
    """Yield what a person should know of a page."""
    if page.others:
        line = 1 + page.text.count("\n", 0, page.others[0])
        detail = "a passage that is marked as of another language is left as it is"
        yield Remark(f"line {line}", detail, "html", len(page.others))
    if drawn := list(_drawn(page.text)):
        line = 1 + page.text.count("\n", 0, drawn[0])
        yield Remark(f"line {line}", "text in a picture (SVG) is left as it is", "html", len(drawn))


def _drawn(text: str) -> Iterator[int]:
    """Yield where text is drawn in pictures within a page."""
    for picture in _PICTURE.finditer(text) if "<svg" in text else ():
        yield from (each.start() for each in _DRAWN.finditer(text, *picture.span()))


def changed_page(
    extraction: Extraction, texts: Sequence[str | None], options: Options
) -> bytes | None:
    """Return a document with translations; None if it can show none of them and stays as it is."""
    layout = layout_of(extraction, _Layout)
    page = layout.page
    replacements = replacements_of(page, texts, options)
    if not replacements:
        return None
    if page.html is not None and not options.bilingual:
        content = tag_in(page.text, page.html, options.target_lang, xml=page.xml)
        replacements.append(Replacement(*page.html[:2], content))
        if page.direction is not None:
            before = page.text[slice(*page.direction)]
            content = having(before, direction(options.target_lang))
            replacements.append(Replacement(*page.direction, content))
    return layout.decoded.encoded(replaced(page.text, replacements), reference)


def decoded_page(data: bytes, *, xml: bool) -> Decoded:
    """Return the text of a document by its byte order mark or as it declares.

    A whole page of ASCII that declares nothing stays ASCII, because browsers would not read UTF-8
    in it: other characters become references.
    """
    head = data[:_MOST_BEFORE_CHARSET]
    match = _DECLARATION.match(head) or (None if xml else _META.search(head))
    label = match[1].decode("ascii").lower() if match else ""
    label = _ENCODINGS.get(label, label)
    found = decoded(data, label if _SAFE.fullmatch(label) else None, recognise=not xml)
    undeclared = match is None and not xml and not found.mark
    is_plain = found.encoding == "utf-8" and data.isascii()
    if undeclared and is_plain and _WHOLE.search(found.text):
        return Decoded(found.text, "ascii")
    return found


def skeleton_of(page: Page, *others: tuple[int, int]) -> str:
    """Return the digest of what stays: all but texts, the language, and other ranges."""
    ranges: list[tuple[int, int]] = []
    more: list[str] = []
    for place in page.places:
        inner = _popped(ranges, place.start)
        codes = [_without(page.text, at, inner) for at in place.codes if at is not None]
        more += sorted(codes) if len(codes) > 1 else codes
        ranges.append((place.start, place.end))
    if page.html is not None:
        more.append(without_language(page.text, page.html))
        ranges.append(page.html[:2])
    if page.direction is not None:
        ranges.append(page.direction)
    return skeleton(page.text, sorted((*ranges, *others)), *more)


def _popped(ranges: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    """Remove and return the ranges from a position on, which are those within a segment."""
    count = len(ranges)
    while count and ranges[count - 1][0] >= start:
        count -= 1
    inner = sorted(ranges[count:])
    del ranges[count:]
    return inner


def _without(text: str, at: tuple[int, int], inner: Sequence[tuple[int, int]]) -> str:
    """Return a range of a text without the ranges in it."""
    if not inner:
        return text[slice(*at)]
    within = inner[bisect_left(inner, at) : bisect_left(inner, (at[1], 0))]
    return replaced_within(text, at, [Replacement(*each, "\0") for each in within])


def replacements_of(
    page: Page, texts: Sequence[str | None], options: Options
) -> list[Replacement[str]]:
    """Return what translations put into a document: one within a code is a part of that one.

    Texts that the document could not show as the same segments are left out.
    """
    found: list[Replacement[str]] = []
    for place, segment, text in zip(page.places, page.segments, texts, strict=True):
        is_attribute = place.doubling is None
        if text is None or not holdable(text, segment.codes, attribute=is_attribute):
            continue
        if options.bilingual:
            found.append(doubled(page, place, segment, text, options.target_lang))
        elif is_attribute:
            raw = page.text[place.start : place.end]
            value = value_spelled(raw, text, segment.codes, xml=page.xml)
            found.append(Replacement(place.start, place.end, value))
        else:
            codes = _codes(page.text, place, segment, found)
            spelling = block_spelled(page.text, place, text, codes, xml=page.xml)
            found.append(Replacement(place.start, place.end, spelling))
    return found


def _codes(
    text: str, place: HtmlPlace, segment: Segment, found: list[Replacement[str]]
) -> Sequence[InlineCode]:
    """Return the codes of a segment with the translations within them, which leave `found`."""
    count = len(found)
    while count and found[count - 1].start >= place.start:
        count -= 1
    if count == len(found):
        return segment.codes
    inner = sorted(found[count:], key=lambda each: each.start)
    del found[count:]
    starts = [each.start for each in inner]
    codes: list[InlineCode] = []
    for code, at in zip(segment.codes, place.codes, strict=True):
        if at is None:
            codes.append(code)
            continue
        within = inner[bisect_left(starts, at[0]) : bisect_left(starts, at[1])]
        codes.append(InlineCode(replaced_within(text, at, within), code.closing))
    return codes


XHTML: Final = HtmlCodec("xhtml", frozenset({".xhtml", ".xht"}), xml=True)
CODECS: Final[Mapping[str, Codec]] = {"html": HtmlCodec(), "xhtml": XHTML}
