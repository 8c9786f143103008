"""An entry of a file of keys and values, and escapes of UTF-16 units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PropertiesEntry:
    """A key, its value decoded, and the range in which the value is spelled."""

    key: str
    value: str
    start: int
    end: int


def units(character: str) -> list[int]:
    """Return the UTF-16 units of a character: two beyond U+FFFF."""
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2)]


def with_pairs(text: str) -> str:
    """Return a text whose pairs of surrogates are the characters they stand for."""
    if not _SURROGATE.search(text):
        return text
    data = text.encode("utf-16-be", "surrogatepass")
    return data.decode("utf-16-be", "surrogatepass")
