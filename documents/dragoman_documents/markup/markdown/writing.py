"""Translations of one block: escaped no more than its reader needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from string import punctuation
from typing import Final, NamedTuple

from dragoman_documents.codec import InlineCode, Options
from dragoman_documents.inline_codes import composed, pieces
from dragoman_documents.markup.markdown.events import MarkdownBlock
from dragoman_documents.markup.markdown.extracting import Extracting, MarkdownSlot
from dragoman_documents.markup.markdown.inlines import defined, normalized
from dragoman_documents.markup.markdown.plain import SpelledOnce, finished, has_links, written
from dragoman_documents.markup.markdown.spelled import SourceUnit, Spelled
from dragoman_documents.markup.markdown.unit_sources import (
    AS_IT_IS,
    context,
    inner_end,
    inner_start,
    is_label,
    raw_of,
    short_links,
    spelling_of,
)
from dragoman_documents.markup.markdown.units import MarkdownUnit
from dragoman_documents.markup.sites import Dialect, site

_CONTAINER: Final = re.compile(
    rb"[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[[^\[\]\r\n]\][ \t]+)?)*"
)
_NEXT_LINE: Final = re.compile(r"([\r\n])[ \t>]+")
_LABEL: Final = re.compile(r"\[([^\[\]]+)\]")
_ANGLES: Final = re.compile(r"<((?:https?|ftp)://[^<>]*)>")
_EXTENDING: Final = frozenset({"gfm", "markdown-it", "obsidian"})
"""Dialects that make a link of a bare address and of the letters that follow it."""
_HEADINGS: Final = frozenset({"heading", "title"})
"""Kinds of blocks at whose end attributes may stand."""
_CANONICAL: Final = {"_": "*", "__": "**"}
_OWN_SYNTAX: Final[Mapping[Dialect, str]] = {
    "python-markdown": "=^~\\", "kramdown": "|", "myst": "$", "mdx": "$", "pandoc": "^~\\",
    "obsidian": "=",
}  # fmt: skip
"""Characters that are syntax in a dialect, though our parser takes them for text."""
_MOST_STEPS: Final = 12
"""Runs of characters of a unit that are tried one by one; of more of them, several at once."""
_LONGEST: Final = 20_000
"""Characters of a block whose escapes are tried; of a longer one they all stay."""
_MOST_UNITS: Final = 200
"""Units of a block whose reading is checked; a block with more is escaped in full."""


class WrittenUnit(NamedTuple):
    """A unit of a block with its translation; `number` is that of its segment."""

    number: int
    slot: MarkdownSlot
    spelled: Spelled | SpelledOnce
    text: str
    codes: Sequence[InlineCode]

    def wanted(self) -> tuple[list[str], list[str]]:
        """Return words and codes as they are read again, in their order in the translation."""
        if not self.codes:
            return _canonical(self.text, ())
        return _canonical(*composed(pieces(self.text, self.codes)))


@dataclass
class MarkdownWriter:
    """Writes the units of a document."""

    source: bytes
    options: Options
    mdx: bool

    def contents(self, parts: Sequence[WrittenUnit]) -> dict[int, str]:
        """Return what is written for each translation of one block, by its segment's number."""
        if len(parts) == 1 and isinstance(parts[0].spelled, SpelledOnce):
            return {parts[0].number: parts[0].spelled.text}
        plainest = {part.number: part.spelled.plainest() for part in parts}
        if all(part.spelled.is_plain for part in parts):
            return plainest
        escaped = {part.number: part.spelled.escaped() for part in parts}
        doubted = [part for part in parts if self._is_doubted(part, plainest, escaped)]
        if not doubted:
            return plainest
        if len(parts) > _MOST_UNITS:
            return escaped
        return _Trial(self, parts, doubted).settled(plainest, escaped)

    def _is_doubted(
        self, part: WrittenUnit, plainest: Mapping[int, str], escaped: Mapping[int, str]
    ) -> bool:
        content = plainest[part.number]
        if content == escaped[part.number]:
            return False
        unit = part.slot.unit
        return unit is None or content.encode() != self.source[inner_start(unit) : inner_end(unit)]

    @cached_property
    def definitions(self) -> Mapping[str, str]:
        """The labels of link definitions and footnotes, as they are compared and as spelled."""
        return {normalized(label): label for label in defined(self.source)}

    def part(
        self,
        number: int,
        slot: MarkdownSlot,
        unit: MarkdownUnit,
        text: str,
        codes: Sequence[InlineCode],
    ) -> WrittenUnit | None:
        """Return a unit with its translation; None if Markdown cannot hold that."""
        spelling = spelling_of(unit, self.source, self._syntax, mdx=self.mdx)
        links = short_links(unit, self.source) if codes else {}
        content = None
        if self._brackets_are_text(text, unit):
            content = written(text, codes, spelling, links, outermost=unit.outermost)
        if content is not None:
            if spelling:
                content = finished(content, raw_of(unit, self.source), mdx=self.mdx)
            is_literal = spelling is None and not links and not unit.wrap[0]
            return WrittenUnit(number, slot, SpelledOnce(content, is_literal), text, codes)
        source = SourceUnit(
            spelling or AS_IT_IS,
            self.definitions,
            links,
            raw_of(unit, self.source),
            self._extends_addresses,
            self._syntax,
        )
        around = context(unit, self.source, self._known, mdx=self.mdx)
        spelled = Spelled(text, codes, around, source)
        return WrittenUnit(number, slot, spelled, text, codes) if spelled.holds else None

    def _brackets_are_text(self, text: str, unit: MarkdownUnit) -> bool:
        """Return whether a word in brackets or in braces is text wherever it stands here."""
        if "{" in text and (self.mdx or unit.block.kind in _HEADINGS or not unit.outermost):
            return False
        if "[" not in text:
            return True
        inside = unit.wrap[0] or unit.block.kind == "title" or not unit.outermost
        if inside or is_label(unit, self.source):
            return False
        return not has_links(text, self.definitions)

    @cached_property
    def _syntax(self) -> str:
        dialect = "mdx" if self.mdx else site(self.options.site).dialect
        return _OWN_SYNTAX.get(dialect, "")

    @cached_property
    def _known(self) -> str:
        """The characters that a backslash escapes."""
        return punctuation if self.mdx else site(self.options.site).escapes

    @cached_property
    def _extends_addresses(self) -> bool:
        return site(self.options.site).dialect in _EXTENDING


