"""Paragraphs of Office Open XML: a segment's translation back to runs.

It is put into the runs of the source (`filling.py`), or new runs are written if it does not fit.
Empty runs are written where without them the output would be read as another segment: around
markup at the ends of a formatting or of the paragraph, between two pairs of equal formatting, and
where the base formatting would have no text left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import (
    ClosingCode,
    OpeningCode,
    Piece,
    SingleCode,
    composed,
    pieces,
)
from dragoman_documents.office.paragraphs.filling import (
    Names,
    ParagraphPlaces,
    ParagraphSource,
    filled,
)
from dragoman_documents.office.paragraphs.grouping import (
    Code,
    FormatCode,
    Grouping,
    WrapperCode,
)
from dragoman_documents.office.paragraphs.items import (
    Fixed,
    Format,
    Item,
    RunText,
    base,
    extent,
    texts,
)
from dragoman_documents.shares import between_tags
from dragoman_documents.splicing import skeleton
from dragoman_documents.xml.slots import Inner, around, shown
from dragoman_documents.xml.tree import XmlElement


@dataclass(frozen=True, slots=True)
class ParagraphText:
    """The text of a paragraph, and how its translation is written."""

    text: str
    codes: tuple[InlineCode, ...]
    start: int
    end: int
    runs: Runs


def block(
    data: bytes, items: Sequence[Item], names: Names, whole: XmlElement | None = None
) -> ParagraphText:
    """Return the text and codes of trimmed items, of which there is at least one.

    `whole` is the element whose content is replaced if it is not the range of the items.
    """
    grouping = Grouping(data)
    found = list(grouping.pieces(items))
    text, marks = composed(found, lambda each: each)
    codes = tuple(
        grouping.codes[int(each.opening[1:])] if each.opening[:1] == "\0" else each.opening
        for each in marks
    )
    core = text.strip()
    places = _places(found, items, whole)
    lead = text[: len(text) - len(text.lstrip())]
    runs = Runs(data, codes, base(items), names, core, places, lead, text[len(text.rstrip()) :])
    inline = tuple(
        InlineCode(shown(runs.opening(code)), None if each.closing is None else shown(""))
        for each, code in zip(marks, codes, strict=True)
    )
    return ParagraphText(core, inline, places.start, places.end, runs)


def _places(
    found: Sequence[Piece], items: Sequence[Item], whole: XmlElement | None
) -> ParagraphPlaces:
    stretches = tuple(_stretches(found, items))
    if whole is None:
        return ParagraphPlaces(*extent(items), stretches, tuple(_edges(items)))
    readings = (each for each in whole.children if "sb" in each.attributes)
    return ParagraphPlaces(whole.content, whole.stop, stretches, readings=tuple(readings))


def _stretches(found: Sequence[Piece], items: Sequence[Item]) -> Iterator[tuple[XmlElement, ...]]:
    """Yield the elements with text before, between and behind the tags."""
    held = texts(items)
    elements: list[XmlElement] = []
    for piece in found:
        if isinstance(piece, str):
            elements += next(held).elements
        else:
            yield tuple(elements)
            elements.clear()
    yield tuple(elements)


def _edges(items: Sequence[Item]) -> Iterator[XmlElement]:
    """Yield the elements of the texts at the ends, which would be no text if they were blank."""
    for each in (items[0], items[-1]):
        if isinstance(each, RunText) and not each.mixed:
            yield from each.elements


@dataclass(frozen=True, slots=True)
class Runs:
    """Writes the runs of one paragraph."""

    data: bytes
    codes: tuple[Code | str, ...]
    """Per code what it stands for; a text that looks like one of our tags is a code too."""
    base: Format
    names: Names
    source: str
    """The segment's text."""
    places: ParagraphPlaces
    lead: str = ""
    trail: str = ""

    def opening(self, code: Code | str) -> str:
        """Return the markup of a code for people."""
        match code:
            case str():
                return code
            case FormatCode(formatting):
                return formatting.raw.decode()
            case WrapperCode((start, end)) | Fixed(start, end):
                return self.data[start:end].decode()

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the runs of a translation."""
        marks = tuple(
            InlineCode(str(index), None if isinstance(code, Fixed | str) else "")
            for index, code in enumerate(self.codes)
        )
        given = list(pieces(text, marks))
        between, tags = between_tags(given, self._text_of, self.lead, self.trail)
        if not self.codes or tags == between_tags(pieces(self.source, marks), self._text_of)[1]:
            found = filled(ParagraphSource(self.data, self.places, self.names), between, inner)
            if found is not None:
                return found
        return _Writing(self, inner).all(given)

    def _text_of(self, single: SingleCode) -> str | None:
        code = self.codes[int(single.code)]
        return code if isinstance(code, str) else None

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return a digest of the markup in codes, which does not depend on their order.

        A formatting that is lost is seen in the text, where it costs the segment alone.
        """
        return skeleton(
            b"",
            [],
            f"{self.lead}\0{self.trail}",
            *sorted(
                self._digest(each, ranges)
                for each in self.codes
                if isinstance(each, Fixed | WrapperCode)
            ),
        )

    def _digest(self, code: Fixed | WrapperCode, ranges: Sequence[tuple[int, int]]) -> str:
        if isinstance(code, WrapperCode):
            ends = (around(self.data, *each, ranges) for each in (code.opening, code.closing))
            return "".join(ends)
        return around(self.data, code.start, code.end, ranges)


