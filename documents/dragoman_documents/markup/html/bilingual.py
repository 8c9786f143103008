"""Bilingual HTML: the translation after each block, without a second element of the same id."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from dragoman_documents.codec import InlineCode, Segment
from dragoman_documents.markup.html.blocks import HtmlPlace
from dragoman_documents.markup.html.language import language_attributes, with_changes
from dragoman_documents.markup.html.reader import TRANSLATED, Page
from dragoman_documents.markup.html.text import escaped, spelled
from dragoman_documents.markup.html.tokens import (
    Attribute,
    Token,
    attributes,
    name_end,
    tokens,
)
from dragoman_documents.splicing import Replacement

_NOT_TWICE: Final = frozenset({"id", "xml:id", "label", *TRANSLATED} - {"alt"})
_BETWEEN: Final = " / "


def doubled(
    page: Page, place: HtmlPlace, segment: Segment, text: str, language: str
) -> Replacement[str]:
    """Return what a bilingual document has at the place of a segment, or after it."""
    if place.doubling is None:
        return _attribute(page, place, segment, text)
    codes = [_copied(code) for code in segment.codes]
    spelling = spelled(text, codes, partial(escaped, xml=page.xml))
    marked = language_attributes(language, xml=page.xml)
    match place.doubling:
        case "text":
            return Replacement(place.end, place.end, _BETWEEN + spelling)
        case "span":
            return Replacement(place.end, place.end, f" <span{marked}>{spelling}</span>")
        case "div":
            return Replacement(place.after, place.after, f"<div{marked}>{spelling}</div>")
        case "copy":
            content = _copy(page.text, place, spelling, marked)
            return Replacement(place.after, place.after, content)


def _attribute(page: Page, place: HtmlPlace, segment: Segment, text: str) -> Replacement[str]:
    """Return an attribute with source and translation, in its quotation marks or in `"`."""
    raw = page.text[place.start : place.end]
    quote = raw[0] if raw[0] in "\"'" else '"'
    translation = spelled(text, segment.codes, partial(escaped, xml=page.xml, quote=quote))
    both = raw.strip("\"'") + _BETWEEN + translation
    return Replacement(place.start, place.end, f"{quote}{both}{quote}")


def _copy(text: str, place: HtmlPlace, spelling: str, marked: str) -> str:
    """Return a paragraph or heading again, with the tags around all of its text."""
    raw = text[slice(*place.block)]
    block = next(tokens(raw))
    name = raw[1 : name_end(raw, 0)]
    tag = _tag(raw, block, marked)
    tags = [_sanitised(text[slice(*at)]) for at in place.wrapping]
    return "".join([tag, *tags[::2], spelling, *reversed(tags[1::2]), f"</{name}>"])


def _tag(text: str, token: Token, marked: str) -> str:
    """Return the start tag of a copied block, in another language."""
    unwanted = {*_NOT_TWICE, "lang", "xml:lang", "dir"}
    found = (each for each in attributes(text, *token[:2]) if each.name in unwanted)
    return with_changes(text, token, (Replacement(a.start, a.end, "") for a in found), marked)


def _copied(code: InlineCode) -> InlineCode:
    return InlineCode(_sanitised(code.opening), code.closing)


def _sanitised(markup: str) -> str:
    """Return markup that may stand in a document twice, and has no text of its own.

    Without identifiers and translated attributes; `alt` is empty, as of an image that is only
    decoration.
    """
    return "".join(_sanitised_parts(markup))


def _sanitised_parts(markup: str) -> Iterator[str]:
    for token in tokens(markup):
        if token[2].kind == "start":
            changes = [
                Replacement(each.start, each.end, 'alt=""' if each.name == "alt" else "")
                for each in attributes(markup, *token[:2])
                if _is_unwanted(markup, token, each)
            ]
            yield with_changes(markup, token, changes)
        else:
            yield markup[slice(*token[:2])]


def _is_unwanted(markup: str, token: Token, each: Attribute) -> bool:
    if each.name == "translate":
        return "no" not in markup[each.start : each.end]
    unwanted = each.name in _NOT_TWICE or each.name == "alt"
    return unwanted or (each.name, token[2].name) == ("name", "a")
