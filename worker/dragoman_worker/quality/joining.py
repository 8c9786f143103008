"""Joining of an item's pieces: the blank between two depends on the scripts of both languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dragoman_worker.prompts.names import script_of

_WITHOUT_BLANKS: Final = frozenset({"Hans", "Hant", "Hani", "Jpan", "Hira", "Kana", "Bopo"})
"""Scripts that have no blank between sentences. Thai, Lao, Khmer, Burmese and Tibetan have none
between words, but one between sentences."""
_IDEOGRAPHIC_SPACE: Final = "\u3000"
_SPACES: Final = f" \u00a0{_IDEOGRAPHIC_SPACE}"
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
"""Characters of scripts without blanks between words, and their punctuation."""


@dataclass(frozen=True, slots=True)
class TranslatedPiece:
    """One piece of an item: its source without the blanks around it, and its translation."""

    before: str
    source: str
    after: str
    text: str


def join(pieces: Iterable[TranslatedPiece], target_lang: str) -> str:
    """Join the translations of an item's pieces, in order.

    Line breaks stay as they are, and so do the blanks around the whole item. A space between two
    pieces is added or left out where only one of both languages has spaces between sentences.
    """
    parts: list[str] = []
    left: TranslatedPiece | None = None
    for piece in pieces:
        if left is None:
            parts.append(piece.before)
        else:
            parts.append(_between(left, piece, target_lang))
        parts.append(piece.text)
        left = piece
    if left is not None:
        parts.append(left.after)
    return "".join(parts)


def _between(left: TranslatedPiece, right: TranslatedPiece, target_lang: str) -> str:
    blank = left.after + right.before
    if blank.strip(_SPACES):  # a line break, or a tab of a table
        return blank
    if _without_blanks(target_lang):
        return "" if _meet_unspaced(left.text, right.text) else blank
    if _IDEOGRAPHIC_SPACE in blank or (not blank and _meet_unspaced(left.source, right.source)):
        return " "
    return blank


def _meet_unspaced(left: str, right: str) -> bool:
    """Return whether the end of `left` or the start of `right` is of a script without blanks."""
    return bool(_UNSPACED.match(left[-1:]) or _UNSPACED.match(right[:1]))


@lru_cache(maxsize=1_024)
def _without_blanks(tag: str) -> bool:
    return script_of(tag) in _WITHOUT_BLANKS
