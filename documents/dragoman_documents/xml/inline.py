"""Elements of text and markup mixed, as in ODF and XLIFF, to a segment with inline codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import (
    ClosingCode,
    OpeningCode,
    Piece,
    SingleCode,
    composed,
    pieces,
)
from dragoman_documents.shares import between_tags
from dragoman_documents.spelling import Spelling
from dragoman_documents.xml.filling import Stretches, Within
from dragoman_documents.xml.manner import Manner, is_legal, joined, trimmed, xml_manner
from dragoman_documents.xml.slots import Inner, around, shown
from dragoman_documents.xml.tree import XmlElement, escaped, framed, text_of

_NO_TEXT: Final = re.compile(
    rb"(<!\[CDATA\[.*?\]\]>)|<!--.*?-->|<\?.*?\?>"
    rb"|&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z_:][^;&<\s]{0,99};",
    re.DOTALL,
)
"""CDATA, which is text; comments, instructions and entities of the file, which are not."""
_TEXT: Final = "\0"
"""Marks a code that is text and no markup; XML cannot hold a NUL."""


def _nothing(_: XmlElement) -> bool:
    return False


def _no_core(_: XmlElement) -> XmlElement | None:
    return None


@dataclass(frozen=True, slots=True)
class InlineRules:
    """Which elements inside a text are what. All others are single codes."""

    pairs: frozenset[str] = frozenset()
    """Elements whose content belongs to the text."""
    core: Callable[[XmlElement], XmlElement | None] = _no_core
    """The element with the text of one that is a pair around it, as the base of a ruby is."""
    stays: Callable[[XmlElement], bool] = _nothing
    """Whether one of the pairs is a single code all the same."""
    transparent: Callable[[XmlElement], bool] = _nothing
    """Whether the tags of a pair mean nothing; they are lost when the text is written."""
    read: Callable[[bytes], str] = text_of
    """Decodes text between markup."""
    write: Callable[[str], str] = escaped
    """Spells text for its place."""
    write_ends: Callable[[str], str] = escaped
    """Spells the blanks before and after the text."""
    manner: Callable[[str], Manner] | None = None
    """Tells how a source is spelled; without it that of XML, if `read` is its."""
    begin: Callable[[str], str] = str
    """Guards what a text may not begin with."""

    @property
    def source_manner(self) -> Callable[[str], Manner] | None:
        """Return what tells how a source is spelled; None if nothing does."""
        return self.manner or (xml_manner if self.read is text_of else None)


class Range(NamedTuple):
    """Markup that stays as it is."""

    start: int
    end: int


class Tags(NamedTuple):
    """The tags of an element around text."""

    opening: bytes
    closing: bytes


class Mixed(NamedTuple):
    """The text of an element, and how its translation is written."""

    text: str
    codes: tuple[InlineCode, ...]
    writer: MixedWriter


_Runs = tuple[tuple[int, int], ...]
"""Where text is, without the markup between."""
_Codes = tuple[Range | Tags | str, ...]
"""Per inline code what it stands for; a text that looks like one of our tags is a code too."""


def mixed(data: bytes, element: XmlElement, rules: InlineRules) -> Mixed:
    """Return the text and codes of an element's content."""
    only = _only_text(data, element, rules)
    stretches = Stretches()
    if only is None:
        reading = _Reading(data, rules, stretches)
        reading.content(element)
        text, shown_codes, codes, runs = _with_codes(reading)
    else:
        text, shown_codes, codes, runs = only, (), (), ((element.content, element.stop),)
    core = text.strip()
    start = len(text) - len(text.lstrip())
    within = stretches.within(core, (element.content, element.stop))
    writer = MixedWriter(data, codes, rules, text[:start], text[start + len(core) :], runs, within)
    return Mixed(core, shown_codes, writer)


def _only_text(data: bytes, element: XmlElement, rules: InlineRules) -> str | None:
    """Return a text without markup, references or what looks like a tag: most texts are so."""
    raw = data[element.content : element.stop]
    if element.children or b"<" in raw or b"&" in raw:
        return None
    text = rules.read(raw)
    return None if "<" in text else text


