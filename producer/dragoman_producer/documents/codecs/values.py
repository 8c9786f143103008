"""Which values of data are text: neither identifiers nor paths, times or colours."""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.spans import is_translatable

_IDENTIFIER: Final = re.compile(
    r"[!-~]*[0-9][!-~]*|[!-~]*[_/\\:#@=.][A-Za-z/#][!-~]*|true|false|null"
)
"""One word of ASCII with a digit or a mark inside it: `user_id`, `a/b.png`, `2026-01-01T10:00Z`."""


def is_text(value: str) -> bool:
    """Return whether a value of unknown use is text to translate. Linear in its length."""
    core = value.strip()
    if not is_translatable(core):
        return False
    return len(core) > 200 or _IDENTIFIER.fullmatch(core) is None
