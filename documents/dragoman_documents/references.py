"""Character references of HTML, XML and Markdown: written and read."""

from __future__ import annotations

import html
import re
from typing import Final

_ZEROS: Final = re.compile(r"&#0+(?=[0-9])")
_BEYOND: Final = re.compile(r"&#[0-9]{8,}")
_FIRST_BEYOND: Final = f"&#{0x110000}"
"""The first number after Unicode's last character."""


def reference(text: str) -> str:
    """Return each character as a numeric reference."""
    return "".join(f"&#{ord(character)};" for character in text)


def unescaped(text: str) -> str:
    """Return text without references, as HTML reads them.

    `html.unescape` raises ValueError at a number of more than 4,300 digits, which Python refuses to
    convert; HTML reads it as U+FFFD like every other number that is no character.
    """
    if "&#" in text:
        text = _BEYOND.sub(_FIRST_BEYOND, _ZEROS.sub("&#", text))
    return html.unescape(text)
