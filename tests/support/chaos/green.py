"""A look-out for work that stands still behind green probes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from support.chaos.fleet import Fleet
from support.chaos.system import Worker
from support.chaos.timeline import Timeline

STILL_S: Final = 90.0


class Green:
    """Looks whether a partition with open work stands still while all workers say that all is well.

    A *violation*: for 90 s livez and readyz of every worker were 200 at each look, and the
    committed offset of a partition with open work did not move.
    """

    def __init__(
        self, fleet: Fleet, open_partitions: Callable[[], dict[int, int]], timeline: Timeline
    ) -> None:
        self._fleet = fleet
        self._open_partitions = open_partitions
        self._timeline = timeline
        self._green_since: float | None = None
        self._seen: dict[int, tuple[int, float]] = {}
        self._told: set[tuple[int, int]] = set()
        self.violations: list[str] = []
        self.longest_s = 0.0

    def look(self) -> None:
        """Ask all workers once and compare the open partitions with the last look."""
        now = time.monotonic()
        if not all(map(_is_green, self._fleet.all())):
            self._green_since = None
        elif self._green_since is None:
            self._green_since = now
        still = self._open_partitions()
        self._seen = {
            each: (
                offset,
                now if self._seen.get(each, (-1, now))[0] != offset else self._seen[each][1],
            )
            for each, offset in still.items()
        }
        if self._green_since is None:
            return
        for each, (offset, since) in self._seen.items():
            seconds = now - max(since, self._green_since)
            self.longest_s = max(self.longest_s, seconds)
            if seconds > STILL_S and (each, offset) not in self._told:
                self._told.add((each, offset))
                words = f"partition {each} stands at {offset} for {STILL_S:g} s behind green probes"
                self.violations.append(words)
                self._timeline.note("STILL", words=words)


def _is_green(worker: Worker) -> bool:
    get = getattr(worker, "get", None)
    if get is None:
        return False
    return all(get(page)[0] == 200 for page in ("/livez", "/readyz"))
