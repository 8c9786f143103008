"""A translation in as many parts as its source has, by their shares."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from dragoman_documents.inline_codes import Piece, SingleCode


def between_tags(
    given: Iterable[Piece],
    text_of: Callable[[SingleCode], str | None],
    lead: str = "",
    trail: str = "",
) -> tuple[list[str], list[Piece]]:
    """Return the texts before, between and behind the tags of a translation, and the tags.

    `text_of` returns the text that a single code stands for, None if it is a tag. The texts begin
    with `lead` and end with `trail`.
    """
    texts: list[str] = [lead]
    tags: list[Piece] = []
    for piece in given:
        text = text_of(piece) if isinstance(piece, SingleCode) else piece
        if isinstance(text, str):
            texts[-1] += text
        else:
            tags.append(piece)
            texts.append("")
    texts[-1] += trail
    return texts, tags


def parts(text: str, sources: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a text in the places of those of its source, by their shares.

    What begins or ends like the source is parted as the source; elsewhere no word is parted.
    """
    whole = "".join(sources)
    if len(sources) < 2 or not whole:
        yield from (text, *[""] * (len(sources) - 1)) if sources else ()
        return
    boundaries = Boundaries(text, whole)
    place = last = 0
    for source in sources[:-1]:
        place += len(source)
        at = boundaries.at(place, last)
        yield text[last:at]
        last = at
    yield text[last:]


class Boundaries:
    """Where a text is parted as its source."""

    def __init__(self, text: str, whole: str) -> None:
        self._text = text
        self._whole = whole
        self._same = _same(text, whole)
        rest = min(len(text), len(whole)) - self._same
        ends = (each[len(each) - rest :][::-1] for each in (text, whole))
        self._same_end = _same(*ends) if rest else 0

    @cached_property
    def _words(self) -> list[int]:
        return [index + 1 for index, each in enumerate(self._text) if each == " "]

    def same(self, place: int) -> int | None:
        """Return the place between the same characters as one of the source; None without one."""
        whole, text = len(self._whole), len(self._text)
        if place < self._same or place == self._same == min(whole, text):
            return place
        return text - (whole - place) if whole - place < self._same_end or place == whole else None

    def at(self, place: int, last: int) -> int:
        """Return the place behind `last` for one of the source."""
        same = self.same(place)
        if same is not None:
            return same
        ideal = place * len(self._text) / len(self._whole)
        index = bisect_left(self._words, ideal)
        near = self._words[max(0, index - 1) : index + 1]
        allowed = [each for each in near if last < each <= len(self._text) - self._same_end]
        found = min((last, *allowed), key=lambda each: abs(each - ideal))
        return found - (found > last and self._whole[place] == " ")


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return next(index for index in range(most) if one[index] != other[index])
