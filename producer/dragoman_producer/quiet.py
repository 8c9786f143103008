"""Notice that no results arrive, for example because no worker runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

QUIET_S: Final = 30.0
NO_RESULT: Final = (
    f"no result for {QUIET_S:g} s; if no worker runs, start one "
    "(`dragoman topics show` prints the jobs that wait)"
)


class Quiet:
    """Reports NO_RESULT once if a job is queued and `quiet_s` seconds bring no result."""

    def __init__(self, report: Callable[[str], None], quiet_s: float = QUIET_S) -> None:
        """Begin now; `report` gets the line."""
        self._report = report
        self._quiet_s = quiet_s
        self.heard()

    def heard(self) -> None:
        """Note that a result came, or that waiting begins."""
        self._since = time.monotonic()
        self._reported = False

    def queued(self) -> None:
        """Note that a job is still queued."""
        if not self._reported and time.monotonic() - self._since >= self._quiet_s:
            self._reported = True
            self._report(NO_RESULT)
