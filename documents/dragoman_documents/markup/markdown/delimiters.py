"""Markup around the texts of a translation, spelled so that Markdown reads it as markup there."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman_documents.markup.markdown.escaping import Context
from dragoman_documents.markup.markdown.parts import ADDRESS, TextPart

GOES_ON: Final = re.compile(r"[.,;:!?'*_~]*[A-Za-z0-9\-/#@$&(+=%]")
JOINED: Final = re.compile(r"[^\s\x00-\x7f]")
"""What GitHub's extension takes for a part of the address before it, and we do not."""
_MOST_STEPS: Final = 8
"""Delimiters of one run that are looked past for the characters around it."""


def choose_delimiters(parts: list[TextPart], around: Context) -> None:
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


def separate_addresses(parts: Sequence[TextPart], around: Context, joined: re.Pattern[str]) -> None:
    """Put a bare address into `<>` if what follows would be read as a part of it."""
    for index, part in enumerate(parts):
        if around.mdx or part.kind != "single" or not ADDRESS.match(part.raw):
            continue
        after = parts[index + 1].raw if index + 1 < len(parts) else around.after
        if joined.match(after):
            part.raw = f"<{part.raw}>"


@dataclass(slots=True)
class Edges:
    """The characters around delimiters, some as references, so that these open or close there.

    CommonMark lets `**` open before punctuation only after a blank or punctuation, and the other
    way round for closing: `です**「重要」**です` has no emphasis. A character reference begins and
    ends with punctuation.
    """

    parts: Sequence[TextPart]
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
