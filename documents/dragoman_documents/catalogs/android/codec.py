"""Android's string resources: strings, arrays, and plurals in the forms of the target language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dragoman_documents.catalogs.android.text import RULES
from dragoman_documents.codec import Codec, Remark, Segment
from dragoman_documents.plurals.messages import is_known, plural_texts
from dragoman_documents.xml.files import Read, XmlCodec
from dragoman_documents.xml.html_in_text import Marked, with_html
from dragoman_documents.xml.inline import mixed
from dragoman_documents.xml.plurals import FormWriter, Items, slot
from dragoman_documents.xml.slots import XmlSlot, translatable
from dragoman_documents.xml.targets import set_tag
from dragoman_documents.xml.tree import XmlElement, attribute_range

_NAMESPACES: Final = {
    "": "",
    "http://www.w3.org/XML/1998/namespace": "xml",
    "urn:oasis:names:tc:xliff:document:1.2": "xliff",
    "http://schemas.android.com/tools": "tools",
}
_LOCALE: Final = "tools:locale"
"""The language of the file for Android's tools, which check its spelling."""
_REFERENCE: Final = re.compile(rb"\s*[@?][A-Za-z+:_./*]*[/:][A-Za-z0-9_.]+\s*\Z")
_COUNT: Final = re.compile(r"%(?:[0-9]{1,2}\$)?,?[0-9]{0,3}d")


def _android(read: Read) -> None:
    if attribute_range(read.data, read.root, _LOCALE) is not None:
        set_tag(read, read.root, _LOCALE)
    for each in read.root.children:
        if each.attributes.get("translatable") == "false":
            continue
        name = each.attributes.get("name", "")
        if each.name == "string" or (each.name, each.attributes.get("type")) == ("item", "string"):
            _add(read, each, name)
        elif each.name == "plurals" and (found := _plurals(read, each)) is not None:
            read.slots += [(each,) for each in _slots(found, name)]
        elif each.name in {"string-array", "plurals"}:
            _add_items(read, each, name)


def _add_items(read: Read, element: XmlElement, name: str) -> None:
    for number, item in enumerate(element.children):
        _add(read, item, f"{name}.{item.attributes.get('quantity', number)}")
    if element.name == "plurals":
        detail = "its forms are translated as they are; check those that the language needs"
        read.remarks.append(Remark(name, detail, "plural"))


def _add(read: Read, element: XmlElement, place: str) -> None:
    """Add the content of an element as a segment, if it has text."""
    inner = _without_blanks(read.data, element)
    found = None if inner is None else with_html(mixed(read.data, inner, RULES))
    if inner is not None and found is not None and translatable(found.text):
        segment = Segment(found.text, place, "message", found.codes)
        read.slots.append((XmlSlot(segment, inner.content, inner.stop, found.writer),))


def _without_blanks(data: bytes, element: XmlElement) -> XmlElement | None:
    """Return an element without the blanks at its ends, which count only in quotes or escaped.

    None for an empty element, and for one that refers to another resource.
    """
    raw = data[element.content : element.stop]
    if element.content == element.end or _REFERENCE.match(raw):
        return None
    start = element.content + len(raw) - len(raw.lstrip())
    inner = XmlElement(element.name, element.attributes, element.start, start)
    kept = raw.rstrip()
    inner.stop = element.stop if kept.endswith(b"\\") else max(start, element.content + len(kept))
    inner.end, inner.children = element.end, element.children
    return inner


def _plurals(read: Read, element: XmlElement) -> tuple[Items, Mapping[str, Marked]] | None:
    """Return plurals with their texts by quantity; None if they cannot get the target's forms."""
    quantities = [each.attributes.get("quantity", "") for each in element.children]
    if not is_known(quantities, read.options):
        return None
    items = [each for item in element.children if (each := _without_blanks(read.data, item))]
    openings = {_opening(read.data, each) for each in element.children}
    gaps = _gaps(read.data, element)
    if len(items) < len(quantities) or len(openings) > 1 or any(map(bytes.strip, gaps)):
        return None
    by_name = dict(zip(quantities, items, strict=True))
    held = {name: with_html(mixed(read.data, each, RULES)) for name, each in by_name.items()}
    if not all(translatable(each.text) for each in held.values()):
        return None
    forms = plural_texts({name: each.text for name, each in held.items()}, _COUNT, read.options)
    return Items(read.data, by_name, forms, openings.pop(), gaps[-1], b"</item>"), held


def _opening(data: bytes, item: XmlElement) -> tuple[bytes, bytes]:
    """Return a start tag before and behind its quantity."""
    start, end = attribute_range(data, item, "quantity") or (item.content, item.content)
    return data[item.start : start], data[end : item.content]


def _gaps(data: bytes, element: XmlElement) -> list[bytes]:
    """Return what is between the items, or before a single one."""
    ends = [element.content, *(each.end for each in element.children)]
    starts = [each.start for each in element.children]
    gaps = [data[end:start] for end, start in zip(ends, starts, strict=False)]
    return gaps[1:] or gaps


def _slots(found: tuple[Items, Mapping[str, Marked]], name: str) -> list[XmlSlot]:
    plurals, held = found
    writers = (
        FormWriter(plurals, index, form, held[form.source])
        for index, form in enumerate(plurals.forms)
    )
    return [slot(each, Segment("", name)) for each in writers]


CODECS: Final[Mapping[str, Codec]] = {
    "android": XmlCodec(
        "android", frozenset({"strings.xml"}), frozenset({"resources"}), _android,
        _NAMESPACES, entities=True, by_language=True,
    ),
}  # fmt: skip