def _joined(lead: str, given: Sequence[Piece], trail: str) -> list[Piece]:
    """Return the pieces with blanks at the ends, in the same run as the text beside them."""
    whole = list(given)
    for index, blank in ((0, lead), (-1, trail)):
        edge = whole[index]
        if isinstance(edge, str):
            whole[index] = edge + blank if index else blank + edge
        elif blank:
            whole.insert(len(whole) if index else 0, blank)
    return whole


@dataclass(slots=True)
class _Level:
    """A paragraph or a wrapper while it is written."""

    base: Format
    last: bytes | None = None
    """Key of the last run with text."""
    has_base: bool = False
    has_group: bool = False
    closing: bytes = b""


@dataclass(slots=True)
class _Writing:
    runs: Runs
    inner: Inner
    parts: list[bytes] = field(default_factory=list)
    levels: list[_Level] = field(default_factory=list)
    group: Format | None = None
    around: list[Format | None] = field(default_factory=list)
    """The formatting that goes on after each pair that is open."""
    at_text: bool = False
    """Whether the last part is a run with text."""

    def all(self, given: Sequence[Piece]) -> bytes:
        """Return the runs of all pieces, with empty ones at the ends where they are needed."""
        self.levels.append(_Level(self.runs.base))
        given = _joined(self.runs.lead, given, self.runs.trail)
        if self._needs_edge(given):
            self._text("")
        for each in given:
            self._piece(each)
        if self._needs_edge(given[::-1]):
            self._text("")
        self._end_level()
        return b"".join(self.parts)

    def _needs_edge(self, given: Sequence[Piece]) -> bool:
        """Return whether what comes first could be taken for something beside the segment."""
        for each in given:
            if isinstance(each, str):
                return each.isspace()
            if isinstance(each, SingleCode):
                return not isinstance(self._code(each.code), str)
            if isinstance(each, OpeningCode) and isinstance(self._code(each.opening), WrapperCode):
                return True
        return True

    def _piece(self, piece: Piece) -> None:
        match piece:
            case str():
                self._text(piece)
            case SingleCode(code):
                self._single(self._code(code))
            case OpeningCode(code):
                self._open(self._code(code))
            case ClosingCode():
                self._close()

    def _code(self, index: str) -> Code | str:
        return self.runs.codes[int(index)]

    def _single(self, code: Code | str) -> None:
        if not isinstance(code, Fixed):
            self._text(str(code))
            return
        if self.group is not None and not self.at_text:
            self._text("")
        self.parts += (code.before, self.inner(code.start, code.end), code.after)
        self.at_text = False

    def _open(self, code: Code | str) -> None:
        level = self.levels[-1]
        self.around.append(self.group)
        if isinstance(code, FormatCode):
            if self.group is not None or level.last == code.format.key:
                self.group = None
                self._text("")
            self.group, self.at_text, level.has_group = code.format, False, True
        elif isinstance(code, WrapperCode):
            self.group = None
            self.parts += (code.before, self.inner(*code.opening))
            self.levels.append(_Level(code.base, closing=self.inner(*code.closing) + code.after))
            self.at_text = False

    def _close(self) -> None:
        before = self.around.pop()
        if self.group is not None:
            if not self.at_text:
                self._text("")
        elif len(self.levels) > 1:
            self._end_level()
            self.parts.append(self.levels.pop().closing)
            self.levels[-1].last = None
            self.at_text = False
        self.group = before

    def _end_level(self) -> None:
        level = self.levels[-1]
        if not level.has_base and (level.has_group or len(self.levels) > 1):
            self.group = None
            self._text("")

    def _text(self, text: str) -> None:
        level = self.levels[-1]
        formatting = level.base if self.group is None else self.group
        level.has_base |= self.group is None
        level.last, self.at_text = formatting.key, True
        self.parts.append(self._run(text, formatting))

    def _run(self, text: str, formatting: Format) -> bytes:
        names = self.runs.names
        space = b' xml:space="preserve"' if names.spaced else b""
        content = b"".join(
            (b"<", names.text, space, b">", names.write(text).encode(), b"</", names.text, b">")
        )
        if names.run is None:
            return content
        return b"".join((b"<", names.run, b">", formatting.raw, content, b"</", names.run, b">"))
