"""Translations spelled as Markdown: text that could be read as syntax is escaped, and no more."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import plain
from dragoman_documents.markup.markdown.delimiters import (
    GOES_ON,
    JOINED,
    Edges,
    choose_delimiters,
    separate_addresses,
)
from dragoman_documents.markup.markdown.escaping import (
    Context,
    escapes,
    first_escape,
    own_escapes,
)
from dragoman_documents.markup.markdown.parts import ADDRESS, TextPart, holds, parts_of
from dragoman_documents.references import reference
from dragoman_documents.spelling import Kept, Spelling

_BEGINNING: Final = (
    r"(?:>|#|=+[ \t]*(?:[\r\n\ufdd0]|\Z)|===|:[: \t\ufdd0]|:[\w\-]+:|[{|]|%[% \t\ufdd0]"
    r"|~[ \t\ufdd0]|\${2}|\([\w.:+\-]+\)="
    r"|\[(?:!|[^\]\r\n]*\]:)|\\[A-Za-z]|<(?:[A-Za-z/!?]|<<)|`{3}|~{3}|\*\["
    r"|[-+*](?:[ \t\r\n\ufdd0]|\Z)|-{2}|_{3}|\*{3}|\+[-=]|;-|!!!|\?\?\?|///"
    r"|(?:[0-9]{1,9}|[A-Za-z]|[ivxIVX]{1,6})[.)](?:[ \t\r\n\ufdd0]|\Z)"
    r"|\((?:@[\w\-]*|[A-Za-z0-9]|[ivxIVX]{1,5})\)[ \t\ufdd0]"
    r"|(?:import|export)[ \t{*\ufdd0])"
)
"""The beginning of a line that some generator reads as another block."""
MARK: Final = "\ufdd0"
END: Final = "\ufdd1"
"""Around line breaks while a translation is written: characters that no text may have."""
_BLOCK_BREAK: Final = re.compile(
    rf"{MARK}[^{END}]*{END}(?=[ \t]*{_BEGINNING})|(?<=[\\ \t]){MARK}[^{END}]*{END}"
)
_BREAK: Final = re.compile(f"({MARK}[^{END}]*{END})")
_ALONE: Final = re.compile(r"\s*(?:\{\{.*\}\}|\{%.*%\})\s*")
_ALONE_MDX: Final = re.compile(r"\s*(?:\{.*\}|<.*>)\s*")
"""Lines that could be nothing but codes."""
_MARKS: Final = re.compile(f"[{MARK}{END}]")
_BREAKS: Final = re.compile(r"[\r\n\v\f]+")
_BLANKS: Final = " \t"
_ANGLE: Final = re.compile("<")


class Spelled:
    """A translation as Markdown, with more or fewer of its characters escaped.

    Raises ValueError if tags do not fit.
    """

    def __init__(
        self, text: str, codes: Sequence[InlineCode], around: Context, unit: SourceUnit
    ) -> None:
        line = _BREAKS.sub(" ", text).strip(_BLANKS)
        self._around = around
        self._unit = unit
        self._parts = parts_of(line, codes)
        self.holds = holds(self._parts, label=around.label)
        """Whether Markdown can hold it: one without a letter outside all pairs, with an empty pair
        or with a line break at one of its ends would be read as something else."""
        self._kept = _kept(plain(line), unit, mdx=around.mdx) if self.holds else []
        self._escapes = escapes(self._parts, around, unit.labels) if self.holds else []
        places = [(index, place) for index, each in enumerate(self._escapes) for place in each]
        self._always = self._start().union(
            (index, place)
            for index, place in (places if around.mdx else ())
            if self._parts[index].raw[place] in "<{"  # in MDX they are never text
        )
        self._always = self._always.union(self._own_syntax())
        self.doubtful: Final = tuple(each for each in places if each not in self._always)
        """Parts and places of the characters that could be read as syntax."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing in it could be read as syntax: it has one way to be written."""
        return not (self.doubtful or self._kept or self._always) and not any(
            part.delimits or ADDRESS.match(part.raw) for part in self._parts if part.kind != "text"
        )

    def plainest(self) -> str:
        """Return it with nothing escaped that the source did not spell so."""
        raws = [part.raw for part in self._parts]
        if not (self._kept or self._always):
            plain = self._with_labels(raws)
        else:
            plain = self._written(raws, self._always, _NOTHING)
        return plain if plain == self._unit.raw else self._careful(plain)

    def escaped(self, places: Iterable[tuple[int, int]] | None = None) -> str:
        """Return it with these characters escaped, by default all that could be syntax.

        Markup is spelled so that it delimits what it stands around, and no line begins like
        another block.
        """
        parts = [TextPart(each.kind, each.raw, each.pair, each.place) for each in self._parts]
        choose_delimiters(parts, self._around)
        separate_addresses(parts, self._around, GOES_ON)
        if self._unit.extends_addresses:
            separate_addresses(parts, self._around, JOINED)
        edges = Edges(parts, self._around)
        chosen = self._always.union(self.doubtful if places is None else places)
        raws = [part.raw for part in parts]
        written = self._written(raws, chosen, edges.references(), marked=True)
        return joined(written, mdx=self._around.mdx)

    def _careful(self, plain: str) -> str:
        """Return the plainest spelling without what other readers than ours take for syntax."""
        extends = self._unit.extends_addresses and "://" in plain
        if not extends and "\n" not in plain and "\r" not in plain:
            return plain
        parts = [TextPart(each.kind, each.raw, each.pair, each.place) for each in self._parts]
        if extends:
            separate_addresses(parts, self._around, JOINED)
        raws = [part.raw for part in parts]
        written = self._written(raws, self._always, _NOTHING, marked=True)
        return joined(written, mdx=self._around.mdx)

    def _start(self) -> frozenset[tuple[int, int]]:
        """Return the first character if generators differ in what it begins, but for the source."""
        if not self._escapes or self._parts[0].kind != "text":
            return _NOTHING
        first = first_escape(self._parts[0].raw, self._unit.raw, self._around)
        if first is None:
            return _NOTHING
        self._escapes[0][0] = first
        return frozenset({(0, 0)})

    def _own_syntax(self) -> Iterator[tuple[int, int]]:
        """Yield what the dialect takes for syntax and our parser for text, with its escapes."""
        if self._escapes and self._unit.syntax:
            found = own_escapes(self._parts, self._unit.syntax, self._around)
            for index, place, spelling in found:
                self._escapes[index][place] = spelling
                yield index, place

    def _written(
        self,
        raws: list[str],
        chosen: Container[tuple[int, int]],
        references: Collection[tuple[int, int]],
        *,
        marked: bool = False,
    ) -> str:
        kept = deque(self._kept)
        spellings = [
            {place: each for place, each in found.items() if (index, place) in chosen}
            for index, found in enumerate(self._escapes)
        ]
        for index, place in references:
            spellings[index][place] = reference(self._parts[index].raw[place])
        for index, part in enumerate(self._parts):
            if part.kind == "text":
                raws[index] = "".join(_with_kept(part, kept, spellings[index], marked=marked))
        return self._with_labels(raws)

    def _with_labels(self, raws: list[str]) -> str:
        """Return the whole; a link by its own text gets its label only if its text changed."""
        if not self._unit.short_links:
            return "".join(raws)
        end = ends_of(self._unit.short_links)
        for index, part in enumerate(self._parts):
            if part.kind == "close":
                raws[index] = end(raws[index], "".join(raws[part.pair + 1 : index]))
        return "".join(raws)


