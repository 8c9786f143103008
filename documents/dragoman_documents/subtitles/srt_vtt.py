"""SRT and WebVTT: cues of one sentence are translated together; times and cues never change."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isnan
from typing import Final

from dragoman_documents.codec import (
    Codec,
    DocumentError,
    Extraction,
    InlineCode,
    Options,
    Remark,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded, newline_of
from dragoman_documents.inline_codes import Piece, composed, fits, plain, rendered
from dragoman_documents.references import unescaped
from dragoman_documents.spelling import Spelling
from dragoman_documents.splicing import Replacement, replaced, skeleton
from dragoman_documents.subtitles.breaks import Parted, cut_again
from dragoman_documents.subtitles.cues import Cue, changes_cues, cues_of, lines_of
from dragoman_documents.subtitles.groups import (
    SubtitleLayout,
    SubtitleReading,
    SubtitleUnit,
    groups,
)
from dragoman_documents.subtitles.text import (
    SRT_TAG,
    VTT_TAG,
    core,
    joined,
    pieces_of,
    wrapped,
)
from dragoman_documents.subtitles.utterances import may_have_utterances, utterances
from dragoman_text.spans import is_translatable

_DASH: Final = re.compile(r"[-–—‐]\s*")
_BLANKS: Final = re.compile(r"[\s\0]+")
_BREAK: Final = re.compile(r"[\r\n\0]")
_MARK: Final = "\0"
_ODD: Final = re.compile("[&<>]")
_PIECE: Final = re.compile(r"&[^\s<&;]{1,32}+;?|[^\n&]++|&")
"""A reference, or other text; none has a line break, which is put where the text has room."""


@dataclass(frozen=True)
class SubtitleCodec:
    """Subtitles. Header, notes, styles, regions, settings and voices are left alone."""

    name: str
    suffixes: frozenset[str]
    vtt: bool
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return a segment per sentence, or per cue that holds whole ones. Raises DocumentError."""
        file, text = self._read(data)
        cues = cues_of(text, vtt=self.vtt)
        units = [unit for index, cue in enumerate(cues) for unit in self._units(text, index, cue)]
        found_groups = list(groups(text, cues, units, self._tags))
        found = [(group, self._segment(text, group)) for group in found_groups]
        kept = [
            (group, segment) for group, segment in found if is_translatable(plain(segment.text))
        ]
        return Extraction(
            tuple(segment for _, segment in kept),
            skeleton(file.text, [(unit.start, unit.end) for group, _ in kept for unit in group]),
            file.encoding,
            tuple(_remarks(text, cues)),
            layout=SubtitleLayout(
                file, text, newline_of(file.text), tuple(cues), tuple(group for group, _ in kept)
            ),
        )

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the segments of an output, with the sentences that its source had.

        Bilingual: each source is followed by its translation, if it has one.
        """
        layout = layout_of(before, SubtitleLayout)
        file, text = self._read(data)
        cues = cues_of(text, vtt=self.vtt)
        if len(cues) != len(layout.cues):
            raise DocumentError("corrupt", "the output has another number of cues than its source")
        held = SubtitleReading(layout, text, cues).groups()
        ranges = [(unit.start, unit.end) for group in held for unit in group]
        segments: list[Segment] = []
        for group, source in zip(held, layout.groups, strict=True):
            if options.bilingual:
                segments += self._read_group(text, group, layout, source)
            else:
                segments.append(self._segment(text, group))
        return Extraction(tuple(segments), skeleton(file.text, ranges), file.encoding)

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations; cues that a translation does not fit stay."""
        layout = layout_of(extraction, SubtitleLayout)
        changes: list[Replacement[str]] = []
        for group, segment, text in zip(layout.groups, extraction.segments, texts, strict=True):
            if text is not None and fits(text, segment.codes):
                changes += self._changes(layout, group, segment, text, options)
        return layout.file.encoded(replaced(layout.file.text, changes)) if changes else data

    def _read(self, data: bytes) -> tuple[Decoded, str]:
        file = decoded(data)
        # Of the same length: a CR is a blank at the end of its line, or ends it alone.
        return file, file.text.replace("\r", " " if "\n" in file.text else "\n")

    @property
    def _tags(self) -> re.Pattern[str]:
        return VTT_TAG if self.vtt else SRT_TAG

    def _decode(self, text: str) -> str:
        return unescaped(text) if self.vtt and "&" in text else text

    def _escape(self, text: str) -> str:
        return html.escape(text, quote=False) if self.vtt else text

    def _keeping(self, sources: Sequence[str], text: str) -> Callable[[str], str]:
        """Return how to escape a translation: as its sources spell what is still there."""
        if not self.vtt or not any(map(_ODD.search, sources)):
            return self._escape
        raws = (raw for source in sources for raw in self._tags.split(source))
        pieces = ((self._decode(raw), raw) for each in raws for raw in _PIECE.findall(each))
        keep = Spelling(pieces, self._escape).keeping(text)

        def spell(part: str) -> str:
            found = keep(part)
            is_same = self._decode(found) == part and not self._tags.search(found)
            return found if is_same else self._escape(part)

        return spell

    def _units(self, text: str, index: int, cue: Cue) -> Iterator[SubtitleUnit]:
        lines = self._utterances(text, cue)
        if not lines:
            yield SubtitleUnit(index, *self._core(text, cue.start, cue.end))
        for each in lines:
            yield self._utterance(text, index, each)

    def _utterances(self, text: str, cue: Cue) -> list[list[tuple[int, int]]]:
        """Return the lines of each utterance of a cue; nothing if the cue is one text."""
        if not may_have_utterances(text, cue.start, cue.end):
            return []
        lines = list(lines_of(text, cue.start, cue.end))
        counts = utterances([self._tags.sub("", text[slice(*line)]).strip() for line in lines])
        held = iter(lines)
        return [list(islice(held, count)) for count in counts]

    def _utterance(self, text: str, index: int, lines: Sequence[tuple[int, int]]) -> SubtitleUnit:
        first, last = lines[0][0], lines[-1][1]
        start, end = self._core(text, first, last)
        dash = _DASH.match(text, start, end)
        begin = dash.end() if dash else start
        return SubtitleUnit(index, begin, end, text[first:begin], text[end:last], len(lines))

    def _core(self, text: str, start: int, end: int) -> tuple[int, int]:
        first, last = core(text[start:end], self._tags)
        return start + first, start + last

    def _segment(self, text: str, group: Sequence[SubtitleUnit]) -> Segment:
        spelled, codes = self._composed(text, [(unit.start, unit.end) for unit in group])
        first, last = group[0].cue + 1, group[-1].cue + 1
        place = f"cue {first}" if first == last else f"cues {first}-{last}"
        return Segment(spelled, place, "cue", codes)

    def _composed(
        self, text: str, ranges: Iterable[tuple[int, int]]
    ) -> tuple[str, tuple[InlineCode, ...]]:
        spelled, codes = self._spelled(text, ranges)
        return joined(spelled), codes

    def _spelled(
        self, text: str, ranges: Iterable[tuple[int, int]]
    ) -> tuple[str, tuple[InlineCode, ...]]:
        """Return texts in their lines, with our tags."""
        pieces: list[Piece] = []
        for start, end in ranges:
            pieces += ["\n"] if pieces else []
            pieces += pieces_of(text[start:end], self._tags, self._decode)
        return composed(pieces, self._escape)

    def _changes(
        self,
        layout: SubtitleLayout,
        group: Sequence[SubtitleUnit],
        segment: Segment,
        text: str,
        options: Options,
    ) -> Iterator[Replacement[str]]:
        sources = [layout.text[unit.start : unit.end] for unit in group]
        if _BREAK.search(text):
            text = _BLANKS.sub(_without_breaks, text).strip()
        cues = self._cut(layout, group, text, segment.text)
        if cues is None:
            return
        parted = _MARK.join(cue.text for cue in cues)
        escape = self._keeping(sources, parted)
        parts = rendered(parted, segment.codes, escape).split(_MARK)
        if len(parts) != len(group):  # a tag of the cue holds the mark
            return
        found = list(zip(group, parts, cues, strict=True))
        if any(
            changes_cues(_broken(layout.text, *each), layout.text, each[0].end, vtt=self.vtt)
            for each in found
        ):
            return
        for unit, part, cue in found:
            new = _broken(layout.file.text, unit, part, cue, layout.newline)
            kept = layout.file.text[unit.start : unit.end] + _between(unit, layout)
            yield Replacement(unit.start, unit.end, kept + new if options.bilingual else new)

    def _cut(
        self, layout: SubtitleLayout, group: Sequence[SubtitleUnit], text: str, whole: str
    ) -> list[Parted] | None:
        """Return a translation in the cues of its group; an utterance keeps its lines."""
        if group[0].lines == 1:
            return [Parted(text, None)]
        first = layout.text[group[0].start : group[0].end]
        if len(group) == 1 and "\n" not in first and not group[0].lines:
            return [Parted(wrapped(text, [first]), None)]
        spelled, _ = self._spelled(layout.text, ((unit.start, unit.end) for unit in group))
        sources = [layout.text[unit.start : unit.end] for unit in group]
        return cut_again(text, spelled, whole, sources, in_lines=group[0].lines > 0)

    def _read_group(
        self,
        text: str,
        group: Sequence[SubtitleUnit],
        layout: SubtitleLayout,
        source: Sequence[SubtitleUnit],
    ) -> Iterator[Segment]:
        """Yield the source of a bilingual group, and its translation if it has one."""
        own = self._segment(layout.text, source)
        yield own
        ranges = [
            (unit.start + first.end - first.start + len(_between(first, layout)), unit.end)
            for unit, first in zip(group, source, strict=True)
        ]
        if all(start < end for start, end in ranges):
            spelled, codes = self._composed(text, ranges)
            yield own._replace(text=spelled, codes=codes)