def _with_codes(reading: _Reading) -> tuple[str, tuple[InlineCode, ...], _Codes, _Runs]:
    text, found = composed(reading.pieces, _marked)
    runs = tuple(reading.runs)
    if len(found) == len(reading.codes):
        return text, found, tuple(reading.codes), runs
    markup = iter(reading.codes)
    codes = [code.opening[1:] if code.opening[:1] == _TEXT else next(markup) for code in found]
    shown_codes = (
        InlineCode(code) if isinstance(code, str) else each
        for each, code in zip(found, codes, strict=True)
    )
    return text, tuple(shown_codes), tuple(codes), runs


def _marked(text: str) -> str:
    """Return a text that looks like one of our tags with a mark that no markup has."""
    return _TEXT + text


def _bare_ends(spelled: str) -> tuple[bool, bool]:
    """Return whether a spelled text begins and ends with a literal blank."""
    return spelled[:1].isspace(), spelled[-1:].isspace()


@dataclass(slots=True)
class _Reading:
    """The content of an element as it is read."""

    data: bytes
    rules: InlineRules
    stretches: Stretches
    pieces: list[Piece] = field(default_factory=list[Piece])
    codes: list[Range | Tags] = field(default_factory=list[Range | Tags])
    runs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def content(self, element: XmlElement) -> None:
        """Add what an element contains."""
        end = element.content
        for each in element.children:
            self._text(end, each.start)
            self._child(each)
            end = each.end
        self._text(end, element.stop)

    def _child(self, element: XmlElement) -> None:
        core = self.rules.core(element)
        if core is not None and core.content < core.end:
            self._pair(framed(element, core))
        elif element.content == element.end or not self._is_pair(element):
            self._single(element.start, element.end)
        elif self.rules.transparent(element):
            self.stretches.is_parted = True
            self.content(element)
        else:
            self._pair(element)

    def _is_pair(self, element: XmlElement) -> bool:
        return element.name in self.rules.pairs and not self.rules.stays(element)

    def _pair(self, element: XmlElement) -> None:
        opening = self.data[element.start : element.content]
        closing = self.data[element.stop : element.end]
        self.codes.append(Tags(opening, closing))
        self.pieces.append(OpeningCode(shown(opening.decode()), closing.decode()))
        self.stretches.end()
        self.content(element)
        self.pieces.append(ClosingCode())
        self.stretches.end()

    def _text(self, start: int, end: int) -> None:
        """Add text, with comments, instructions and entities in it as codes."""
        if start == end:
            self.stretches.last.append((start, end))
            return
        raw = self.data[start:end]
        last = 0
        for match in _NO_TEXT.finditer(raw) if b"<" in raw or b"&" in raw else ():
            if match[1] is not None:
                continue
            self._run(start + last, start + match.start())
            self._single(start + match.start(), start + match.end())
            last = match.end()
        self._run(start + last, end)

    def _run(self, start: int, end: int) -> None:
        self.runs.append((start, end))
        self.stretches.last.append((start, end))
        self.pieces.append(self.rules.read(self.data[start:end]))

    def _single(self, start: int, end: int) -> None:
        self.codes.append(Range(start, end))
        self.pieces.append(SingleCode(shown(self.data[start:end].decode())))
        self.stretches.end()


