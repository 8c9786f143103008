"""Paragraphs of Office Open XML: a translation in the elements with text of its source.

Where its tags come in the order of the source, the text between two of them is put into the
elements that hold the text there, by their shares. All else stays as it is: runs and their ids,
proofing marks, attributes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dragoman_documents.xml.slots import Inner
from dragoman_documents.xml.spelling import keeping
from dragoman_documents.xml.tree import XmlElement, escaped, text_of

_SPACE: Final = b' xml:space="preserve">'


class Names(NamedTuple):
    """Names of elements as the file spells them. Without a run, texts stand by themselves."""

    run: bytes | None
    text: bytes
    spaced: bool = True
    """Whether texts need `xml:space` to keep their blanks."""
    read: Callable[[bytes], str] = text_of
    """Decodes the content of a text."""
    write: Callable[[str], str] = escaped
    """Spells a text as the content of its element."""


class ParagraphPlaces(NamedTuple):
    """Where the text of a paragraph is."""

    start: int
    end: int
    stretches: tuple[tuple[XmlElement, ...], ...]
    """The elements with text before, between and behind the tags."""
    edges: tuple[XmlElement, ...] = ()
    """Elements at the ends whose run would be no part of the segment if it were blank."""
    readings: tuple[XmlElement, ...] = ()
    """Phonetic runs."""


class _Text(NamedTuple):
    """An element, its text, and its new text."""

    element: XmlElement
    source: str
    text: str

    def needs_space(self) -> bool:
        """Return whether it has a blank at an end where its source has none."""
        ends = ((self.text[:1], self.source[:1]), (self.text[-1:], self.source[-1:]))
        return any(new.isspace() and not old.isspace() for new, old in ends)


class ParagraphSource(NamedTuple):
    """A paragraph as it stands in its part."""

    data: bytes
    places: ParagraphPlaces
    names: Names


def filled(source: ParagraphSource, texts: Sequence[str], inner: Inner) -> bytes | None:
    """Return a paragraph with new texts before, between and behind its tags.

    None if they do not fit: where there is text but no element, or where a run would be read as
    something else.
    """
    found: list[_Text] = []
    for stretch, text in zip(source.places.stretches, texts, strict=True):
        if text and not stretch:
            return None
        sources = [source.names.read(source.data[each.content : each.stop]) for each in stretch]
        found += map(_Text, stretch, sources, _parts(text, sources))
    edges = set(source.places.edges)
    if any(each.text.isspace() and each.element in edges for each in found):
        return None
    spaced = source.names.spaced
    tags = [_opening(source.data, each, spaced=spaced) for each in found]
    opened = [tag for tag in tags if tag is not None]
    return _written(source, found, opened, inner) if len(opened) == len(tags) else None


def _written(
    source: ParagraphSource, found: Sequence[_Text], tags: Sequence[bytes], inner: Inner
) -> bytes:
    spell = _spelling(source, found)
    changes = [(each.start, each.end, b"") for each in _lost(source.places.readings, found)]
    changes += (
        (each.element.start, each.element.stop, tag + spell(each.text).encode())
        for each, tag in zip(found, tags, strict=True)
    )
    parts: list[bytes] = []
    position = source.places.start
    for start, end, content in sorted(changes):
        parts += (inner(position, start), content)
        position = end
    return b"".join((*parts, inner(position, source.places.end)))


def _opening(data: bytes, text: _Text, *, spaced: bool) -> bytes | None:
    """Return the start tag of an element; None if its text does not fit in it."""
    element = text.element
    tag = data[element.start : element.content]
    if element.content == element.end:
        return None if text.text else tag
    if not spaced or not text.needs_space() or b"preserve" in tag:
        return tag
    return None if b"xml:space" in tag else tag[:-1] + _SPACE


def _spelling(source: ParagraphSource, found: Sequence[_Text]) -> Callable[[str], str]:
    names = source.names
    raws = [source.data[each.element.content : each.element.stop].decode() for each in found]
    text = "".join(each.text for each in found)
    return keeping(raws, lambda raw: names.read(raw.encode()), names.write, text)


def _lost(readings: Sequence[XmlElement], found: Sequence[_Text]) -> list[XmlElement]:
    """Return the phonetic runs of characters that are no longer where they were."""
    if not readings:
        return []
    before, now = (
        "".join(texts).encode("utf-16-le", "surrogatepass")
        for texts in ((each.source for each in found), (each.text for each in found))
    )
    lost: list[XmlElement] = []
    for each in readings:
        start, end = (2 * _number(each.attributes.get(name, "")) for name in ("sb", "eb"))
        if before[start:end] != now[start:end]:
            lost.append(each)
    return lost


def _number(digits: str) -> int:
    return int(digits) if digits.isdecimal() and len(digits) < 9 else 0


def _parts(text: str, sources: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a text in the places of those of its source, by their shares.

    What begins or ends like the source is parted as the source; elsewhere no word is parted.
    """
    whole = "".join(sources)
    if len(sources) < 2 or not whole:
        yield from (text, *[""] * (len(sources) - 1)) if sources else ()
        return
    boundaries = _Boundaries(text, whole)
    place = last = 0
    for source in sources[:-1]:
        place += len(source)
        at = boundaries.at(place, last)
        yield text[last:at]
        last = at
    yield text[last:]


class _Boundaries:
    """Where a text is parted as its source."""

    def __init__(self, text: str, whole: str) -> None:
        self._text = text
        self._whole = whole
        self._same = _same(text, whole)
        rest = min(len(text), len(whole)) - self._same
        ends = (each[len(each) - rest :][::-1] for each in (text, whole))
        self._same_end = _same(*ends) if rest else 0
        self._words = [index + 1 for index, each in enumerate(text) if each == " "]

    def at(self, place: int, last: int) -> int:
        """Return the place behind `last` for one of the source."""
        whole, text = len(self._whole), len(self._text)
        if place < self._same or place == self._same == min(whole, text):
            return place
        if whole - place < self._same_end or place == whole:
            return text - (whole - place)
        ideal = place * text / whole
        index = bisect_left(self._words, ideal)
        near = (each for each in self._words[max(0, index - 1) : index + 1])
        allowed = [each for each in near if last < each <= text - self._same_end]
        return min((last, *allowed), key=lambda each: abs(each - ideal))


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return next(index for index in range(most) if one[index] != other[index])
