"""The package document of an EPUB: its files in reading order, its title and its language."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import unquote

from dragoman_documents.codec import Kind, Segment
from dragoman_documents.inline_codes import LOOKALIKE, composed
from dragoman_documents.markup.html.blocks import HtmlPlace
from dragoman_documents.markup.html.reader import Page
from dragoman_documents.markup.html.text import (
    decoded_attribute,
    decoded_text,
    escaped,
    is_text,
    trimmed,
    unknown_references,
)
from dragoman_documents.markup.html.tokens import Token, attributes, tokens

_PAGES: Final = "application/xhtml+xml"
_CONTENTS: Final = "application/x-dtbncx+xml"
_TEXTS: Final[dict[str, Kind]] = {"title": "title", "description": "metadata"}


@dataclass(slots=True)
class Package:
    """What a package document says."""

    page: Page
    """Its title and description as segments."""
    language: tuple[int, int] | None = None
    """Range of the first `dc:language`."""
    files: list[str] = field(default_factory=list)
    """Names of the members with text: pages in reading order, other pages, tables of contents."""


def read_package(text: str, name: str) -> Package:
    """Return what the package document of this name says."""
    package = Package(Page(text, xml=True))
    found = list(tokens(text, xml=True))
    for index, token in enumerate(found):
        if token[2].kind == "start" and not token[2].closed and index + 2 < len(found):
            _note(package, token[2].name, found[index + 1], found[index + 2])
    package.files = list(dict.fromkeys(_files(text, found, posixpath.dirname(name))))
    return package


def _note(package: Package, name: str, content: Token, end: Token) -> None:
    """Note the text of an element that holds nothing else."""
    if content[2].kind != "text" or end[2][:2] != ("end", name):
        return
    text = package.page.text
    start, stop = trimmed(text, *content[:2])
    if name == "language" and package.language is None and start < stop:
        package.language = (start, stop)
    elif name in _TEXTS and not any(unknown_references(text, start, stop)):
        value = decoded_text(text[start:stop], xml=True)
        if is_text(value) and "</" not in value:  # some descriptions are HTML within XML
            composite, codes = composed([value], partial(escaped, xml=True))
            line = text.count("\n", 0, start) + 1
            segment = Segment(composite, f"line {line}", _TEXTS[name], codes, doubled=False)
            package.page.segments.append(segment)
            ranges = tuple(None for _ in LOOKALIKE.finditer(value))
            package.page.places.append(HtmlPlace(start, stop, ranges, "text"))


def values(text: str, start: int, end: int) -> dict[str, str]:
    """Return the attributes of a start tag."""
    return {
        each.name: decoded_attribute(text[each.value_start : each.end].strip("\"'"))
        for each in attributes(text, start, end)
        if each.value_start >= 0
    }


def _files(text: str, found: list[Token], folder: str) -> Iterator[str]:
    """Yield the names of the members with text."""
    starts = [token for token in found if token[2].kind == "start"]
    items = [values(text, *at) for *at, tag in starts if tag.name == "item"]
    by_id = {each.get("id", ""): each for each in items}
    order = [
        by_id.get(values(text, *at).get("idref", ""), {})
        for *at, tag in starts
        if tag.name == "itemref"
    ]
    for kind in (_PAGES, _CONTENTS):
        for each in (*order, *items):
            href = each.get("href", "").partition("#")[0]
            if each.get("media-type", "").lower() == kind and href and "://" not in href:
                yield posixpath.normpath(posixpath.join(folder, unquote(href)))
