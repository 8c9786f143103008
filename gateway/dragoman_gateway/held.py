"""What the requests of each key hold of this process: connections, and bytes of their bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dragoman_gateway.errors import ApiError
from dragoman_gateway.keys import Key

_MOST_BYTES: Final = 64 << 20
"""Of the bodies of a key, and of all callers whose key is not known yet: it may be in the body."""
_SMALL_BYTES: Final = 64 << 10
"""A body of less is never refused: so many of them are bounded by the number of connections."""


class HeldRequests:
    """Keeps one caller from taking the connections or the memory of all others."""

    def __init__(self, most_of_one: int) -> None:
        """Allow one key so many requests at once, where there are several keys."""
        self._most_of_one = most_of_one
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @contextmanager
    def held(self, key: Key | None, *, alone: bool) -> Iterator[Callable[[int], None]]:
        """Count a request of a key, None while that is unknown, and yield what counts its body.

        `alone`: there is no other key. Both raise ApiError.
        """
        name = "" if key is None else key.id
        if key is not None and not alone and self._requests[name] >= self._most_of_one:
            raise ApiError(429, "This key holds half of all connections.", 1)
        most = _MOST_BYTES if key is None else max(_MOST_BYTES, 4 * key.max_characters_in_flight)
        counted = 0

        def grown(size: int) -> None:
            nonlocal counted
            self._bytes[name] += size - counted
            counted = size
            if self._bytes[name] > most and size > _SMALL_BYTES:
                raise ApiError(
                    503 if key is None else 429,
                    "Too many large requests at once. Ask again, with the key in a header.",
                    1,
                )

        self._requests[name] += 1
        try:
            yield grown
        finally:
            self._requests[name] -= 1
            self._bytes[name] -= counted
