"""Replacements of ranges in a text, and digests of what stays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import AnyStr, Generic

_SEPARATOR = b"\0\xff\0"


@dataclass(frozen=True, slots=True)
class Replacement(Generic[AnyStr]):
    """New content for `[start:end)` of a text or of bytes."""

    start: int
    end: int
    content: AnyStr


def replaced(data: AnyStr, replacements: Iterable[Replacement[AnyStr]]) -> AnyStr:
    """Return the data with replacements, given in any order. Raises ValueError if two overlap."""
    parts: list[AnyStr] = []
    end = 0
    for each in sorted(replacements, key=lambda each: (each.start, each.end)):
        if each.start < end:
            raise ValueError(f"replacements overlap at {each.start}")
        parts += (data[end : each.start], each.content)
        end = each.end
    parts.append(data[end:])
    return data[:0].join(parts)  # pyright: ignore[reportArgumentType]  all of one type


def skeleton(data: str | bytes, ranges: Iterable[tuple[int, int]], *more: str) -> str:
    """Return the hex digest of the data without these sorted ranges, and of `more`.

    The places of the ranges count: text that moves from one segment into the next changes it.
    """
    digest = hashlib.sha256()
    for part in _between(data, ranges):
        digest.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
        digest.update(_SEPARATOR)
    for text in more:
        digest.update(text.encode("utf-8", "surrogatepass") + _SEPARATOR)
    return digest.hexdigest()


def _between(data: str | bytes, ranges: Iterable[tuple[int, int]]) -> Iterator[str | bytes]:
    end = 0
    for start, stop in ranges:
        if start < end:
            raise ValueError(f"ranges overlap at {start}")
        yield data[end:start]
        end = stop
    yield data[end:]