def _kept(text: str, unit: SourceUnit, *, mdx: bool) -> list[Kept]:
    """Return what a translation keeps of its source's spelling.

    One more dollar than the source has makes a formula of those that were text.
    """
    kept, source = unit.spelling.kept(text), unit.spelling.text
    changed = {each for each in unit.syntax if text.count(each) != source.count(each)}
    if mdx and "<" in text:
        harmless = _bare_angles(text, source)
        kept = [each for each in kept if each.raw != "<" or each.end in harmless]
    return [each for each in kept if text[each.start : each.end] not in changed]


def _bare_angles(text: str, source: str) -> set[int]:
    """Return the ends of each `<` that MDX reads as it reads that of the source, if it is bare.

    It is text in front of a blank. What else MDX makes of one, it makes of the source's as well if
    the same character follows.
    """
    ends, theirs = ([found.end() for found in _ANGLE.finditer(each)] for each in (text, source))
    follow = [source[end : end + 1] for end in theirs] if len(ends) == len(theirs) else ()
    same = {end for end, after in zip(ends, follow, strict=False) if text[end : end + 1] == after}
    return same | {end for end in ends if text[end : end + 1] in _BLANKS}


_NOTHING: Final[frozenset[tuple[int, int]]] = frozenset()


ShortLinks = Mapping[str, Mapping[str, Sequence[str]]]
"""Links whose text is their label: per end that a translation needs, such as `][label]`, the
source's text and how each such link ended there: `]`, `][]`, or in full."""