class MixedWriter(NamedTuple):
    """Writes the content of one element."""

    data: bytes
    codes: _Codes
    rules: InlineRules
    lead: str = ""
    trail: str = ""
    runs: _Runs = ()
    within: Within | None = None

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the content of the element."""
        marks = tuple(
            InlineCode(str(index), "" if isinstance(code, Tags) else None)
            for index, code in enumerate(self.codes)
        )
        found = list(pieces(text, marks))
        if self.within is not None:
            between, tags = between_tags(found, self._text_of, self.lead, self.trail)
            if tags == between_tags(pieces(self.within.text, marks), self._text_of)[1]:
                return b"".join(self.within.filled(self.data, between, inner, self.rules.write))
        texts = self._texts(text, found)
        return b"".join(self._parts(found, texts, inner))

    def _text_of(self, single: SingleCode) -> str | None:
        code = self.codes[int(single.code)]
        return code if isinstance(code, str) else None

    def _parts(self, found: Sequence[Piece], texts: Sequence[str], inner: Inner) -> Iterator[bytes]:
        opened: list[bytes] = []
        spelled = iter(texts)
        yield next(spelled).encode()
        for piece in found:
            match piece:
                case str():
                    yield next(spelled).encode()
                case ClosingCode():
                    yield opened.pop()
                case OpeningCode(index) | SingleCode(index):
                    yield self._code(self.codes[int(index)], inner, opened)
        yield next(spelled).encode()

    def _texts(self, text: str, found: Sequence[Piece]) -> list[str]:
        """Return the texts of a translation as they are spelled, with the blanks around them."""
        texts = [piece for piece in found if isinstance(piece, str)]
        manner = self.rules.source_manner
        if manner is not None:
            raws = [self.data[start:end].decode() for start, end in self.runs]
            own = joined(raws, manner)
            kept = self._kept(text, texts, own) or self._kept_whole(text, found, own)
            if kept is not None:
                return self._begun(kept, "".join(raws))
        ends = map(self.rules.write_ends, (self.lead, self.trail))
        return [next(ends), *map(self.rules.write, texts), next(ends)]

    def _kept(self, text: str, texts: Sequence[str], manner: Manner) -> list[str] | None:
        """Return the texts spelled as their source; None if they would not mean the same."""
        held = trimmed(manner.pieces, self.lead, self.trail)
        if held is None:
            return None
        lead, core, trail = held
        keeping = Spelling(core, manner.write).keeping(text)
        found = [manner.opening + lead, *map(keeping, texts), trail + manner.closing]
        return found if self._means(found, [self.lead, *texts, self.trail]) else None

    def _kept_whole(self, text: str, found: Sequence[Piece], manner: Manner) -> list[str] | None:
        """Return what `_kept` does where a blank at an end and a letter are one in the source."""
        texts = [piece for piece in found if isinstance(piece, str)]
        if any(end and not isinstance(piece, str) for end, piece in (
            (self.lead, found[0]), (self.trail, found[-1])
        )):  # fmt: skip
            return None
        texts[0] = self.lead + texts[0]
        texts[-1] += self.trail
        keeping = Spelling(manner.pieces, manner.write).keeping(self.lead + text + self.trail)
        spelled = [manner.opening, *map(keeping, texts), manner.closing]
        if _bare_ends("".join(spelled)) != _bare_ends("".join(raw for _, raw in manner.pieces)):
            return None  # blanks at the ends of a document's text may count for nothing
        return spelled if self._means(spelled, ["", *texts, ""]) else None

    def _begun(self, texts: list[str], raw: str) -> list[str]:
        """Return spelled texts that begin like no reference, unless their source does."""
        if not texts[0] and self.rules.begin(raw) == raw:
            texts[1] = self.rules.begin(texts[1])
        return texts

    def _means(self, spelled: Sequence[str], meant: Sequence[str]) -> bool:
        """Return whether the document reads texts as they are."""
        if not self.codes:
            spelled, meant = ["".join(spelled)], ["".join(meant)]
        pairs = zip(spelled, meant, strict=True)
        return all(
            is_legal(each) and self.rules.read(each.encode()) == text for each, text in pairs
        )

    def _code(self, code: Range | Tags | str, inner: Inner, opened: list[bytes]) -> bytes:
        match code:
            case str():
                return self._text(code)
            case Tags(opening, closing):
                opened.append(closing)
                return opening
            case Range(start, end):
                return inner(start, end)

    def _text(self, text: str) -> bytes:
        return self.rules.write(text).encode()

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the codes and the blanks around the text, whatever the order of the codes.

        A NUL stands between them, because XML cannot hold one.
        """
        codes = [self._fixed(each, ranges) for each in self.codes if not isinstance(each, str)]
        return "\0".join((self.lead, self.trail, *sorted(codes)))

    def _fixed(self, code: Range | Tags, ranges: Sequence[tuple[int, int]]) -> str:
        if isinstance(code, Tags):
            return (code.opening + code.closing).decode()
        return around(self.data, code.start, code.end, ranges)
