"""The spelling of texts in workbooks, where `_x0041_` stands for a character.

Excel writes so what XML cannot hold, carriage returns above all, and an underscore before what
would be read as such (ECMA-376, part 1, 22.9.2.19).
"""

from __future__ import annotations

import re
from typing import Final

from dragoman_documents.xml.tree import escaped, escaped_value, text_of, value_of

_KEPT: Final = r"(?!00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F])|[dD][89a-fA-F]|[fF]{3}[eEfF])"
"""Not the code of a control character, of a half of a pair, or of no character."""
_SPELLED: Final = re.compile(rf"_x{_KEPT}([0-9a-fA-F]{{4}})_")
_LOOKALIKE: Final = re.compile(rf"_(?=x{_KEPT}[0-9a-fA-F]{{4}}_)")


def read(raw: bytes) -> str:
    """Return the text of an element."""
    return decoded(text_of(raw))


def decoded(text: str) -> str:
    """Return a text with its characters; carriage returns, which no cell shows, are left out."""
    return _SPELLED.sub(_character, text) if "_x" in text else text


def _character(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return "" if code == ord("\r") else chr(code)


def spelled(text: str) -> str:
    """Return a text in which nothing is taken for a spelled character."""
    return _LOOKALIKE.sub("_x005F_", text)


def write(text: str) -> str:
    """Return a text as the content of an element."""
    return escaped(spelled(text))


def read_value(raw: str) -> str:
    """Return the text of an attribute."""
    return decoded(value_of(raw))


def write_value(text: str) -> str:
    """Return a text as the value of an attribute, such as the name of a table's column."""
    return escaped_value(spelled(text).replace("\n", "_x000a_"))