@dataclass
class _Trial:
    writer: MarkdownWriter
    parts: Sequence[WrittenUnit]
    doubted: Sequence[WrittenUnit]

    def settled(self, plainest: Mapping[int, str], escaped: Mapping[int, str]) -> dict[int, str]:
        """Return contents with as few escapes as are read as they are wanted."""
        contents = dict(plainest)
        failed = self._failing(contents, self.doubted)
        if not failed:
            return contents
        for part in failed:
            contents[part.number] = part.spelled.escaped(frozenset())
        failed = self._failing(contents, failed)
        if sum(map(len, contents.values())) > _LONGEST:
            return contents | {part.number: escaped[part.number] for part in failed}
        chosen = {part.number: set(part.spelled.doubtful) for part in failed}
        contents |= {part.number: escaped[part.number] for part in failed}
        steps = {part.number: _steps(part.spelled.doubtful) for part in failed}
        for number in range(max(map(len, steps.values()), default=0)):
            self._step(number, failed, steps, chosen, contents)
        return contents

    def _step(
        self,
        number: int,
        failed: Sequence[WrittenUnit],
        steps: Mapping[int, Sequence[set[tuple[int, int]]]],
        chosen: dict[int, set[tuple[int, int]]],
        contents: dict[int, str],
    ) -> None:
        """Leave out one escape of each unit where it reads back without it."""
        tried = [part for part in failed if number < len(steps[part.number])]
        trial = dict(contents)
        fewer = {part.number: chosen[part.number] - steps[part.number][number] for part in tried}
        for part in tried:
            trial[part.number] = part.spelled.escaped(fewer[part.number])
        wrong = {part.number for part in self._failing(trial, tried)}
        for part in tried:
            if part.number not in wrong:
                chosen[part.number] = fewer[part.number]
                contents[part.number] = trial[part.number]

    def _failing(
        self, contents: Mapping[int, str], judged: Sequence[WrittenUnit]
    ) -> list[WrittenUnit]:
        """Return the units that are not read from the block as they are wanted."""
        if not judged:
            return []
        options = replace(self.writer.options, headings=False, keys=())
        found = Extracting(self._fragment(contents), options, self.writer.mdx)
        found.run()
        pairs = zip(found.segments, found.slots, strict=True)
        read = [_canonical(each.text, each.codes) for each, slot in pairs if slot.unit is not None]
        if len(read) != len(self.parts):
            return list(judged)
        wrong = {
            part.number
            for part, each in zip(self.parts, read, strict=True)
            if each != part.wanted()
        }
        return [part for part in judged if part.number in wrong]

    def _fragment(self, contents: Mapping[int, str]) -> bytes:
        """Return a document of this block alone."""
        source = self.writer.source
        first = self.parts[0].slot.unit
        assert first is not None  # noqa: S101  parts are units
        block = first.block
        start, end = block.tokens[0].start, block.tokens[-1].end
        place = start = min(start, self.parts[0].slot.start)
        made: list[bytes] = []
        for part in self.parts:
            made.append(source[place : part.slot.start])
            made.append(whole(part.slot, contents[part.number], source).encode())
            place = part.slot.end
        made.append(source[place : max(end, place)])
        text = b"".join(made).decode()
        return self._document(block, start, max(end, place), text).encode()

    def _document(self, block: MarkdownBlock, start: int, end: int, text: str) -> str:
        source = self.writer.source
        if block.kind == "cell":
            return f"|1|\n|-|\n|{text}|\n" + self._needed(text)
        line = max(source.rfind(b"\n", 0, start), source.rfind(b"\r", 0, start)) + 1
        behind = _line_end(source, end)
        if block.underlined:
            behind = _line_end(source, min(len(source), behind + 2))
        if block.kind == "title":
            head = source[line:start].lstrip(b" \t")
        else:
            found = _CONTAINER.match(source, line, start)
            head = source[found.end() if found else line : start]
        tail = source[end:behind].decode()
        text = _NEXT_LINE.sub(r"\1", head.decode() + text + tail)
        return text + "\n\n" + self._needed(text)

    def _needed(self, text: str) -> str:
        """Return the definitions of the labels that occur in a text."""
        labels = {normalized(each) for each in _LABEL.findall(text)}
        known = self.writer.definitions
        found = sorted(known[label] for label in labels & known.keys())
        return "\n".join(f"\n[{label}]: 1" for label in found)


