"""Documents that are zip archives of XML parts: extracted and spliced part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from dragoman_documents.archive.reading import Archive
from dragoman_documents.codec import (
    DocumentError,
    Extraction,
    InlineCode,
    Kind,
    Options,
    Remark,
    RemarkKind,
    Segment,
    layout_of,
)
from dragoman_documents.inline_codes import plain, rendered
from dragoman_documents.splicing import skeleton
from dragoman_documents.xml.slots import (
    Inner,
    XmlSlot,
    digest,
    spliced,
    translatable,
    usable,
)
from dragoman_documents.xml.spelling import kept
from dragoman_documents.xml.tree import (
    XmlElement,
    XmlSource,
    attribute_range,
    content_of,
    escaped,
    escaped_value,
    parsed,
    source,
    value_of,
)

_RIGHT_TO_LEFT: Final = {"ar", "arc", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"}


@dataclass(frozen=True, slots=True)
class PackagePart:
    """A member of the archive with text in it."""

    name: str
    source: XmlSource
    root: XmlElement

    @property
    def data(self) -> bytes:
        """The part as UTF-8."""
        return self.source.data


def opened(archive: Archive, name: str, prefixes: dict[str, str]) -> PackagePart:
    """Return a part of an archive. Raises DocumentError."""
    read = source(archive.read(name))
    return PackagePart(name, read, parsed(read.data, prefixes, what=name))


@dataclass(slots=True)
class Found:
    """What has been found in a document so far."""

    parts: list[PackagePart] = field(default_factory=list)
    slots: list[tuple[XmlSlot, ...]] = field(default_factory=list)
    """Per segment its slots; more than one where a document holds the same text several times."""
    remarks: list[Remark] = field(default_factory=list)

    def add(self, part: PackagePart, slots: Sequence[tuple[XmlSlot, ...]]) -> None:
        """Add a part with its slots."""
        self.parts.append(part)
        self.slots += slots

    def remark(self, place: str, detail: str, kind: RemarkKind) -> None:
        """Add something a person should know."""
        self.remarks.append(Remark(place, detail, kind))


@dataclass(frozen=True, slots=True)
class _Layout:
    archive: Archive
    found: Found


class Finder(Protocol):
    """How the parts of one format are read."""

    def __call__(self, archive: Archive, options: Options) -> Found:
        """Return the parts of a document with their slots. Raises DocumentError."""
        ...


class Filter(Protocol):
    """How translations are changed before they are written."""

    def __call__(self, found: Found, texts: Sequence[str | None]) -> list[str | None]:
        """Return the translations that can be written together; None for the others."""
        ...


def _unfiltered(found: Found, texts: Sequence[str | None]) -> list[str | None]:
    del found
    return list(texts)


@dataclass(frozen=True)
class PackageCodec:
    """A format of zip archives."""

    name: str
    suffixes: frozenset[str]
    finder: Finder
    can_double: bool = False
    filter: Filter = _unfiltered
    by_language: bool = False
    has_targets: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the segments of all parts."""
        archive = Archive(data)
        found = self.finder(archive, options)
        segments = tuple(each[0].segment for each in found.slots)
        return Extraction(
            segments,
            _skeleton(archive, found),
            remarks=(*found.remarks, *_direction(options, segments)),
            layout=_Layout(archive, found),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the document with translations in the places of their segments."""
        layout = layout_of(extraction, _Layout)
        found = layout.found
        written: dict[str, list[tuple[XmlSlot, str]]] = {}
        for slots, text in zip(
            found.slots, self.filter(found, list(map(usable, texts))), strict=True
        ):
            for slot in slots if text is not None else ():
                written.setdefault(slot.part, []).append((slot, text or ""))
        return layout.archive.rewritten(
            {
                part.name: part.source.encoded(spliced(part.data, written[part.name]))
                for part in found.parts
                if part.name in written
            }
        )


def _skeleton(archive: Archive, found: Found) -> str:
    by_part: dict[str, list[XmlSlot]] = {each.name: [] for each in found.parts}
    for slot in (slot for slots in found.slots for slot in slots):
        by_part[slot.part].append(slot)
    without = {name for name, slots in by_part.items() if slots}
    digests = (
        digest(each.data, by_part[each.name]) for each in found.parts if each.name in without
    )
    return skeleton(b"", [], archive.fingerprint(without), *digests)


def _direction(options: Options, segments: Sequence[Segment]) -> Iterator[Remark]:
    if segments and options.target_lang.split("-", maxsplit=1)[0] in _RIGHT_TO_LEFT:
        detail = "paragraphs are not set from right to left; do it in its program"
        yield Remark("document", detail, "direction")


@dataclass(frozen=True, slots=True)
class PlainFilling:
    """Writes text without markup as its source spells what is still there."""

    raw: str
    """The source's text as it is spelled."""
    read: Callable[[str], str]
    write: Callable[[str], str]

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the text, escaped, with the blanks that the source has at its ends."""
        del inner
        lead, _, trail = stripped(self.read(self.raw))
        return kept(self.raw, self.read, self.write, lead + text + trail).encode()

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the blanks around the text."""
        del ranges
        lead, _, trail = stripped(self.read(self.raw))
        return f"{lead}\0{trail}"


@dataclass(frozen=True, slots=True)
class PlainName(PlainFilling):
    """Writes a value that repeats a text elsewhere, without its markup."""

    codes: tuple[InlineCode, ...] = ()
    """What stands for the markup; nothing if there are none."""

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the text without tags, escaped."""
        if not self.codes:
            return PlainFilling.written(self, plain(text), inner)
        shown = rendered(text, self.codes, str)
        return kept(self.raw, self.read, self.write, shown).encode()

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return nothing: the text is known by its other place."""
        del ranges
        return ""


def attribute_slot(
    part: PackagePart, element: XmlElement, name: str, place: str
) -> Iterator[XmlSlot]:
    """Yield the slot of an attribute's value, if it holds text."""
    text = element.attributes.get(name, "")
    found = attribute_range(part.data, element, name) if translatable(text) else None
    if found is not None:
        segment = Segment(text.strip(), place, "attribute", doubled=False)
        writer = PlainFilling(part.data[slice(*found)].decode(), value_of, escaped_value)
        yield XmlSlot(segment, *found, writer, part.name)


def text_slot(
    part: PackagePart, element: XmlElement | None, place: str, kind: Kind
) -> Iterator[XmlSlot]:
    """Yield the slot of an element's text, if it holds text and no other elements."""
    if element is None or element.children:
        return
    raw = part.data[element.content : element.stop].decode()
    text = content_of(raw).strip()
    if translatable(text):
        segment = Segment(text, place, kind, doubled=False)
        writer = PlainFilling(raw, content_of, escaped)
        yield XmlSlot(segment, element.content, element.stop, writer, part.name)


def stripped(text: str) -> tuple[str, str, str]:
    """Return the blanks before a text, the text, and the blanks after it."""
    inner = text.strip()
    start = len(text) - len(text.lstrip())
    return text[:start], inner, text[start + len(inner) :]


def headless(name: str, content: str) -> DocumentError:
    """Return the error of a document whose main part does not lead to its content."""
    return DocumentError("corrupt", f"{name} names no {content} in the file; save it again")


def wrong_type(wanted: str) -> DocumentError:
    """Return the error of an archive that is no document of the format its name says."""
    return DocumentError("wrong_type", f"the file is no {wanted}; give it the name of its format")
