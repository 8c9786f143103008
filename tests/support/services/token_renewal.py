"""A file with a short-lived token that is renewed in time, as a sidecar does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.services.secure_broker import unsecured_token


class Renewal:
    """Replaces a token's file every `every_s` until it is paused."""

    def __init__(
        self, user: str, file: Path, lifetime_s: Callable[[], float], every_s: float
    ) -> None:
        self._user, self._file = user, file
        self._lifetime_s, self._every_s = lifetime_s, every_s
        self._ended = threading.Event()
        self.paused = False
        self._write()

    def __call__(self) -> None:
        """Renew until `end`."""
        while not self._ended.wait(self._every_s):
            if not self.paused:
                self._write()

    def _write(self) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(unsecured_token(self._user, self._lifetime_s()))
        new.replace(self._file)

    def end(self) -> None:
        """Stop to renew."""
        self._ended.set()


@contextmanager
def renewed(
    user: str, file: Path, lifetime_s: Callable[[], float], every_s: float
) -> Iterator[Renewal]:
    """Keep a valid token of `user` in `file` while the context is open."""
    renewal = Renewal(user, file, lifetime_s, every_s)
    thread = threading.Thread(target=renewal)
    thread.start()
    try:
        yield renewal
    finally:
        renewal.end()
        thread.join()
