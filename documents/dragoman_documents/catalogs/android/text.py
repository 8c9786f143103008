"""The spelling of texts in Android's string resources."""

from __future__ import annotations

import re
from typing import Final

from dragoman_documents.xml.inline import Rules
from dragoman_documents.xml.tree import escaped, text_of

_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)|(\")|([ \t\r\n]+)", re.DOTALL)
_BLANKS: Final = re.compile(" {2,}")
_NAMED: Final = {"n": "\n", "t": "\t"}
_SPELLED: Final = str.maketrans({
    "\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": " ",
})  # fmt: skip
_ENDS: Final = str.maketrans({" ": "\\u0020", "\n": "\\n", "\t": "\\t", "\r": ""})
_PAIRS: Final = frozenset({
    "a", "annotation", "b", "big", "cite", "dfn", "em", "font", "i", "li", "marquee", "p", "s",
    "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "ul",
})  # fmt: skip


def read(raw: bytes) -> str:
    """Return a text without escapes; blanks outside of quotes count once."""
    quoted = False

    def plain(match: re.Match[str]) -> str:
        nonlocal quoted
        if match[1] is not None:
            return _character(match[1], match[0])
        if match[2] is not None:
            return _NAMED.get(match[2], match[2])
        if match[3] is not None:
            quoted = not quoted
            return ""
        return match[4] if quoted else " "

    return _ESCAPE.sub(plain, text_of(raw))


def _character(digits: str, spelled: str) -> str:
    """Return the character of an escape; halves of a pair stay spelled."""
    code = int(digits, 16)
    return spelled if 0xD800 <= code < 0xE000 or code == 0 else chr(code)


def write(text: str) -> str:
    """Return a text with escapes."""
    spelled = _BLANKS.sub(_spelled_blanks, text.translate(_SPELLED))
    if spelled[:1] in {"@", "?"}:
        spelled = "\\" + spelled
    return escaped(spelled)


def _spelled_blanks(match: re.Match[str]) -> str:
    """Return several blanks so that they count as several."""
    return " " + "\\u0020" * (len(match[0]) - 1)


def _write_ends(blanks: str) -> str:
    """Return blanks at an end of a text so that they count."""
    return blanks.translate(_ENDS)


RULES: Final = Rules(_PAIRS, read=read, write=write, write_ends=_write_ends)
"""Elements for style are pairs of codes; `xliff:g` is a placeholder, and a code of its own."""
