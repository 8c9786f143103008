"""Text of HTML and XHTML: decoded, blanks collapsed, and written again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html.entities import html5
from itertools import pairwise
from typing import Final

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import (
    LOOKALIKE,
    ClosingCode,
    OpeningCode,
    Piece,
    SingleCode,
    pieces,
    plain,
    rendered,
)
from dragoman_documents.markup.html.elements import VOID
from dragoman_documents.markup.html.tokens import first_tag
from dragoman_documents.markup.templates import is_control, ranges
from dragoman_documents.references import reference, unescaped
from dragoman_text.spans import has_letters

_BLANKS: Final = (
    "\t\n\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_RAW_BLANKS: Final = f"\f{_BLANKS}"
_TO_BLANK: Final = str.maketrans("\t\f\r", "   ")
_BLANK_RUN: Final = re.compile("  ++")
_LINE_BREAK: Final = re.compile(r"\r\n?")
_LEADING: Final = re.compile(rf"(?:[{_RAW_BLANKS}]|&nbsp;)*+")
_TRAILING: Final = re.compile(rf"(?:[{_RAW_BLANKS}]|;psbn&)*+")  # of the reversed text
_INNER: Final = re.compile(r"[\t\n\r]|(?<= ) ")
_NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE: Final = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*+(;?)(=?))")
_ENTITY: Final = re.compile(r"&[A-Za-z_:][\w:.-]*+;")
_ADDRESS: Final = re.compile(r"(?:[a-z]+://|www\.|mailto:)\S+", re.IGNORECASE)
_INVISIBLE: Final = frozenset({"br", "link", "meta", "script", "style", "template"})


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without the blanks at its ends; `&#32;` is none of them."""
    raw = text[start:end]
    inner = raw.strip(_RAW_BLANKS)
    if len(inner) == len(raw) and "&" not in inner:
        return start, end
    if inner and not inner.startswith("&nbsp;") and not inner.endswith("&nbsp;"):
        start += raw.index(inner[0])
        return start, start + len(inner)
    first, last = _LEADING.match(text, start, end), _TRAILING.match(raw[::-1])
    if first is None or last is None or first.end() == end:
        return end, end
    return first.end(), end - last.end()


def decoded_text(raw: str, *, xml: bool, preserved: bool = False) -> str:
    """Return the text that a document shows for this spelling."""
    text = _LINE_BREAK.sub("\n", raw) if preserved else _collapsed(raw)
    if "&" not in text:
        return text
    return _REFERENCE.sub(_value, text) if xml else unescaped(text)


def _collapsed(raw: str) -> str:
    """Return a text with each run of blanks and line breaks as one blank.

    One pattern for all of them takes six times as long, because it stops at each blank.
    """
    text = raw.replace("\n", " ")
    if "\t" in text or "\r" in text or "\f" in text:
        text = text.translate(_TO_BLANK)
    return _BLANK_RUN.sub(" ", text) if "  " in text else text


def decoded_attribute(raw: str) -> str:
    """Return the value of an attribute without the blanks at its ends, or quotation marks."""
    return decoded_value(raw[slice(*trimmed(raw, 0, len(raw)))])


def decoded_value(raw: str) -> str:
    """Return what is meant by a part of the value of an attribute."""
    text = _collapsed(raw)
    return _REFERENCE.sub(_value, text) if "&" in text else text


