"""How far a child is with a document: what it says, and what is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from dragoman_producer.runs.events import Event, Working

PROGRESS: Final = "progress"
"""Member of a child's message, at any time, that is no answer: [what was done, bytes, of]."""
_SAY_S: Final = 0.5
_TELL_S: Final = 1.0

Tell = Callable[[str, int, int], None]
"""Is told what was done (`scanned`, `read`, `written`), with how many bytes, of how many.

Of 0 bytes if the child has said nothing: of a document that is not read in parts."""


class Saying:
    """Says in a child, now and then, how far a document is."""

    def __init__(self, send: Callable[[dict[str, object]], None], done: str) -> None:
        self._send = send
        self._done = done
        self._said_at = time.monotonic()

    def say(self, count: int, of: int, *, scans: bool) -> None:
        """Say that some bytes are done, unless that was said a moment ago."""
        now = time.monotonic()
        if now - self._said_at >= _SAY_S:
            self._said_at = now
            self._send({PROGRESS: ["scanned" if scans else self._done, count, of]})


class Telling:
    """Tells in the parent, each second, what a child last said."""

    def __init__(self, done: str, tell: Tell | None = None) -> None:
        self._last = (done, 0, 0)
        self._tell = tell
        self._told_at = time.monotonic()

    @property
    def wait_s(self) -> float:
        """Return the seconds until it is time to tell."""
        return max(0.0, self._told_at + _TELL_S - time.monotonic())

    def note(self, done: str, count: int, of: int) -> None:
        """Keep what a child says."""
        self._last = (done, count, of)

    def tell(self) -> None:
        """Tell, if it is time."""
        if not self.wait_s:
            self._told_at = time.monotonic()
            if self._tell is not None:
                self._tell(*self._last)


def emitting(emit: Callable[[Event], None], path: str, lang: str = "") -> Tell:
    """Return a Tell that emits the progress of a document."""
    return lambda done, count, of: emit(Working(path, lang, done, count, of))
