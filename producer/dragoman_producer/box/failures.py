"""What ends a box, or keeps it from starting; each message says what to do."""

from __future__ import annotations


class BoxUnusable(Exception):
    """Options cannot be used. Commands exit with status 2."""


class BoxFailed(Exception):
    """The box cannot go on. Commands exit with `status`."""

    def __init__(self, why: str, status: int = 1) -> None:
        super().__init__(why)
        self.status = status
