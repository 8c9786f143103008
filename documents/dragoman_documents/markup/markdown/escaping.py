"""Translations spelled as Markdown: text that could be read as syntax is escaped, and no more."""

from __future__ import annotations

import re
import string
import unicodedata
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import Opening, Single, pieces, plain
from dragoman_documents.markup.markdown.inlines import normalized
from dragoman_documents.references import reference
from dragoman_documents.spelling import Kept, Spelling
from dragoman_text.spans import has_letters

_SYNTAX: Final = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|\Z)|(?<!\s)\*|\*(?!\s)|\[(?=[\[^@!]|[ xX]\][ \t]|-@)|\](?=[(\[{:]|\Z)"
    r"|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?]|\Z)|&(?=#?[0-9A-Za-z]{1,40};)"
    r"|:(?=//)|(?<![\w:/]):(?=[A-Za-z+\-][\w+\-]*:)|\$(?=\{)|%(?=%)|\^(?=\[|[^\s^]+\^)"
    r"|\{(?=[{%*!]|[ ]?[#.:]|[^{}=]*=|[A-Za-z][\w:+\-]*\}\Z)"
)
_SYNTAX_MDX: Final = re.compile(_SYNTAX.pattern + r"|<(?!\s)|[{}]")
_PAIRED: Final = "`~$"
"""Characters that are syntax only if there are several."""
_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\]")
_LINE_START: Final = re.compile(
    r"(?P<mark>#{1,6}(?=[ \t]|\Z)|[>=:{|]|!!!|\?\?\?|%(?=[% \t])|[-+*](?=[ \t\-+=8*\[]|\Z)|;(?=-)"
    r"|///(?=[ ]|\Z)|<<<|\((?=[\w.:+\-]+\)=))"
    r"|(?P<number>[0-9]{1,9})(?P<dot>[.)])(?=[ \t]|\Z)"
)
_BEGINNING: Final = (
    r"(?:>|#|=+[ \t]*(?:[\r\n\ufdd0]|\Z)|===|:[: \t]|:[\w\-]+:|[{|]|%[% \t]|~[ \t]|\${2}"
    r"|\([\w.:+\-]+\)=|\[(?:!|[^\]\r\n]*\]:)|\\[A-Za-z]|<(?:[A-Za-z/!?]|<<)|`{3}|~{3}|\*\["
    r"|[-+*](?:[ \t\r\n\ufdd0]|\Z)|-{2}|_{3}|\*{3}|\+[-=]|;-|!!!|\?\?\?|///"
    r"|(?:[0-9]{1,9}|[A-Za-z]|[ivxIVX]{1,6})[.)](?:[ \t\r\n\ufdd0]|\Z)"
    r"|\((?:@[\w\-]*|[A-Za-z0-9]|[ivxIVX]{1,5})\)[ \t]"
    r"|(?:import|export)[ \t{*])"
)
"""The beginning of a line that some generator reads as another block."""
_MARK: Final = "\ufdd0"
_END: Final = "\ufdd1"
"""Around line breaks while a translation is written: characters that no text may have."""
_BLOCK_BREAK: Final = re.compile(
    rf"{_MARK}[^{_END}]*{_END}(?=[ \t]*{_BEGINNING})|(?<=[\\ \t]){_MARK}[^{_END}]*{_END}"
)
_MARKS: Final = re.compile(f"[{_MARK}{_END}]")
_START: Final = re.compile(r"#|~[ \t]|%%|\[[^\[\]\r\n]+\]:")
"""The beginning of a paragraph that some generators read as a heading, definition or comment."""
_MODULE: Final = re.compile(r"(?:import|export)(?=[ \t{*])")
_BREAKS: Final = re.compile(r"[\r\n\v\f]+")
_BLANKS: Final = " \t"
_ADDRESS: Final = re.compile(r"(?:https?|ftp)://[^<>]*\Z")
_GOES_ON: Final = re.compile(r"[.,;:!?'*_~]*[A-Za-z0-9\-/#@$&(+=%]")
_JOINED: Final = re.compile(r"[^\s\x00-\x7f]")
"""What GitHub's extension takes for a part of the address before it, and we do not."""
_DELIMITERS: Final = frozenset({"*", "**", "_", "__", "~", "~~"})
_DELIMITING: Final = {each: re.compile(rf"\{each}+") for each in "^~"} | {"=": re.compile("={2,}")}
_MOST_STEPS: Final = 8
"""Delimiters of one run that are looked past for the characters around it."""


class Context(NamedTuple):
    """Where a translation is written."""

    before: str = "\n"
    """The character before it, and after it."""
    after: str = "\n"
    begins_line: bool = False
    heading: bool = False
    mdx: bool = False
    cell: bool = False
    bracketed: bool = False
    """Whether brackets around or in front of it could end at one of its own."""
    known: str = string.punctuation
    """What a backslash escapes; other characters become references."""


@dataclass(slots=True)
class _Part:
    kind: Literal["text", "open", "close", "single"]
    raw: str
    pair: int = -1
    """Of an `open` and a `close`: where its partner is."""
    place: int = 0
    """Of a text: where it begins in the translation without tags."""

    @property
    def delimits(self) -> bool:
        return self.kind in ("open", "close") and self.raw in _DELIMITERS

    @property
    def breaks(self) -> bool:
        """Whether it begins with a line break."""
        return self.kind == "single" and self.raw.lstrip("\\ ")[:1] in ("\n", "\r")

    @property
    def ends_line(self) -> bool:
        """Whether what follows begins a line."""
        return self.kind == "single" and self.raw.rstrip(" \t>")[-1:] in ("\n", "\r")


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
        self._parts = _parts(line, codes)
        self.holds = _holds(self._parts)
        """Whether Markdown can hold it: one without a letter outside all pairs, with an empty pair
        or with a line break at one of its ends would be read as something else."""
        self._kept = _kept(plain(line), unit) if self.holds else []
        self._escapes = self._all_escapes() if self.holds else []
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
            part.delimits or _ADDRESS.match(part.raw) for part in self._parts if part.kind != "text"
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
        parts = [_Part(each.kind, each.raw, each.pair, each.place) for each in self._parts]
        _choose_delimiters(parts, self._around)
        _separate_addresses(parts, self._around, _GOES_ON)
        if self._unit.extends_addresses:
            _separate_addresses(parts, self._around, _JOINED)
        edges = _Edges(parts, self._around)
        chosen = self._always.union(self.doubtful if places is None else places)
        raws = [part.raw for part in parts]
        return self._joined(self._written(raws, chosen, frozenset(edges.references()), marked=True))

    def _careful(self, plain: str) -> str:
        """Return the plainest spelling without what other readers than ours take for syntax."""
        extends = self._unit.extends_addresses and "://" in plain
        if not extends and "\n" not in plain and "\r" not in plain:
            return plain
        parts = [_Part(each.kind, each.raw, each.pair, each.place) for each in self._parts]
        if extends:
            _separate_addresses(parts, self._around, _JOINED)
        raws = [part.raw for part in parts]
        return self._joined(self._written(raws, self._always, _NOTHING, marked=True))

    def _joined(self, written: str) -> str:
        """Return what is written without the line breaks that could begin another block."""
        return _MARKS.sub("", _BLOCK_BREAK.sub(" ", written)) if _MARK in written else written

    def _start(self) -> frozenset[tuple[int, int]]:
        """Return the first character if generators differ in what it begins, but for the source."""
        if not (self._escapes and self._around.begins_line and self._parts[0].kind == "text"):
            return _NOTHING
        raw = self._parts[0].raw
        if _START.match(raw) is None or self._unit.raw.startswith(raw[0]):
            return _NOTHING
        self._escapes[0][0] = _escape(raw[0], self._around)
        return frozenset({(0, 0)})

    def _own_syntax(self) -> Iterator[tuple[int, int]]:
        """Yield what the dialect takes for syntax and our parser for text, with its escapes."""
        if not (self._escapes and self._unit.syntax):
            return
        raws = [part.raw for part in self._parts]
        starts = list(accumulate(map(len, raws), initial=0))
        for at in own_syntax("".join(raws), self._unit.syntax, self._around):
            index = bisect_right(starts, at) - 1
            if self._parts[index].kind == "text":
                place = at - starts[index]
                self._escapes[index][place] = _escape(raws[index][place], self._around)
                yield index, place

    def _all_escapes(self) -> list[dict[int, str]]:
        raws = "".join(part.raw for part in self._parts)
        paired = "".join(each for each in _PAIRED if raws.count(each) > 1)
        if self._around.bracketed or any(part.raw.endswith("[") for part in self._parts):
            paired += "[]"
        return [
            _escapes(self._parts, index, self._around, paired, self._unit.labels)
            if part.kind == "text"
            else {}
            for index, part in enumerate(self._parts)
        ]

    def _written(
        self,
        raws: list[str],
        chosen: Container[tuple[int, int]],
        references: frozenset[tuple[int, int]],
        *,
        marked: bool = False,
    ) -> str:
        kept = deque(self._kept)
        for index, part in enumerate(self._parts):
            if part.kind == "text":
                escaping = _Escaping(index, self._escapes[index], chosen, references)
                raws[index] = "".join(_with_kept(part, kept, escaping, marked=marked))
        return self._with_labels(raws)

    def _with_labels(self, raws: list[str]) -> str:
        """Return the whole; a link by its own text gets its label only if its text changed."""
        if not self._unit.short_links:
            return "".join(raws)
        for index, part in enumerate(self._parts):
            if part.kind == "close" and part.raw in self._unit.short_links:
                inside = "".join(raws[part.pair + 1 : index])
                closing = self._unit.short_links[part.raw].get(inside)
                if closing is not None:
                    raws[index] = closing
        return "".join(raws)


def _kept(text: str, unit: SourceUnit) -> list[Kept]:
    """Return what a translation keeps of its source's spelling.

    One more dollar than the source has makes a formula of those that were text.
    """
    kept, source = unit.spelling.kept(text), unit.spelling.text
    changed = {each for each in unit.syntax if text.count(each) != source.count(each)}
    return [each for each in kept if text[each.start : each.end] not in changed]


_NOTHING: Final[frozenset[tuple[int, int]]] = frozenset()


_PLAIN: Final = re.compile(
    r"(?!import\b|export\b)[^\W\d_][^\\`*\[\]|~_<&:$%^{}#=\r\n\v\f]*+(?<![ \t!])"
)


class Plain(NamedTuple):
    """A translation without inline codes and without any character that could be syntax."""

    text: str

    @property
    def holds(self) -> bool:
        """Whether Markdown can hold it."""
        return True

    @property
    def is_plain(self) -> bool:
        """Whether it has one way to be written."""
        return True

    @property
    def doubtful(self) -> tuple[tuple[int, int], ...]:
        """Parts and places of the characters that could be read as syntax."""
        return ()

    def plainest(self) -> str:
        """Return it as it is."""
        return self.text

    def escaped(self, _places: Iterable[tuple[int, int]] | None = None) -> str:
        """Return it as it is."""
        return self.text


def spelled(
    text: str, codes: Sequence[InlineCode], around: Context, unit: SourceUnit
) -> Spelled | Plain:
    """Return how a translation is spelled. Raises ValueError if tags do not fit."""
    if not codes and unit.spelling.is_as_it_is and _PLAIN.fullmatch(text):
        return Plain(text)
    return Spelled(text, codes, around, unit)


class SourceUnit(NamedTuple):
    """What the writing of a unit needs of its source."""

    spelling: Spelling
    labels: Collection[str]
    """Of the link definitions of the document, as labels are compared."""
    short_links: Mapping[str, Mapping[str, str]]
    """Of links whose text is their label: per end that a translation needs, such as `][label]`, the
    source's text and how the link ended there: `]` or `][]`."""
    raw: str = ""
    """Its text in the source, as it is spelled there."""
    extends_addresses: bool = False
    """Whether readers may take letters behind a bare address for a part of it."""
    syntax: str = ""
    """Characters that are syntax in its dialect, though our parser takes them for text."""


class _Escaping(NamedTuple):
    """How the characters of a text are escaped."""

    part: int
    escapes: Mapping[int, str]
    chosen: Container[tuple[int, int]]
    references: frozenset[tuple[int, int]]

    def spelled(self, text: str, start: int, end: int) -> str:
        """Return a part of the text with the chosen characters escaped."""
        if not self.escapes and not self.references:
            return text[start:end]
        return "".join(self._character(text[place], place) for place in range(start, end))

    def _character(self, character: str, place: int) -> str:
        if (self.part, place) in self.references:
            return reference(character)
        if place in self.escapes and (self.part, place) in self.chosen:
            return self.escapes[place]
        return character


def _with_kept(
    part: _Part, kept: deque[Kept], escaping: _Escaping, *, marked: bool
) -> Iterator[str]:
    """Yield a text with what it keeps of its source's spelling; line breaks between marks."""
    place, end = part.place, part.place + len(part.raw)
    while kept and kept[0].start < end:
        each = kept.popleft()
        if each.start < place or each.end > end:
            continue
        yield escaping.spelled(part.raw, place - part.place, each.start - part.place)
        is_break = marked and ("\n" in each.raw or "\r" in each.raw)
        yield f"{_MARK}{each.raw}{_END}" if is_break else each.raw
        place = each.end
    yield escaping.spelled(part.raw, place - part.place, end - part.place)


def escaped_lookalike(text: str) -> str:
    """Return the Markdown of a text that looks like one of our own tags."""
    return "\\" + text


def _parts(text: str, codes: Sequence[InlineCode]) -> list[_Part]:
    parts: list[_Part] = []
    opened: list[tuple[int, str]] = []
    place = 0
    for piece in pieces(text, codes):
        if isinstance(piece, str):
            parts.append(_Part("text", piece, place=place))
            place += len(piece)
        elif isinstance(piece, Single):
            parts.append(_Part("single", piece.code))
        elif isinstance(piece, Opening):
            opened.append((len(parts), piece.closing))
            parts.append(_Part("open", piece.opening))
        else:
            index, closing = opened.pop()
            parts[index].pair = len(parts)
            parts.append(_Part("close", closing, index))
    return parts


def _holds(parts: Sequence[_Part]) -> bool:
    """Return whether Markdown reads these parts as they are."""
    if not parts or parts[0].breaks or parts[-1].ends_line:
        return False
    for index, part in enumerate(parts[1:]):
        before = parts[index]
        if part.breaks and before.ends_line:
            return False
        if before.kind == "open" and part.kind == "close" and not before.raw.startswith("<"):
            return False
    return _has_outer_letter(parts)


def _has_outer_letter(parts: Sequence[_Part]) -> bool:
    index = 0
    while index < len(parts):
        if parts[index].kind == "open":
            index = parts[index].pair
        elif parts[index].kind == "text" and has_letters(parts[index].raw):
            return True
        index += 1
    return False


def _choose_delimiters(parts: list[_Part], around: Context) -> None:
    """Write `*` for `_` inside words, and `_` beside the end of another pair with `*`."""
    for index, part in enumerate(parts):
        if part.kind != "open" or part.raw not in ("*", "**", "_", "__"):
            continue
        if parts[part.pair].raw != part.raw:  # attributes are joined to it
            continue
        before = parts[index - 1].raw[-1:] if index else around.before
        beyond = part.pair + 1
        after = parts[beyond].raw[:1] if beyond < len(parts) else around.after
        raw = part.raw
        if before.isalnum() or after.isalnum():
            raw = "*" * len(raw)
        elif index and parts[index - 1].kind == "close" and before == raw[0]:
            raw = ("_" if before == "*" else "*") * len(raw)
        part.raw = parts[part.pair].raw = raw


def _escapes(
    parts: Sequence[_Part], index: int, around: Context, paired: str, labels: Collection[str]
) -> dict[int, str]:
    """Return the spelling of each character of a text that could be read as syntax."""
    text = parts[index].raw
    before = parts[index - 1] if index else None
    after = parts[index + 1] if index + 1 < len(parts) else None
    found = {place: _escape(text[place], around) for place in _syntax(text, around, paired, labels)}
    if after is not None and text.endswith("!") and after.raw.startswith("["):
        found[len(text) - 1] = "\\!"
    if before is not None and before.raw.endswith("]") and text[0] in ":(":
        found[0] = _escape(text[0], around)
    if (before is None and around.begins_line) or (before is not None and before.ends_line):
        found |= _line_escapes(text, around)
    if around.heading:
        # Attributes at the end of a heading: no backslash prevents them.
        found |= {place: reference("{") for place, each in enumerate(text) if each == "{"}
        if after is None and text.endswith("#"):
            found[len(text) - 1] = "\\#"
    if after is not None and after.breaks:
        end = len(text.rstrip(_BLANKS))
        found |= {place: reference(text[place]) for place in range(end, len(text))}
    return found


def _syntax(text: str, around: Context, paired: str, labels: Collection[str]) -> Iterator[int]:
    """Yield the places of characters that could be syntax wherever they stand."""
    for match in (_SYNTAX_MDX if around.mdx else _SYNTAX).finditer(text):
        yield match.start()
    for each in paired + "|" * around.cell:
        yield from _places(each, text)
    for match in _BRACKETED.finditer(text) if labels else ():
        if normalized(match[1]) in labels:
            yield from (match.start(), match.end() - 1)


def own_syntax(text: str, syntax: str, around: Context) -> Iterator[int]:
    """Yield the places of characters that delimit something in their dialect.

    A bar makes a table of a paragraph, a second dollar a formula, a backslash at its end no
    heading.
    """
    if "|" in syntax and not (around.heading or around.cell):
        yield from _places("|", text)
    if "$" in syntax and text.count("$") > 1:
        yield from _places("$", text)
    if "\\" in syntax and around.heading:
        yield from range(len(text.rstrip("\\")), len(text))
    for each, runs in _DELIMITING.items():
        if each in syntax and each in text:
            yield from _delimiters(list(runs.finditer(text)), text)


def _delimiters(runs: Sequence[re.Match[str]], text: str) -> Iterator[int]:
    """Yield the places of runs between the first that could open and the last that could close."""
    opening = [run for run in runs if text[run.end() : run.end() + 1].strip()]
    closing = [run for run in runs if text[max(0, run.start() - 1) : run.start()].strip()]
    if opening and closing and opening[0].start() < closing[-1].start():
        for run in runs:
            if opening[0].start() <= run.start() <= closing[-1].start():
                yield from range(*run.span())


def _places(character: str, text: str) -> Iterator[int]:
    place = text.find(character)
    while place >= 0:
        yield place
        place = text.find(character, place + 1)


def _line_escapes(text: str, around: Context) -> dict[int, str]:
    """Return what begins a block, and blanks that Markdown drops at the start of a line."""
    blanks = len(text) - len(text.lstrip(_BLANKS))
    if blanks:
        return {place: reference(text[place]) for place in range(blanks)}
    if around.mdx and _MODULE.match(text):
        return {0: reference(text[0])}
    found = _LINE_START.match(text)
    if found is None:
        return {}
    place = found.start() if found["mark"] else found.start("dot")
    return {place: _escape(text[place], around)}


def _escape(character: str, around: Context) -> str:
    """Return the spelling of a character that is text; templates know no backslash."""
    is_known = character in around.known and (around.mdx or character != "{")
    return "\\" + character if is_known else reference(character)


def _separate_addresses(parts: Sequence[_Part], around: Context, joined: re.Pattern[str]) -> None:
    """Put a bare address into `<>` if what follows would be read as a part of it."""
    for index, part in enumerate(parts):
        if around.mdx or part.kind != "single" or not _ADDRESS.match(part.raw):
            continue
        after = parts[index + 1].raw if index + 1 < len(parts) else around.after
        if joined.match(after):
            part.raw = f"<{part.raw}>"


@dataclass(slots=True)
class _Edges:
    """The characters around delimiters, some as references, so that these open or close there.

    CommonMark lets `**` open before punctuation only after a blank or punctuation, and the other
    way round for closing: `です**「重要」**です` has no emphasis. A character reference begins and
    ends with punctuation.
    """

    parts: Sequence[_Part]
    around: Context
    found: set[tuple[int, int]] = field(default_factory=set)

    def references(self) -> set[tuple[int, int]]:
        """Return the parts and places of the characters to be written as references."""
        for index, part in enumerate(self.parts):
            if part.delimits:
                self._flank(index)
        return self.found

    def _flank(self, index: int) -> None:
        step = 1 if self.parts[index].kind == "open" else -1
        inner, outer = self._neighbour(index, step), self._neighbour(index, -step)
        character = self._edge(inner, step)
        if character.isspace():
            self._refer(inner, step)
            character = "&"
        if is_punctuation(character) and _is_word(self._edge(outer, -step)):
            self._refer(outer, -step)

    def _neighbour(self, index: int, step: int) -> int:
        """Return the index of the next part that is not a delimiter of the same run."""
        character = self.parts[index].raw[0]
        for _ in range(_MOST_STEPS):
            index += step
            inside = 0 <= index < len(self.parts)
            if not inside or not (
                self.parts[index].delimits and self.parts[index].raw[0] == character
            ):
                break
        return index

    def _edge(self, index: int, step: int) -> str:
        """Return the character of a part that is next to a delimiter `step` before it."""
        if index < 0:
            return self.around.before
        if index >= len(self.parts):
            return self.around.after
        place = 0 if step > 0 else len(self.parts[index].raw) - 1
        return "&" if (index, place) in self.found else self.parts[index].raw[place]

    def _refer(self, index: int, step: int) -> None:
        """Write the character next to a delimiter as a reference."""
        if 0 <= index < len(self.parts) and self.parts[index].kind == "text":
            self.found.add((index, 0 if step > 0 else len(self.parts[index].raw) - 1))


def is_punctuation(character: str) -> bool:
    """Return whether CommonMark takes a character for punctuation."""
    return unicodedata.category(character)[0] in "PS"


def _is_word(character: str) -> bool:
    return not character.isspace() and not is_punctuation(character)
