"""Unicode's composed form (NFC), in time linear in the text.

The standard library sorts a run of combining marks by insertion: one letter with 43,000 marks takes
eleven seconds. A run longer than in any script is therefore composed in pieces.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LONGEST_RUN: Final = 256
"""Marks of one letter that are sorted together; Unicode's stream-safe form allows 30."""


def composed(text: str) -> str:
    """Return the text in NFC; runs of more than LONGEST_RUN marks are composed in pieces."""
    if text.isascii():
        return text
    marks = "".join(filter(_is_mark, set(text)))
    if not marks:
        return unicodedata.normalize("NFC", text)
    some = re.escape(marks)
    # Split only before another mark, and never between a letter and its first marks.
    run = f"([^{some}]?[{some}]{{{LONGEST_RUN}}})(?=[{some}])"
    return "".join(unicodedata.normalize("NFC", part) for part in re.split(run, text))


def _is_mark(character: str) -> bool:
    """Return whether the character, or the first one of its decomposition, is a combining mark."""
    return unicodedata.combining(unicodedata.normalize("NFD", character)[0]) != 0
