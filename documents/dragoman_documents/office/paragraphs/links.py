"""Links that are fields: runs that begin, part and end a field, with the link's text in runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman_documents.xml.tree import XmlElement, text_of

_LINK: Final = re.compile(r"\s*HYPERLINK\b", re.IGNORECASE)


class FieldNames(NamedTuple):
    """The names of what makes up a field."""

    mark: str = ""
    """The element that begins, parts and ends a field, by its attribute `kind`."""
    kind: str = ""
    instruction: str = ""
    """The element with what the field does."""
    simple: str = ""
    """The element of a field as a whole, with its attribute `simple_instruction`."""
    simple_instruction: str = ""


NO_FIELD: Final = FieldNames()


class FieldLink(NamedTuple):
    """A link among the children of an element."""

    first: int
    last: int
    element: XmlElement
    """From the run that begins the field to the one that ends it, with the runs of its text."""


def is_link(element: XmlElement, field: FieldNames) -> bool:
    """Return whether an element is a field as a whole, and a link."""
    instruction = element.attributes.get(field.simple_instruction, "")
    return element.name == field.simple and _LINK.match(instruction) is not None


def links(
    data: bytes, children: Sequence[XmlElement], run: str, field: FieldNames
) -> Iterator[FieldLink]:
    """Yield the links that begin and end among these children, and are in no other field.

    Fields within a link, in what it does or in its text, are a part of it.
    """
    depth = 0
    marks: list[tuple[str | None, int]] = []
    for index, each in enumerate(children):
        kinds = [mark.attributes.get(field.kind) for mark in each.descendants(field.mark)]
        alone = len(kinds) == 1 and _is_alone(each, run, field)
        for kind in kinds:
            depth -= kind == "end" and depth > 0
            if depth == (kind == "separate"):  # a mark of the outermost field
                marks.append((kind if alone else None, index))
            depth += kind == "begin"
            if not depth:
                yield from _link(data, children, marks, field)
                marks.clear()


def _link(
    data: bytes,
    children: Sequence[XmlElement],
    marks: Sequence[tuple[str | None, int]],
    field: FieldNames,
) -> Iterator[FieldLink]:
    """Yield the link that a field is, by the marks at which it begins, parts and ends."""
    if [kind for kind, _ in marks] == ["begin", "separate", "end"]:
        begin, part, end = (index for _, index in marks)
        if _LINK.match(_instruction(data, children[begin:part], field)):
            yield FieldLink(begin, end, _element(children, begin, part, end))


def _is_alone(element: XmlElement, run: str, field: FieldNames) -> bool:
    """Return whether a run holds one mark of a field and no text."""
    names = [each.name for each in element.children if not each.name.endswith(":rPr")]
    return element.name == run and names == [field.mark]


def _instruction(data: bytes, children: Sequence[XmlElement], field: FieldNames) -> str:
    found = (part for each in children for part in each.descendants(field.instruction))
    return "".join(text_of(data[each.content : each.stop]) for each in found)


def _element(children: Sequence[XmlElement], begin: int, part: int, end: int) -> XmlElement:
    found = XmlElement("", {}, children[begin].start, children[part].end)
    found.stop, found.end = children[end].start, children[end].end
    found.children = list(children[part + 1 : end])
    return found
