"""Markdown and MDX: blocks spliced between untouched bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from dragoman_documents.codec import (
    Codec,
    Extraction,
    InlineCode,
    Options,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.inline_codes import rendered
from dragoman_documents.markup.markdown.bilingual import Doubling
from dragoman_documents.markup.markdown.delimiters import is_punctuation
from dragoman_documents.markup.markdown.events import MarkdownBlock
from dragoman_documents.markup.markdown.extracting import Extracting, MarkdownSlot
from dragoman_documents.markup.markdown.front_matter import Value, front_matter, paths
from dragoman_documents.markup.markdown.html_blocks import HtmlSlots, replacements
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.markdown.plain import SpelledOnce, keeps_constructs
from dragoman_documents.markup.markdown.raw_counts import constructs, labels
from dragoman_documents.markup.markdown.titles import spelled_title
from dragoman_documents.markup.markdown.unit_codes import with_titles
from dragoman_documents.markup.markdown.units import MarkdownUnit
from dragoman_documents.markup.markdown.writing import (
    MarkdownWriter,
    WrittenUnit,
    whole,
)
from dragoman_documents.references import reference
from dragoman_documents.splicing import Replacement, replaced
from dragoman_documents.values import is_text
from dragoman_text.spans import has_letters

_NEWLINES: Final = re.compile(r"[\r\n]+")
_RUN: Final = re.compile(rb"\*+|_+|~+")


@dataclass(frozen=True, slots=True)
class MarkdownLayout:
    """Where the segments and headings of a document are."""

    file: Decoded
    source: bytes
    """The document in UTF-8, where all places are."""
    slots: Sequence[MarkdownSlot]
    html: Sequence[HtmlSlots]
    headings: Sequence[MarkdownBlock]
    masks: Masks


@dataclass(frozen=True, slots=True)
class Markdown:
    """CommonMark with GitHub's extensions; `mdx`: with expressions and components of JSX."""

    name: str = "markdown"
    suffixes: frozenset[str] = frozenset({".md", ".markdown", ".mkd", ".rmd", ".qmd"})
    mdx: bool = False
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return headings, paragraphs, items, cells and titles. Raises DocumentError."""
        file = decoded(data)
        source = file.text.encode()
        found = Extracting(source, options, self.mdx)
        found.run()
        return Extraction(
            segments=tuple(found.segments),
            skeleton=found.skeleton(),
            encoding=file.encoding,
            remarks=tuple(found.remarks()),
            layout=MarkdownLayout(
                file, source, tuple(found.slots), tuple(found.html), found.headings, found.masks
            ),
        )

    def names(self, data: bytes) -> Iterator[Sequence[str]]:
        """Yield the path of each string in the front matter. Raises DocumentError."""
        source = decoded(data).text.encode()
        if (found := front_matter(source, None)) is not None:
            yield from paths(source, found)

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the document with the translations that Markdown can hold in their places.

        One that it cannot hold, such as one without a letter, leaves the source.
        """
        layout = layout_of(extraction, MarkdownLayout)
        splicing = _Splicing(layout, extraction.segments, texts, options, self.mdx)
        blocks = (each for html in layout.html for each in replacements(html, texts, options))
        result = replaced(layout.source, chain(splicing.replacements(), blocks))
        return layout.file.encoded(result.decode(), reference)


