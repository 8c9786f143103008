"""What is said while no result arrives, as where no worker runs."""

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
    """Reports once per silence that no result has come for QUIET_S."""

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
