"""Markdown and MDX: blocks spliced between untouched bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from dragoman_documents.catalogs.yaml.scanning import Scalar
from dragoman_documents.catalogs.yaml.scanning import spelled as spelled_scalar
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
from dragoman_documents.markup.markdown.escaping import (
    Context,
    is_punctuation,
    spelled,
)
from dragoman_documents.markup.markdown.extracting import Extracting, Slot
from dragoman_documents.markup.markdown.html_blocks import HtmlSlots, replacements
from dragoman_documents.markup.markdown.titles import spelled_title
from dragoman_documents.markup.markdown.units import Unit
from dragoman_documents.references import reference
from dragoman_documents.splicing import Replacement, replaced
from dragoman_documents.values import is_text
from dragoman_text.spans import has_letters

_RUN: Final = re.compile(rb"\*+|_+|~+")


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    source: bytes
    slots: Sequence[Slot]
    html: Sequence[HtmlSlots]


@dataclass(frozen=True, slots=True)
class Markdown:
    """CommonMark with GitHub's extensions; `mdx`: with expressions and components of JSX."""

    name: str = "markdown"
    suffixes: frozenset[str] = frozenset({".md", ".markdown"})
    mdx: bool = False
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return headings, paragraphs, items, cells and titles. Raises DocumentError."""
        file = decoded(data)
        source = file.text.encode()
        found = Extracting(source, options, self.mdx)
        found.run(file.text)
        return Extraction(
            segments=tuple(found.segments),
            skeleton=found.skeleton(),
            encoding=file.encoding,
            remarks=tuple(found.remarks()),
            layout=_Layout(file, source, tuple(found.slots), tuple(found.html)),
        )

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
        layout = layout_of(extraction, _Layout)
        segments, double = extraction.segments, options.bilingual
        splicing = _Splicing(layout, segments, texts, bilingual=double, mdx=self.mdx)
        blocks = (each for html in layout.html for each in replacements(html, texts, options))
        result = replaced(layout.source, chain(splicing.replacements(), blocks))
        return layout.file.encoded(result.decode(), reference)


@dataclass(frozen=True)
class _Splicing:
    layout: _Layout
    segments: Sequence[Segment]
    texts: Sequence[str | None]
    bilingual: bool
    mdx: bool

    @cached_property
    def doubling(self) -> Doubling:
        """The document as bilingual translations are put into it."""
        return Doubling(self.layout.source)

    def replacements(self) -> Iterator[Replacement[bytes]]:
        """Yield what changes; a title inside a unit that changes is written with it."""
        written: set[int] = set()
        for html in self.layout.html:
            written.update(range(html.first, html.first + len(html.page.segments)))
        for index, slot in enumerate(self.layout.slots):
            if slot.unit is not None and (content := self._unit(index, slot)) is not None:
                if self.bilingual:
                    yield self.doubling.doubled(slot, content.encode())
                else:
                    written.update(title.index for title in slot.titles)
                    yield Replacement(slot.start, slot.end, content.encode())
        for index, slot in enumerate(self.layout.slots):
            if slot.scalar is not None:
                yield from self._metadata(index, slot.scalar, slot)
            elif slot.unit is None and index not in written:
                yield from self._title_replacement(index, slot)

    def _metadata(self, index: int, scalar: Scalar, slot: Slot) -> Iterator[Replacement[bytes]]:
        text = self.texts[index]
        if text is None or not is_text(text):
            return
        value = " ".join(rendered(text, self.segments[index].codes, str).split())
        content = f"{scalar.text} / {value}" if self.bilingual else value
        yield Replacement(slot.start, slot.end, spelled_scalar(scalar, content).encode())

    def _title_replacement(self, index: int, slot: Slot) -> Iterator[Replacement[bytes]]:
        content = self._title(index)
        if content is not None and self.bilingual:
            yield self.doubling.doubled(slot, content.encode())
        elif content is not None:
            yield Replacement(slot.start, slot.end, content.encode())

    def _unit(self, index: int, slot: Slot) -> str | None:
        text = self.texts[index]
        if text is None or slot.unit is None:
            return None
        content = spelled(
            text,
            self._codes(index, slot),
            _context(slot.unit, self.layout.source, mdx=self.mdx),
        )
        if content is not None and not _delimits(slot.unit, self.layout.source, content):
            return None
        if content is None or not slot.unit.wrap[0] or self.bilingual:
            return content
        return content.join(slot.unit.wrap)

    def _title(self, index: int) -> str | None:
        text = self.texts[index]
        return spelled_title(text) if text is not None and has_letters(text) else None

    def _codes(self, index: int, slot: Slot) -> Sequence[InlineCode]:
        """Return the codes of a unit with their titles translated; a copy has no titles."""
        codes = self.segments[index].codes
        changed: dict[str, str] = {}
        for title in slot.titles:
            content = "" if self.bilingual else self._title(title.index)
            if content is not None:
                changed[title.code] = title.code_with(content)
        return [_with_titles(code, changed) for code in codes] if changed else codes


def _delimits(unit: Unit, source: bytes, content: str) -> bool:
    """Return whether emphasis around a unit stays emphasis around its translation.

    A translation may begin or end with punctuation where its source does not. In CommonMark the run
    beside it then delimits nothing beside a word, as in `1**T**`. Between two marks of punctuation
    it could both open and close, and pairs with no run of another length, as in `<*T**`.
    """
    closing = None if unit.outermost else _RUN.match(source, unit.end)
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


def _context(unit: Unit, source: bytes, *, mdx: bool) -> Context:
    if unit.wrap[0]:
        return Context("[", "]", heading=unit.block.kind == "heading", mdx=mdx)
    before = source[max(unit.start - 4, 0) : unit.start].decode("utf-8", "ignore")
    after = source[unit.end : unit.end + 4].decode("utf-8", "ignore")
    return Context(
        before[-1:] or "\n",
        after[:1] or "\n",
        begins_line=unit.begins_line,
        heading=unit.block.kind == "heading",
        mdx=mdx,
    )


def _with_titles(code: InlineCode, changed: Mapping[str, str]) -> InlineCode:
    if code.closing is None:
        return code._replace(opening=changed.get(code.opening, code.opening))
    return code._replace(closing=changed.get(code.closing, code.closing))


CODECS: Final[Mapping[str, Codec]] = {
    "markdown": Markdown(),
    "mdx": Markdown("mdx", frozenset({".mdx"}), mdx=True),
}