def _steps(doubtful: Sequence[tuple[int, int]]) -> list[set[tuple[int, int]]]:
    """Return what is left out, step by step: from the end, so that what opens stays escaped.

    Characters beside each other stay or go together: half of a run can be syntax by itself.
    """
    runs: list[list[tuple[int, int]]] = []
    for part, place in doubtful:
        if runs and runs[-1][-1] == (part, place - 1):
            runs[-1].append((part, place))
        else:
            runs.append([(part, place)])
    size = max(1, -(-len(runs) // _MOST_STEPS))
    found = [set(chain(*runs[at : at + size])) for at in range(0, len(runs), size)]
    return found[::-1]


def _canonical(text: str, codes: Iterable[InlineCode]) -> tuple[list[str], list[str]]:
    """Return a text and its codes without what may be spelled in several ways."""
    spelled = [part for code in codes for part in (code.opening, code.closing or "")]
    return text.split(), [
        _CANONICAL.get(part, _ANGLES.sub(r"\1", _NEXT_LINE.sub(r"\1", part))) for part in spelled
    ]


def _line_end(source: bytes, place: int) -> int:
    found = [at for at in (source.find(b"\n", place), source.find(b"\r", place)) if at >= 0]
    return min(found, default=len(source))


def whole(slot: MarkdownSlot, content: str, source: bytes) -> str:
    """Return what is written for a unit: its translation, and around it a link by reference."""
    unit = slot.unit
    if unit is None or not unit.wrap[0]:
        return content
    start, end = inner_start(unit), inner_end(unit)
    if content.encode() == source[start:end]:
        return source[unit.start : start].decode() + content + source[end : unit.end].decode()
    return content.join(unit.wrap)
