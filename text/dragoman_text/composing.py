"""Unicode's composed form (NFC), in time that grows with the text alone.

The standard library sorts a run of combining marks by insertion, so one letter with 43,000 marks
takes it eleven seconds. Here a longer run than any script has is composed in stretches.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LONGEST_RUN: Final = 256
"""Marks on one letter that are sorted together; Unicode's stream-safe form allows 30."""


def composed(text: str) -> str:
    """The text in NFC; a run of more than LONGEST_RUN marks is composed in stretches of that."""
    if text.isascii():
        return text
    marks = "".join(filter(_is_mark, set(text)))
    if not marks:
        return unicodedata.normalize("NFC", text)
    some = re.escape(marks)
    # Cut only where yet another mark follows, and never between a letter and its first marks.
    run = f"([^{some}]?[{some}]{{{LONGEST_RUN}}})(?=[{some}])"
    return "".join(unicodedata.normalize("NFC", part) for part in re.split(run, text))


def _is_mark(character: str) -> bool:
    """Whether it stays behind the character before it, also by what it is decomposed into."""
    return unicodedata.combining(unicodedata.normalize("NFD", character)[0]) != 0