def _remarks(text: str, cues: Sequence[Cue]) -> Iterator[Remark]:
    """Yield a remark on the lines whose times players may not read."""
    odd = [cue.times for cue in cues if isnan(cue.starts)]
    if odd:
        line = text.count("\n", 0, odd[0]) + 1
        detail = "these times are not written as players expect; the line stays as it is"
        yield Remark(f"line {line}", detail, "time", len(odd))


def _broken(text: str, unit: SubtitleUnit, part: str, cue: Parted, newline: str = "\n") -> str:
    """Return the translation of a cue with its line breaks: those of its source in a text."""
    lines = part.split("\n")
    if cue.breaks is None or len(lines) != len(cue.breaks) + 1:
        return newline.join(lines)
    breaks = (text[unit.start + start : unit.start + end] for start, end in cue.breaks)
    return "".join(map("".join, zip(lines, (*breaks, ""), strict=True)))


def _without_breaks(match: re.Match[str]) -> str:
    return " " if _BREAK.search(match[0]) else match[0]


def _between(unit: SubtitleUnit, layout: SubtitleLayout) -> str:
    """Return what is between a source and its translation below it."""
    return f"{unit.trail}{layout.newline}{unit.lead}"


_VTT: Final = SubtitleCodec("vtt", frozenset({".vtt"}), vtt=True)
_SRT: Final = SubtitleCodec("srt", frozenset({".srt"}), vtt=False)
CODECS: Final[Mapping[str, Codec]] = {"srt": _SRT, "vtt": _VTT}