def ends_of(links: ShortLinks) -> Callable[[str, str], str]:
    """Return what ends the next link of an end and a text: as the source's, if it is there."""
    rest = {end: {text: iter(raws) for text, raws in found.items()} for end, found in links.items()}

    def end(closing: str, inside: str) -> str:
        found = rest.get(closing, {}).get(inside)
        return closing if found is None else next(found, closing)

    return end


class SourceUnit(NamedTuple):
    """What the writing of a unit needs of its source."""

    spelling: Spelling
    labels: Collection[str]
    """Of the link definitions of the document, as labels are compared."""
    short_links: ShortLinks
    raw: str = ""
    """Its text in the source, as it is spelled there."""
    extends_addresses: bool = False
    """Whether readers may take letters behind a bare address for a part of it."""
    syntax: str = ""
    """Characters that are syntax in its dialect, though our parser takes them for text."""


def between_marks(line_break: str) -> str:
    """Return a line break between marks, for `joined`."""
    return f"{MARK}{line_break}{END}"


def unmarked(written: str) -> str:
    """Return what is written without marks."""
    return _MARKS.sub("", written)


def joined(written: str, *, mdx: bool) -> str:
    """Return what is written without the line breaks that could begin another block."""
    if MARK not in written:
        return written
    text = _BLOCK_BREAK.sub(" ", written)
    if "{" in text or (mdx and "<" in text):
        text = _without_codes_alone(text, _ALONE_MDX if mdx else _ALONE)
    return unmarked(text)


def _without_codes_alone(text: str, alone: re.Pattern[str]) -> str:
    """Return a text in which no line between marks has nothing but codes: these would be blocks."""
    pieces = _BREAK.split(text)
    for index in range(0, len(pieces), 2):
        lines = pieces[index].splitlines() or [""]
        if index and alone.fullmatch(lines[0]):
            pieces[index - 1] = " "
        if index + 1 < len(pieces) and alone.fullmatch(lines[-1]):
            pieces[index + 1] = " "
    return "".join(pieces)


def _with_kept(
    part: TextPart, kept: deque[Kept], spellings: Mapping[int, str], *, marked: bool
) -> Iterator[str]:
    """Yield a text with what it keeps of its source's spelling; line breaks between marks."""
    start, place, end = part.place, part.place, part.place + len(part.raw)
    while kept and kept[0].start < end:
        each = kept.popleft()
        if each.start < place or each.end > end:
            continue
        yield _respelled(part.raw, place - start, each.start - start, spellings)
        is_break = marked and ("\n" in each.raw or "\r" in each.raw)
        yield between_marks(each.raw) if is_break else each.raw
        place = each.end
    yield _respelled(part.raw, place - start, end - start, spellings)


def _respelled(text: str, start: int, end: int, spellings: Mapping[int, str]) -> str:
    """Return a part of a text with these spellings of its characters."""
    if not spellings:
        return text[start:end]
    return "".join(spellings.get(place, text[place]) for place in range(start, end))
