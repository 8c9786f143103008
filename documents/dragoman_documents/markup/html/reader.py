"""Documents of HTML read once: segments, places, and what the start tag of `html` says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from dragoman_documents.codec import InlineCode, Kind, Segment
from dragoman_documents.inline_codes import SingleCode, composed, of_text, plain
from dragoman_documents.markup.html.blocks import (
    Around,
    HtmlBlock,
    HtmlItem,
    HtmlPlace,
    Run,
    block_segment,
)
from dragoman_documents.markup.html.elements import (
    HTML_RULES,
    VOID,
    HtmlElement,
    OpenElements,
    Rules,
    names,
)
from dragoman_documents.markup.html.language import has_template
from dragoman_documents.markup.html.text import (
    decoded_attribute,
    decoded_value,
    escaped,
    is_text,
    trimmed,
    unknown_references,
)
from dragoman_documents.markup.html.tokens import (
    Attribute,
    HtmlTag,
    Token,
    TokenKind,
    attributes,
    tags_whole,
    tokens,
)
from dragoman_documents.markup.templates import parted, ranges

TRANSLATED: Final = frozenset({"alt", "title", "placeholder", "aria-label"})
"""Attributes whose values are translated."""
_LABELLED: Final = frozenset({"option", "optgroup", "track"})  # their `label` is shown
_BUTTONS: Final = frozenset({"button", "reset", "submit"})  # whose `value` an `input` shows
_NO_TITLE: Final = frozenset({"link", "style"})  # names a set of style sheets
_META: Final = names(
    "description og:title og:description og:site_name og:image:alt"
    " twitter:title twitter:description twitter:image:alt"
)
_ROOTS: Final = frozenset({"html", "ncx"})
_WHOLE: Final = frozenset({"html", "ncx", "head", "body"})
_LANGUAGE: Final = frozenset({"lang", "xml:lang"})
_MOST_NESTED: Final = 8
"""Inline codes within each other that have texts: each holds the markup of all within it."""
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@dataclass(slots=True)
class Page:
    """What a document consists of."""

    text: str
    xml: bool
    rules: Rules = HTML_RULES
    segments: list[Segment] = field(default_factory=list)
    places: list[HtmlPlace] = field(default_factory=list)
    html: Token | None = None
    """The start tag of the root, if it is the first element: `html`, and `ncx` of EPUB 2."""
    language: str | None = None
    """Of its text, as an option or the root says; empty if neither does. None: passages in other
    languages are not looked for."""
    others: list[int] = field(default_factory=list)
    """Where passages begin that are marked as of another language, and left as they are."""
    direction: tuple[int, int] | None = None
    """Range of the attribute `dir` of `body`, which counts more than that of the root."""


def read_page(
    text: str,
    *,
    xml: bool,
    headings: bool = False,
    language: str | None = None,
    rules: Rules = HTML_RULES,
) -> Page:
    """Return the segments of a document, those within inline codes before the ones around them."""
    templates = ranges(text)
    page = Page(text, xml, rules, language=language)
    reader = _Reader(page, templates, headings=headings)
    for start, end, tag in tokens(tags_whole(text, templates, xml=xml), xml=xml):
        if tag.kind == "start":
            reader.start(start, end, tag)
        elif tag.kind == "end":
            reader.end(start, end, tag.name)
        else:
            reader.content(start, end, tag.kind)
    return reader.done()


def _primary(language: str) -> str:
    return language.strip().lower().replace("_", "-").partition("-")[0]


class _Reader:
    """A document as it is read."""

    def __init__(self, page: Page, templates: Sequence[tuple[int, int]], *, headings: bool) -> None:
        self._page = page
        self._text = page.text
        self._xml = page.xml
        self._rules = page.rules
        self._open = OpenElements()
        self._run = Run()
        self._suspended: list[Run] = []
        self._headings: list[tuple[str, str]] | None = [] if headings else None
        self._templates = templates
        self._line, self._counted = 1, 0

    def content(self, start: int, end: int, kind: TokenKind) -> None:
        """Add text or a comment."""
        if not self._open.translated:
            return
        if kind != "text":
            self._run.items.append(HtmlItem("single", start, end))
        elif not self._templates:
            self._shown(start, end)
        else:
            for first, behind, is_template in parted(self._templates, start, end):
                if is_template:
                    self._run.items.append(HtmlItem("single", first, behind))
                else:
                    self._shown(first, behind)

    def _shown(self, start: int, end: int) -> None:
        """Add text without templates."""
        items = self._run.items
        if items or not self._text[start:end].isspace():
            items.append(HtmlItem("text", start, end))

    def done(self) -> Page:
        """Return the document; elements that are open end with it."""
        end = len(self._text)
        self._close(self._open.all(), end)
        self._flush(None, end)
        return self._page

    def start(self, start: int, end: int, tag: HtmlTag) -> None:
        """Open an element."""
        opened, name = self._open, tag.name
        if ended := opened.ended_by_start(name, xml=self._xml):
            self._close(ended, start)
        if opened.last is None and self._page.html is None and name in _ROOTS:
            self._page.html = start, end, tag
            if self._page.language == "":
                self._page.language = self._root_language(start, end)
        block = name in self._rules.blocks
        if block:
            self._flush(opened.block, None)
        element = self._element(start, end, tag, block=block)
        inline = opened.translated and not block
        if tag.closed or (name in VOID and not self._xml):
            if inline:
                self._run.items.append(HtmlItem("single", start, end))
            return
        if inline:
            self._begin(element)
        opened.push(element)

    def _begin(self, element: HtmlElement) -> None:
        """Add markup within a text; text in it that is not translated is not of the same run."""
        if element.translated:
            element.run, element.index = self._run, len(self._run.items)
            self._run.items.append(HtmlItem("open", element.start, element.tag_end))
        else:
            element.opaque = True
            self._suspended.append(self._run)
            self._run = Run()

    def _element(self, start: int, end: int, tag: HtmlTag, *, block: bool) -> HtmlElement:
        """Return the element that a start tag opens, with its attributes read."""
        around, name = self._open.last, tag.name
        outer = self._open.translated
        found = list(attributes(self._text, start, end)) if tag.attributes else []
        if not found:
            translated = outer and name not in self._rules.no_text
        else:
            translated = self._wanted(name, found, outer=outer)
        if name == "body" and self._page.html is not None:
            places = ((each.start, each.end) for each in found if each.name == "dir")
            self._page.direction = self._page.direction or next(places, None)
        is_root = self._page.html is not None and self._page.html[0] == start
        has_titles = self._rules.attributes and (translated or (outer and name == "textarea"))
        if found and has_titles and name not in _NO_TITLE and not is_root:
            self._attributes(name, found)
        preserved = name == "pre" or self._preserved(around)
        bounded = block or (translated and not outer)  # the text before it is not translated
        return HtmlElement(name, start, end, translated, preserved, bounded)

    def _preserved(self, element: HtmlElement | None) -> bool:
        """Return whether blanks and line breaks in an element are kept; None: in no element."""
        return self._rules.preserved or (element is not None and element.preserved)

    def _wanted(self, name: str, found: list[Attribute], *, outer: bool) -> bool:
        """Return whether the content of an element is translated."""
        if name in self._rules.never_text:
            return False
        values = {
            each.name: self._value(each) for each in found if each.name in {"translate", "class"}
        }
        match values.get("translate"):
            case "no":
                return False
            case "yes" | "":
                return outer or len(self._suspended) < _MOST_NESTED
            case _:
                skipped = "notranslate" in values.get("class", "").split()
                wanted = outer and name not in self._rules.no_text and not skipped
                return wanted and not self._is_of_other_language(name, found)

    def _root_language(self, start: int, end: int) -> str:
        return self._language(attributes(self._text, start, end))

    def _language(self, found: Iterable[Attribute]) -> str:
        """Return the language that attributes name; nothing if a template decides it."""
        named = next((self._value(each) for each in found if each.name in _LANGUAGE), "")
        return "" if has_template(named) else named

    def _is_of_other_language(self, name: str, found: list[Attribute]) -> bool:
        """Return whether an element is marked as of another language than the page."""
        language = self._page.language
        if not language or name in _WHOLE:
            return False
        own = self._language(found)
        if not own or _primary(own) == _primary(language):
            return False
        self._page.others.append(found[0].start)
        return True

    def _value(self, attribute: Attribute) -> str:
        if attribute.value_start < 0:
            return ""
        raw = self._text[attribute.value_start : attribute.end]
        raw = raw[1:].removesuffix(raw[0]) if raw[0] in "\"'" else raw
        return decoded_attribute(raw)

    def _attributes(self, element: str, found: list[Attribute]) -> None:
        for each in found:
            if each.value_start >= 0 and self._is_translated(element, each.name, found):
                start, end = each.value_start, each.end
                text, codes = self._text_of(each)
                unknown = self._xml and any(unknown_references(self._text, start, end))
                if is_text(text) and not unknown:
                    kind: Kind = "metadata" if element == "meta" else "attribute"
                    self._add(HtmlBlock(text, kind, codes, doubled=False), HtmlPlace(start, end))

    def _text_of(self, attribute: Attribute) -> tuple[str, tuple[InlineCode, ...]]:
        """Return the value of an attribute with its templates as codes."""
        escape = partial(escaped, xml=self._xml)
        start, end = attribute.value_start, attribute.end
        parts = list(parted(self._templates, start, end)) if self._templates else []
        if not any(is_template for _, _, is_template in parts):
            return of_text(self._value(attribute), escape)
        quoted = self._text[start] in "\"'"
        start, end = trimmed(self._text, start + quoted, end - quoted)
        return composed(
            (
                SingleCode(self._text[first:behind])
                if is_template
                else decoded_value(self._text[first:behind])
                for first, behind, is_template in parted(self._templates, start, end)
            ),
            escape,
        )

    def _is_translated(self, element: str, name: str, found: list[Attribute]) -> bool:
        if element == "meta":
            found_names = (self._value(each) for each in found if each.name in {"name", "property"})
            return name == "content" and any(each.lower() in _META for each in found_names)
        if element == "input" and name == "value":
            types = (self._value(each).lower() for each in found if each.name == "type")
            return next(types, "") in _BUTTONS
        return name in TRANSLATED or (name == "label" and element in _LABELLED)

    def end(self, start: int, end: int, name: str) -> None:
        """Close the elements that an end tag closes."""
        ended = self._open.ended_by_end(name)
        if ended:
            if len(ended) > 1:
                self._close(ended[:-1], start)
            self._close_by(ended[-1], start, end)
        elif name in self._rules.blocks:
            self._flush(self._open.block, None)
        elif self._open.translated:
            self._run.items.append(HtmlItem("single", start, end))

    def _close(self, elements: list[HtmlElement], end: int) -> None:
        for element in elements:
            self._close_one(element, end, end)

    def _close_by(self, element: HtmlElement, start: int, end: int) -> None:
        """Close an element by its own end tag."""
        if element.run is self._run:
            self._run.close(element.index, start, end)
        else:
            self._close_one(element, start, end)
            if not element.block and not element.opaque and self._open.translated:
                self._run.items.append(HtmlItem("single", start, end))

    def _close_one(self, element: HtmlElement, end: int, after: int) -> None:
        if element.opaque:
            self._flush(self._open.block, None)
            self._run = self._suspended.pop()
            self._run.items.append(HtmlItem("single", element.start, after))
        elif element.block:
            self._flush(element, after)

    def _flush(self, block: HtmlElement | None, ended_at: int | None) -> None:
        """End the run of text."""
        run = self._run
        if not run.items:
            return
        self._run = Run()
        around = Around(
            block, ended_at, bool(self._suspended), self._open.has("nav"), self._preserved(block)
        )
        found = block_segment(self._text, run, around, xml=self._xml)
        if found is not None:
            self._leave_headings(block)
            self._add(*found)
            if block is not None:
                block.texts += 1
                self._enter_heading(block, found[0].text)

    def _add(self, block: HtmlBlock, place: HtmlPlace) -> None:
        """Add a segment, with its line and the headings above it."""
        if place.start >= self._counted:
            self._line += self._text.count("\n", self._counted, place.start)
        else:  # a block comes after the attributes of the markup in it
            self._line -= self._text.count("\n", place.start, self._counted)
        self._counted = place.start
        above = tuple(text for _, text in self._headings) if self._headings else ()
        segments, places = self._page.segments, self._page.places
        index = len(places)
        while index and places[index - 1].start >= place.end:
            index -= 1  # markup at the end of the block is no part of the segment
        segments.insert(index, block.segment(f"line {self._line}", above))
        places.insert(index, place)

    def _leave_headings(self, block: HtmlElement | None) -> None:
        """Forget the headings that a heading ends: those of its level and below."""
        if self._headings and block is not None and block.name in _HEADINGS:
            while self._headings and self._headings[-1][0] >= block.name:
                self._headings.pop()

    def _enter_heading(self, block: HtmlElement, text: str) -> None:
        if self._headings is not None and block.name in _HEADINGS:
            self._headings.append((block.name, plain(text)))
