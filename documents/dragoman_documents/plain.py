"""Plain text: a line is a segment, and so is a paragraph that was wrapped by its author."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, NamedTuple

from dragoman_documents.codec import Codec, Extraction, Options, Segment, layout_of
from dragoman_documents.encodings import Decoded, decoded, newline_of
from dragoman_documents.inline_codes import of_text, rendered
from dragoman_documents.splicing import Replacement, replaced, skeleton
from dragoman_text.spans import has_letters

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_MARKER: Final = re.compile(r"(?:[-*+•>#=|]|[0-9]{1,3}[.)])\s")
_NARROWEST: Final = 60
_WIDEST: Final = 100
"""Columns of a line that an author, an editor or a mail program has wrapped."""
_SLACK: Final = 8
"""Columns by which authors leave a line shorter than they had to."""
_TRAILING: Final = re.compile(r"(?<![ \t])[ \t]++(?=[\r\n]|\Z)")
_BREAKS: Final = re.compile(r"(?<![ \t])[ \t]*[\r\n]+[ \t]*")


class _Slot(NamedTuple):
    """A text at `[start:end)`, without the blanks around it."""

    start: int
    end: int
    text: str
    line: int
    width: int = 0
    """Columns at which a paragraph is wrapped; 0: a line."""
    first: str = ""
    """The blanks before its first line."""
    indent: str = ""
    """The blanks before its other lines."""


class _Line(NamedTuple):
    start: int
    raw: str
    number: int
    text: str
    """Without the blanks around it."""

    @property
    def content_start(self) -> int:
        return self.start + len(self.indent)

    @property
    def indent(self) -> str:
        return self.raw[: len(self.raw) - len(self.raw.lstrip())]

    @property
    def content_end(self) -> int:
        return self.content_start + len(self.text)

    @property
    def columns(self) -> int:
        return len(self.raw.rstrip())


@dataclass(frozen=True, slots=True)
class _Group:
    """Lines between blank ones, and the slots in them."""

    lines: Sequence[_Line]
    slots: Sequence[_Slot]


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    groups: Sequence[_Group]


@dataclass(frozen=True, slots=True)
class TextCodec:
    """Lines and wrapped paragraphs between blank lines."""

    name: str = "txt"
    suffixes: frozenset[str] = frozenset({".txt", ".text"})
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the lines and paragraphs with letters. Raises DocumentError (`encoding`)."""
        file = decoded(data)
        groups = [_Group(lines, list(_slots(lines))) for lines in _groups(file.text)]
        slots = [slot for group in groups for slot in group.slots]
        return Extraction(
            segments=tuple(_segment(slot) for slot in slots),
            skeleton=_skeleton(file.text, slots),
            encoding=file.encoding,
            layout=_Layout(file, groups),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the text with translations; paragraphs are wrapped as their sources."""
        layout = layout_of(extraction, _Layout)
        newline = newline_of(layout.file.text)
        spelled = map(_spelled, extraction.segments, texts)
        found = (
            replacement
            for group in layout.groups
            for replacement in _replacements(
                group, list(islice(spelled, len(group.slots))), newline, options.bilingual
            )
        )
        return layout.file.encoded(replaced(layout.file.text, found))


def _skeleton(text: str, slots: Sequence[_Slot]) -> str:
    """Return the digest of the lines without blanks at their ends, which say nothing."""
    gaps: list[str] = []
    end = 0
    for slot in slots:
        gaps.append(_trimmed(text[end : slot.start]))
        end = slot.end
    return skeleton("", (), *gaps, _trimmed(text[end:]))


def _trimmed(gap: str) -> str:
    """Return what is between two texts without the blanks before line ends; most gaps have none."""
    return _TRAILING.sub("", gap) if " " in gap or "\t" in gap else gap


def _spelled(segment: Segment, text: str | None) -> str | None:
    """Return a translation in one line; None if it has no letter and would not be found again."""
    if text is None or not has_letters(text):
        return None
    text = rendered(text, segment.codes, str)
    return (_BREAKS.sub(" ", text) if "\n" in text or "\r" in text else text).strip()


def _replacements(
    group: _Group, texts: Sequence[str | None], newline: str, double: bool
) -> Iterator[Replacement[str]]:
    """Yield what changes in a group of lines."""
    if not any(texts):
        return
    if group.slots[0].width:
        slot = group.slots[0]
        content = _wrapped(texts[0] or "", group, newline)
        gap = newline * 2 + slot.first
        yield Replacement(slot.end if double else slot.start, slot.end, gap * double + content)
        return
    for slot, text in zip(group.slots, texts, strict=True):
        if text is not None:
            gap = newline + slot.indent
            start = slot.end if double else slot.start
            yield Replacement(start, slot.end, gap * double + text)
    if (double or len(group.lines) > 1) and _width(_written(group, texts, double=double)):
        # A blank at the end of a line keeps the lines apart: see _width.
        end = group.lines[0].content_end
        yield Replacement(end, end, " ")


def _written(group: _Group, texts: Sequence[str | None], *, double: bool) -> list[_Line]:
    """Return the lines of a group with their translations."""
    translated = {
        slot.line: text for slot, text in zip(group.slots, texts, strict=True) if text is not None
    }
    lines: list[_Line] = []
    for line in group.lines:
        text = translated.get(line.number)
        if text is None or double:
            lines.append(line)
        if text is not None:
            behind = line.raw[len(line.indent) + len(line.text) :]
            lines.append(_line(line.indent + text + behind))
    return lines


def _segment(slot: _Slot) -> Segment:
    text, codes = of_text(slot.text)
    return Segment(text, f"line {slot.line}", codes=codes)


def _groups(text: str) -> Iterator[list[_Line]]:
    """Yield the lines between blank ones."""
    group: list[_Line] = []
    for number, match in enumerate(_LINE.finditer(text), 1):
        if content := match[0].strip():
            group.append(_Line(match.start(), match[0], number, content))
        elif group:
            yield group
            group = []
    if group:
        yield group


def _line(raw: str) -> _Line:
    return _Line(0, raw, 0, raw.strip())


def _slots(group: Sequence[_Line]) -> Iterator[_Slot]:
    width = _width(group)
    if width:
        text = " ".join(line.text for line in group)
        end = group[-1].content_end
        if has_letters(text):
            head, indent = group[0], group[1].indent
            yield _Slot(head.content_start, end, text, head.number, width, head.indent, indent)
        return
    for line in group:
        if has_letters(line.text):
            indent = line.indent
            start = line.start + len(indent)
            end = start + len(line.text)
            yield _Slot(start, end, line.text, line.number, indent=indent)


def _width(group: Sequence[_Line]) -> int:
    """Return the columns at which a paragraph is wrapped, or 0 if it is lines.

    It is wrapped if no line had room for the first word of the next. A list of titles, one per
    line, is not: some line is short. Neither are lines of which one ends with a blank.
    """
    if len(group) < 2 or any(map(_stands_alone, group)):
        return 0
    width = max(line.columns for line in group)
    if width < _NARROWEST or len({line.indent for line in group[1:]}) > 1:
        return 0
    for line, after in pairwise(group):
        word = after.text.split(maxsplit=1)[0]
        if line.columns + 1 + len(word) <= width - _SLACK or _MARKER.match(after.text):
            return 0
    return width


def _stands_alone(line: _Line) -> bool:
    return line.columns > _WIDEST or line.raw.rstrip("\r\n").endswith((" ", "\t"))


def _wrapped(text: str, group: _Group, newline: str) -> str:
    """Return a paragraph in lines; in one line if its lines would not be read as one paragraph.

    Lines with which source and translation begin stay, the rest is wrapped at the same width.
    """
    slot = group.slots[0]
    rest, kept = text, 0
    for line in group.lines[:-1]:
        if not rest.startswith(line.text + " "):
            break
        rest, kept = rest[len(line.text) + 1 :], kept + 1
    lines = _filled(rest, slot, slot.indent if kept else slot.first)
    lines = [line.raw.rstrip("\r\n") for line in group.lines[:kept]] + lines
    if not _width([_line(line) for line in lines]):
        return text
    ends = [line.raw[len(line.raw.rstrip("\r\n")) :] for line in group.lines[:kept]]
    ends += [newline] * (len(lines) - kept - 1) + [""]
    whole = "".join(line + end for line, end in zip(lines, ends, strict=True))
    return whole[len(slot.first) :]


def _filled(text: str, slot: _Slot, first: str) -> list[str]:
    """Return the lines of a text, at the width of its paragraph."""
    words = text.split(" ")
    lines = [first + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= slot.width:
            lines[-1] += " " + word
        else:
            lines.append(slot.indent + word)
    return lines


CODECS: Final[Mapping[str, Codec]] = {"txt": TextCodec()}
