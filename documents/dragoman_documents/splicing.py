"""Replacements of ranges in a text, and digests of what stays."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import AnyStr, Final, Generic, NamedTuple, cast

_AT_ONCE: Final = 1024
"""Parts that are digested together: a call for each takes five times as long."""


class Replacement(NamedTuple, Generic[AnyStr]):
    """New content for `[start:end)` of a text or of bytes."""

    start: int
    end: int
    content: AnyStr


def replaced(data: AnyStr, replacements: Iterable[Replacement[AnyStr]]) -> AnyStr:
    """Return the data with replacements, given in any order. Raises ValueError if two overlap."""
    parts: list[AnyStr] = []
    end = 0
    for start, stop, content in sorted(replacements, key=itemgetter(0, 1)):
        if start < end:
            raise ValueError(f"replacements overlap at {start}")
        parts += (data[end:start], content)
        end = stop
    parts.append(data[end:])
    return data[:0].join(parts)  # pyright: ignore[reportArgumentType]  all of one type


def skeleton(data: str | bytes, ranges: Iterable[tuple[int, int]], *more: str) -> str:
    """Return the hex digest of the data without these sorted ranges, and of `more`.

    The places of the ranges count: text that moves from one segment into the next changes it.
    """
    digest = hashlib.sha256()
    lengths = array("Q")
    for parts in (_between(data, ranges), iter(more)):
        while some := list(islice(parts, _AT_ONCE)):
            lengths.extend(map(len, some))
            digest.update(_joined(some))
    digest.update(hashlib.sha256(lengths).digest())
    return digest.hexdigest()


def _joined(parts: Sequence[str | bytes]) -> bytes:
    """Return parts of one type as bytes."""
    if isinstance(parts[0], str):
        return "".join(cast("Sequence[str]", parts)).encode("utf-8", "surrogatepass")
    return b"".join(cast("Sequence[bytes]", parts))


def _between(data: str | bytes, ranges: Iterable[tuple[int, int]]) -> Iterator[str | bytes]:
    end = 0
    for start, stop in ranges:
        if start < end:
            raise ValueError(f"ranges overlap at {start}")
        yield data[end:start]
        end = stop
    yield data[end:]
