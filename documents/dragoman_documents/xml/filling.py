"""Texts between tags that mean nothing, such as spans of revisions, which stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dragoman_documents.shares import parts
from dragoman_documents.xml.slots import Inner
from dragoman_documents.xml.spelling import keeping
from dragoman_documents.xml.tree import content_of

Place = tuple[int, int]


class Within(NamedTuple):
    """The content of an element in which such tags stand."""

    text: str
    """Without blanks at its ends."""
    place: Place
    stretches: tuple[tuple[Place, ...], ...]
    """Places of text before, between and behind the other tags."""

    def filled(
        self, data: bytes, texts: Sequence[str], inner: Inner, write: Callable[[str], str]
    ) -> Iterator[bytes]:
        """Yield the content with other texts in its places, by their shares."""
        places = [each for stretch in self.stretches for each in stretch]
        raws = [data[start:end].decode() for start, end in places]
        sources = map(content_of, raws)
        new = [
            part
            for text, stretch in zip(texts, self.stretches, strict=True)
            for part in parts(text, [next(sources) for _ in stretch])
        ]
        spell = keeping(raws, content_of, write, "".join(texts))
        position = self.place[0]
        for (start, end), part in zip(places, new, strict=True):
            yield inner(position, start)
            yield spell(part).encode()
            position = end
        yield inner(position, self.place[1])


@dataclass(slots=True)
class Stretches:
    """Where the texts of an element are, as they are read."""

    is_parted: bool = False
    """Whether tags that mean nothing stand between them."""
    done: list[tuple[Place, ...]] = field(default_factory=list[tuple[Place, ...]])
    last: list[Place] = field(default_factory=list[Place])

    def end(self) -> None:
        """Note a tag."""
        self.done.append(tuple(self.last))
        self.last.clear()

    def within(self, text: str, place: Place) -> Within | None:
        """Return the content of an element; None if no such tags stand in it."""
        if not self.is_parted:
            return None
        return Within(text, place, (*self.done, tuple(self.last)))
