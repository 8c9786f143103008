"""What ends a box, or keeps it from starting; each message says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BoxUnusable(Exception):
    """Options cannot be used. Commands exit with status 2."""


class BoxFailed(Exception):
    """The box cannot go on. Commands exit with `status`."""

    def __init__(self, why: str, status: int = 1) -> None:
        super().__init__(why)
        self.status = status


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """Raise BoxFailed where a file of the box cannot be written, or read."""
    try:
        yield
    except OSError as error:
        raise BoxFailed(
            f"{file}: {error.strerror or error}; make room there, or give another --data"
        ) from None
