"""A translation in parts: texts, and the Markdown of its inline codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import OpeningCode, SingleCode, pieces
from dragoman_text.spans import has_letters

ADDRESS: Final = re.compile(r"(?:https?|ftp)://[^<>]*\Z")
_BRACKET: Final = re.compile(r"[\[\]]")
DELIMITERS: Final = frozenset({"*", "**", "_", "__", "~", "~~"})


@dataclass(slots=True)
class TextPart:
    """A text of a translation, or the Markdown of one of its inline codes."""

    kind: Literal["text", "open", "close", "single"]
    raw: str
    pair: int = -1
    """Of an `open` and a `close`: where its partner is."""
    place: int = 0
    """Of a text: where it begins in the translation without tags."""

    @property
    def delimits(self) -> bool:
        """Whether it is a run of characters that delimits something only in some places."""
        return self.kind in ("open", "close") and self.raw in DELIMITERS

    @property
    def breaks(self) -> bool:
        """Whether it begins with a line break."""
        return self.kind == "single" and self.raw.lstrip("\\ ")[:1] in ("\n", "\r")

    @property
    def ends_line(self) -> bool:
        """Whether what follows begins a line."""
        return self.kind == "single" and self.raw.rstrip(" \t>")[-1:] in ("\n", "\r")


def parts_of(text: str, codes: Sequence[InlineCode]) -> list[TextPart]:
    """Return the parts of a translation. Raises ValueError if tags do not fit."""
    parts: list[TextPart] = []
    opened: list[tuple[int, str]] = []
    place = 0
    for piece in pieces(text, codes):
        if isinstance(piece, str):
            parts.append(TextPart("text", piece, place=place))
            place += len(piece)
        elif isinstance(piece, SingleCode):
            parts.append(TextPart("single", piece.code))
        elif isinstance(piece, OpeningCode):
            opened.append((len(parts), piece.closing))
            parts.append(TextPart("open", piece.opening))
        else:
            index, closing = opened.pop()
            parts[index].pair = len(parts)
            parts.append(TextPart("close", closing, index))
    return parts


def glued(before: str, after: str) -> bool:
    """Return whether two codes side by side would be read as another one: `` `a``b` ``."""
    return before[-1:] == after[:1] and after[:1] in ("`", "$")


def holds(parts: Sequence[TextPart], *, label: bool = False) -> bool:
    """Return whether Markdown reads these parts as they are; a wiki link's label has no bracket."""
    if not parts or parts[0].breaks or parts[-1].ends_line:
        return False
    for index, part in enumerate(parts[1:]):
        before = parts[index]
        singles = part.kind == before.kind == "single"
        if (part.breaks and before.ends_line) or (singles and glued(before.raw, part.raw)):
            return False
        if before.raw.startswith("[[") and before.kind == "open" and _BRACKET.search(part.raw):
            return False
        if before.kind == "open" and part.kind == "close" and not before.raw.startswith("<"):
            return False
    if label and any(_BRACKET.search(part.raw) for part in parts if part.kind == "text"):
        return False
    return _has_outer_letter(parts)


def _has_outer_letter(parts: Sequence[TextPart]) -> bool:
    index = 0
    while index < len(parts):
        if parts[index].kind == "open":
            index = parts[index].pair
        elif parts[index].kind == "text" and has_letters(parts[index].raw):
            return True
        index += 1
    return False