def unknown_references(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the references of a range that are not among HTML's."""
    if text.find("&", start, end) < 0:
        return iter(())
    return (match for match in _ENTITY.finditer(text, start, end) if match[0][1:] not in html5)


def _value(match: re.Match[str]) -> str:
    """Return what a reference stands for; a name without `;` counts if nothing follows it."""
    raw = match[0]
    if raw[1] == "#":
        return unescaped(raw)
    if match[2] and not match[1]:
        return raw
    name = raw[1 : len(raw) - len(match[2])]
    return html5[name] + match[2] if name in html5 else raw


def escaped(text: str, *, xml: bool, quote: str = "", preserved: bool = False) -> str:
    """Return the spelling of a text whose blanks are kept: those HTML collapses as references."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = text.replace("\u00a0", "&#160;" if xml else "&nbsp;")
    if quote:
        text = text.replace(quote, "&quot;" if quote == '"' else "&#39;")
    if preserved:
        return text.replace("\r", "&#13;")
    if "  " in text or "\n" in text or "\t" in text or "\r" in text:
        return _INNER.sub(lambda match: reference(match[0]), text)
    return text


def spelled(
    text: str,
    codes: Sequence[InlineCode],
    escape: Callable[[str], str],
    keep: Callable[[str], str] | None = None,
) -> str:
    """Return the spelling of a translation, with blanks at its ends as references.

    `escape` spells a text by itself; `keep` is called with the texts between the tags in order.
    """
    inner = text.strip(_BLANKS)
    start = text.find(inner)
    end = start + len(inner)
    spell = keep or escape
    lead = _edge(text[:start], spell)
    return lead + rendered(inner, codes, spell) + _edge(text[end:], spell)


def _edge(text: str, spell: Callable[[str], str]) -> str:
    """Return blanks at an end of a text, spelled so that they belong to it."""
    if not text:
        return ""
    spelling = spell(text)
    is_kept = trimmed(spelling, 0, len(spelling)) == (0, len(spelling))
    return spelling if is_kept else reference(text)


def is_text(text: str) -> bool:
    """Return whether a text is worth a translation: it has letters, and is no address alone."""
    shown = plain(text)
    return has_letters(shown) and not _ADDRESS.fullmatch(shown)


def holdable(text: str, codes: Sequence[InlineCode], *, attribute: bool = False) -> bool:
    """Return whether a block with this translation would be read as the same segment again.

    It would not be one without letters, with text that looks like a tag of ours or a template, with
    a pair emptied or around all of the text, with markup at its ends that shows nothing, or with
    characters that no XML document may hold. Such a segment keeps its source, which the read-back
    reports.
    """
    found = list(pieces(text, codes))
    return (
        is_text(text)
        and not _NOT_IN_XML.search(text)
        and not any(isinstance(each, str) and _is_markup(each) for each in found)
        and not _wraps(found)
        and (attribute or not any(map(_is_invisible, _ends(found))))
        and not any(
            isinstance(one, OpeningCode) and isinstance(other, ClosingCode)
            for one, other in pairwise(found)
        )
    )


def _is_markup(text: str) -> bool:
    return LOOKALIKE.search(text) is not None or bool(ranges(text))


def _is_invisible(piece: Piece) -> bool:
    return isinstance(piece, SingleCode) and invisible(piece.code)


def _ends(found: list[Piece]) -> tuple[Piece, Piece]:
    return found[0], found[-1]


def _wraps(found: list[Piece]) -> bool:
    """Return whether one pair holds all of the pieces."""
    if not isinstance(found[0], OpeningCode):
        return False
    depth = 0
    for index, piece in enumerate(found):
        depth += isinstance(piece, OpeningCode) - isinstance(piece, ClosingCode)
        if depth == 0:
            return index == len(found) - 1
    return False


def invisible(code: str) -> bool:
    """Return whether a single code shows nothing, so that it need not be in a segment.

    Comments, scripts, line breaks, empty anchors, tags whose other half is elsewhere, and templates
    such as `{% if x %}`.
    """
    if code.startswith(("<!--", "<?", "</")) or (code[:2] == "<!" and code[2:3] != "["):
        return True
    if is_control(code):
        return True
    end, tag = first_tag(code) or (0, None)
    if tag is None or tag.kind != "start":
        return False
    if tag.name in _INVISIBLE:
        return True
    alone = end == len(code) and tag.name not in VOID and not code.endswith("/>")
    return alone or tag.name == "a"
