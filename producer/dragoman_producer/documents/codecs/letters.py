"""What makes a text worth translating."""

from __future__ import annotations

import re
from typing import Final

_LETTER: Final = re.compile(r"[^\W\d_]")


def has_letter(text: str) -> bool:
    """Return whether a text has a letter of any script; numbers and punctuation have none."""
    return _LETTER.search(text) is not None