@dataclass(frozen=True)
class _Splicing:
    layout: MarkdownLayout
    segments: Sequence[Segment]
    texts: Sequence[str | None]
    options: Options
    mdx: bool

    @property
    def bilingual(self) -> bool:
        """Whether translations are put beside their sources."""
        return self.options.bilingual

    @cached_property
    def doubling(self) -> Doubling:
        """The document as bilingual translations are put into it."""
        return Doubling(self.layout.source)

    def replacements(self) -> Iterator[Replacement[bytes]]:
        """Yield what changes; a title inside a unit that changes is written with it."""
        written: set[int] = set()
        for html in self.layout.html:
            written.update(range(html.first, html.first + len(html.page.segments)))
        bilingual = self.bilingual
        for slot, content, spelled_whole in self._units():
            if bilingual:
                yield self.doubling.doubled(slot, content.encode())
            else:
                written.update(title.index for title in slot.titles)
                yield Replacement(slot.start, slot.end, spelled_whole)
        for index, slot in enumerate(self.layout.slots):
            if slot.unit is not None:
                continue
            if slot.value is not None:
                yield from self._metadata(index, slot.value)
            elif index not in written:
                yield from self._title_replacement(index, slot)

    def _metadata(self, index: int, value: Value) -> Iterator[Replacement[bytes]]:
        text = self.texts[index]
        if text is None or not is_text(text):
            return
        content = rendered(text, self.segments[index].codes, str)
        if not self._has_the_same(value.text.encode(), content.encode()):
            return
        content = f"{value.text} / {content}" if self.bilingual else content
        yield Replacement(value.start, value.end, value.spelled(content).encode())

    def _title_replacement(self, index: int, slot: MarkdownSlot) -> Iterator[Replacement[bytes]]:
        content = self._title(index)
        if content is not None and self.bilingual:
            yield self.doubling.doubled(slot, content.encode())
        elif content is not None:
            yield Replacement(slot.start, slot.end, content.encode())

    def _units(self) -> Iterator[tuple[MarkdownSlot, str, bytes]]:
        """Yield the units that Markdown can hold, block by block: content, and what is written."""
        writer = MarkdownWriter(self.layout.source, self.options, self.mdx)
        for parts in self._blocks(writer):
            contents = writer.contents(parts)
            for part in parts:
                found = self._verified(part, contents[part.number])
                # what is text for the parser may look like syntax: all of it is escaped then
                found = found or self._verified(part, part.spelled.escaped())
                if found is not None:
                    yield found

    def _verified(self, part: WrittenUnit, content: str) -> tuple[MarkdownSlot, str, bytes] | None:
        """Return a unit as it is written; None if it has other constructs than its source."""
        source, slot = self.layout.source, part.slot
        unit = slot.unit
        if unit is None or not (unit.outermost or _delimits(unit, source, content)):
            return None
        written = whole(slot, content, source).encode()
        if self._keeps_constructs(part):
            return slot, content, written
        raw, before = source[slot.start : slot.end], _before(unit)
        same = self._has_the_same(before + raw, before + written)
        return (slot, content, written) if same else None

    def _keeps_constructs(self, part: WrittenUnit) -> bool:
        """Return whether a unit has the constructs of its source without a look at its bytes."""
        if not isinstance(part.spelled, SpelledOnce) or not part.spelled.is_literal:
            return False
        source = self.segments[part.number].text
        return not part.slot.titles and keeps_constructs(source, part.text, part.codes)

    def _blocks(self, writer: MarkdownWriter) -> Iterator[list[WrittenUnit]]:
        """Yield the units of each block that have a translation that Markdown can hold."""
        parts: list[WrittenUnit] = []
        block = None
        for index, slot in enumerate(self.layout.slots):
            text, unit = self.texts[index], slot.unit
            if text is None or unit is None:
                continue
            if parts and unit.block is not block:
                yield parts
                parts = []
            block = unit.block
            part = writer.part(index, slot, unit, text, self._codes(index, slot))
            if part is not None:
                parts.append(part)
        if parts:
            yield parts

    def _has_the_same(self, raw: bytes, written: bytes) -> bool:
        """Return whether a text has the constructs of its source, found without the parser."""
        found = constructs(raw, self.labels, mdx=self.mdx)
        return constructs(written, self.labels, mdx=self.mdx) == found

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels that the document defines."""
        return labels(self.layout.source)

    def _title(self, index: int) -> str | None:
        text, slot = self.texts[index], self.layout.slots[index]
        if text is None or not has_letters(text):
            return None
        raw = self.layout.source[slot.start : slot.end].decode()
        content = spelled_title(text, raw, slot.syntax)
        return content if self._has_the_same(raw.encode(), content.encode()) else None

    def _codes(self, index: int, slot: MarkdownSlot) -> Sequence[InlineCode]:
        """Return the codes of a unit with their titles translated; a copy has no titles."""
        if not slot.titles:
            return self.segments[index].codes
        contents = [
            (title, "" if self.bilingual else self._title(title.index)) for title in slot.titles
        ]
        changed = ((title, text) for title, text in contents if text is not None)
        return with_titles(self.segments[index].codes, changed)


def _before(unit: MarkdownUnit) -> bytes:
    """Return what stands in front of a unit: no cell begins a line, so that `% ` is text in it."""
    return b"|" if unit.block.kind == "cell" else b""


def _delimits(unit: MarkdownUnit, source: bytes, content: str) -> bool:
    """Return whether emphasis around an inner unit stays emphasis around its translation.

    A translation may begin or end with punctuation where its source does not. In CommonMark the run
    beside it then delimits nothing beside a word, as in `1**T**`. Between two marks of punctuation
    it could both open and close, and pairs with no run of another length, as in `<*T**`.
    """
    closing = _RUN.match(source, unit.end)
    if closing is None:
        return True
    start, end = unit.start, closing.end()
    while source[start - 1 : start] == closing[0][:1]:
        start -= 1
    equal = unit.start - start == end - unit.end
    before = source[max(start - 4, 0) : start].decode("utf-8", "ignore")[-1:] or "\n"
    after = source[end : end + 4].decode("utf-8", "ignore")[:1] or "\n"
    text = source[unit.start : unit.end].decode()
    return all(
        outer.isspace()
        or not is_punctuation(content[at])
        or is_punctuation(text[at])
        or (equal and is_punctuation(outer))
        for at, outer in ((0, before), (-1, after))
    )


CODECS: Final[Mapping[str, Codec]] = {
    "markdown": Markdown(),
    "mdx": Markdown("mdx", frozenset({".mdx"}), mdx=True),
}
