"""What the Markdown parser reads of a document: all syntax of its site is hidden."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dragoman_documents.markup import templates
from dragoman_documents.markup.markdown import jsx
from dragoman_documents.markup.markdown.attributes import has_other_text
from dragoman_documents.markup.markdown.blocks import Blocks
from dragoman_documents.markup.markdown.flow import Region, regions
from dragoman_documents.markup.markdown.html_ends import end_html
from dragoman_documents.markup.markdown.indentation import outdent
from dragoman_documents.markup.markdown.inline_html import CODE_NAMES, EMPTY_NAMES
from dragoman_documents.markup.markdown.inlines import Inlines
from dragoman_documents.markup.markdown.lines import behind_line
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.sites import Site
from dragoman_documents.values import is_text

_CR_ALONE: Final = re.compile(rb"\r(?!\n)")
_ALONE: Final = re.compile(
    rb"[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*(?P<tags>\x01[\x01 \t]*)\r?(?=\n|\Z)"
)
"""A line of nothing but tags, each byte of which is 1."""
_NO_PROSE: Final = re.compile(rb"(?s)```.*?```|~~~.*?~~~|`[^`\n]*`|\{[{%].*?[%}]\}")
_ELEMENT_TEXT: Final = re.compile(rb">[^<>{}=;]*[A-Za-z]{2}[^<>{}=;]*[<{]")


def masked(source: bytes, behind: int, site: Site, *, mdx: bool) -> Masks:
    """Return what the parser reads of a document.

    Its front matter, which ends at `behind`, is blank. A CR alone ends a line
    in CommonMark, but not for the parser.
    """
    masks = Masks(_CR_ALONE.sub(b"\n", source) if b"\r" in source else source)
    masks.blank(0, behind)
    blocks = Blocks(masks, site, mdx=mdx)
    wholes = list(regions(masks.source, behind)) if mdx else []
    blocks.hide(behind, wholes)
    if mdx:
        modules = [each for each in wholes if each.is_module]
        _hide_modules(masks, modules)
        code = [*blocks.code, *((each.start, each.end) for each in modules)]
        _hide_components(masks, sorted(code), site)
    elif b"{{" in source or b"{%" in source:
        _hide_templates(masks, blocks.code, site)
    if not mdx:
        end_html(masks, blocks.code, site)
    Inlines(masks, site, mdx=mdx).hide()
    masks.finish()
    return masks


def _hide_templates(masks: Masks, code: Sequence[tuple[int, int]], site: Site) -> None:
    found = list(templates.tags(bytes(masks.text), code, site.code))
    alone = _alone(masks, [(tag.start, tag.end) for tag in found])
    for tag in found:
        if tag.code and tag.name == b"raw" and _is_prose(masks.source[tag.start : tag.end]):
            masks.left.append(("shortcode", tag.start))
        if not tag.code:
            masks.add_attributes(tag.start, tag.end, site.attributes, "escapes")
            if is_text(templates.positional_text(masks.source, tag)):
                masks.left.append(("shortcode", tag.start))
        if tag.start not in alone:
            lines = tag.code and b"\n" in masks.source[tag.start : tag.end]
            masks.mark(tag.start, tag.end, "line" if lines else "code")


def _is_prose(raw: bytes) -> bool:
    """Return whether a part that templates leave alone has text beside code."""
    return is_text(_NO_PROSE.sub(b" ", raw).decode("utf-8", "replace"))


def _hide_components(masks: Masks, code: Sequence[tuple[int, int]], site: Site) -> None:
    found = [span for span in jsx.spans(bytes(masks.text), code) if span.end > span.start]
    for span in found:
        if span.name:
            masks.add_attributes(span.start, span.end, site.attributes, "references")
        elif _has_text(masks.source, span.start, span.end):
            masks.left.append(("expression", span.start))
    found = list(_without_code(found))
    alone = _alone(masks, [(span.start, span.end) for span in found])
    _mark_components(masks, [span for span in found if span.start not in alone])
    outdent(masks.text, code)


def _without_code(spans: Sequence[jsx.JsxSpan]) -> Iterator[jsx.JsxSpan]:
    """Yield the tags and expressions; an element whose content is no text is one of them."""
    partners = _partners(spans)
    behind = -1
    for span in spans:
        if span.start < behind:
            continue
        partner = partners.get(span.start)
        if partner and span.opens and span.name.decode("utf-8", "replace") in CODE_NAMES:
            behind = partner.end
            yield jsx.JsxSpan(span.start, behind, b"", opens=False, closes=False)
        else:
            yield span


def _has_text(source: bytes, start: int, end: int) -> bool:
    """Return whether readers may see text of an expression or a module: of elements, of strings."""
    if source.startswith(b"{/*", start):
        return False
    is_element = _ELEMENT_TEXT.search(source, start, end) is not None
    return is_element or has_other_text(source, start, end, frozenset())


def _hide_modules(masks: Masks, modules: Sequence[Region]) -> None:
    """Hide imports and exports with all their lines."""
    for start, end, _ in modules:
        masks.region(start, end)
        if _has_text(masks.source, start, end):
            masks.left.append(("expression", start))


def _alone(masks: Masks, spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    """Hide the lines that hold nothing but these tags; return the starts of the tags in them."""
    scratch = bytearray(masks.text)
    starts = list[int]()
    for start, end in spans:
        scratch[start:end] = b"\x01" * (end - start)
        starts.append(start)
    within = set[int]()
    behind = 0
    for place in starts:
        if place < behind:
            continue
        behind = behind_line(scratch, place)
        match = _ALONE.match(scratch, scratch.rfind(b"\n", 0, place) + 1)
        if match is not None and match.start("tags") == place:  # else the document's own bytes
            end = match.end("tags")
            within.update(starts[bisect_left(starts, place) : bisect_left(starts, end)])
            masks.region(place, end)
    return frozenset(within)


def _mark_components(masks: Masks, spans: Sequence[jsx.JsxSpan]) -> None:
    """Mark tags in sentences: as pairs where both are there."""
    partners = _partners(spans)
    for span in spans:
        partner = partners.get(span.start)
        if partner is None:
            masks.mark(span.start, span.end)
        else:
            masks.mark(span.start, span.end, "open" if span.opens else "close", partner.start)


def _partners(spans: Sequence[jsx.JsxSpan]) -> dict[int, jsx.JsxSpan]:
    """Return the tag that closes each one, and the one that opens it, by their starts."""
    opened = list[jsx.JsxSpan]()
    found = dict[int, jsx.JsxSpan]()
    for span in spans:
        if span.opens and span.name.decode("utf-8", "replace") not in EMPTY_NAMES:
            opened.append(span)
        elif span.closes and opened and opened[-1].name == span.name:
            found[span.start] = opened[-1]
            found[opened.pop().start] = span
        elif span.closes:
            opened.clear()
    return found
