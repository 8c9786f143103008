"""Documents that are one XML file: extracted and spliced."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from dragoman_documents.codec import DocumentError, Extraction, Options, Remark, Segment
from dragoman_documents.xml.inline import InlineRules, mixed
from dragoman_documents.xml.plurals import FormWriter, together
from dragoman_documents.xml.slots import (
    Inner,
    XmlSlot,
    XmlWriter,
    digest,
    spliced,
    translatable,
    usable,
)
from dragoman_documents.xml.tree import XmlElement, XmlSource, parsed, source

XML_NAMESPACE: Final[Mapping[str, str]] = {
    "": "",
    "http://www.w3.org/XML/1998/namespace": "xml",
}
"""No namespace, and that of `xml:lang`, with their prefixes in `Element.name`."""


@dataclass(slots=True)
class Read:
    """A file that is being read, and what has been found in it."""

    data: bytes
    root: XmlElement
    options: Options
    slots: list[tuple[XmlSlot, ...]] = field(default_factory=list)
    """Per segment its slots: the place of its text, and places that change with it."""
    once: list[XmlSlot] = field(default_factory=list)
    """Places that change when any segment does, such as the language of the file."""
    remarks: list[Remark] = field(default_factory=list)


def add_content(read: Read, element: XmlElement, rules: InlineRules, about: Segment) -> None:
    """Add the content of an element as a segment, if it has text."""
    if element.content == element.end:
        return
    found = mixed(read.data, element, rules)
    if translatable(found.text):
        segment = about._replace(text=found.text, codes=found.codes)
        read.slots.append((XmlSlot(segment, element.content, element.stop, found.writer),))


@runtime_checkable
class Drafting(Protocol):
    """A writer that marks a translation a person should look at."""

    def as_draft(self) -> XmlWriter:
        """Return the writer of a draft."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Writes the same whatever the translation is."""

    content: bytes
    draft: bytes | None = None

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the content."""
        del text, inner
        return self.content

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return nothing: the content may change."""
        del ranges
        return ""

    def as_draft(self) -> XmlWriter:
        """Return the writer of a draft."""
        return self if self.draft is None else Constant(self.draft)


@dataclass(frozen=True, slots=True)
class _Layout:
    source: XmlSource
    read: Read


@dataclass(frozen=True)
class XmlCodec:
    """A format of XML files."""

    name: str
    suffixes: frozenset[str]
    roots: frozenset[str]
    """Names of root elements, as `prefixes` spell them."""
    reader: Callable[[Read], None]
    prefixes: Mapping[str, str]
    has_targets: bool = False
    entities: bool = False
    by_language: bool = False
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the segments of a file. Raises DocumentError."""
        if not data.strip():
            raise DocumentError("corrupt", "the file is empty")
        file = source(data)
        if not file.data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<"):
            raise DocumentError("wrong_type", f"the file is not XML, so it is not {self.name}")
        root = parsed(file.data, self.prefixes, entities=self.entities)
        if root.name not in self.roots:
            raise DocumentError(
                "wrong_type", f"the file is XML, but not {self.name}; give it its format's name"
            )
        read = Read(file.data, root, options)
        self.reader(read)
        slots = [*read.once, *(slot for slots in read.slots for slot in slots)]
        return Extraction(
            tuple(each[0].segment for each in read.slots),
            digest(file.data, slots),
            file.encoding,
            tuple(read.remarks),
            _Layout(file, read),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations in the places of their segments."""
        layout = extraction.layout
        if not isinstance(layout, _Layout):
            return self.splice(data, self.extract(data, options), texts, options)
        filled = list(_filled(layout.read, texts, options))
        if not filled:
            return data
        filled += ((slot, "") for slot in layout.read.once)
        return layout.source.encoded(spliced(layout.source.data, filled))


def _filled(
    read: Read, texts: Sequence[str | None], options: Options
) -> Iterator[tuple[XmlSlot, str]]:
    messages: dict[int, list[tuple[XmlSlot, FormWriter, str]]] = {}
    for index, (slots, given) in enumerate(zip(read.slots, texts, strict=True)):
        text = usable(given)
        if text is None:
            continue
        for slot in slots:
            writer = slot.writer
            if index in options.drafts and isinstance(writer, Drafting):
                writer = writer.as_draft()
            if isinstance(writer, FormWriter):
                messages.setdefault(slot.start, []).append((slot, writer, text))
            else:
                yield slot._replace(writer=writer), text
    for found in messages.values():
        yield together(found)
