"""The look-out of the storms for work that stands still behind green probes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from support.chaos.green import STILL_S, Green


class Watched:
    """Two workers and two partitions with open work, looked at every 30 s."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.ready = 200
        self.open = {0: 5, 1: 7}
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr("support.chaos.green.time", clock)
        worker = SimpleNamespace(get=lambda page: (self.ready if page == "/readyz" else 200, ""))
        fleet: Any = SimpleNamespace(all=lambda: [worker, worker])
        timeline: Any = SimpleNamespace(note=lambda *_, **__: None)
        self.green = Green(fleet, lambda: dict(self.open), timeline)

    def look(self, seconds: float) -> list[str]:
        """Look every 30 s for so long; return the violations so far."""
        for _ in range(round(seconds / 30)):
            self.now += 30
            self.green.look()
        return self.green.violations


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_each_partition_that_stands_still_for_90_s_behind_green_probes_is_told_once(
    watched: Watched,
) -> None:
    assert watched.look(STILL_S) == []
    watched.open[1] = 8
    assert len(watched.look(60)) == 1
    assert len(watched.look(300)) == 2


def test_a_partition_that_moves_or_has_no_open_work_is_no_violation(watched: Watched) -> None:
    watched.look(60)
    watched.open = {0: 6}
    watched.look(60)
    watched.open = {}
    assert watched.look(300) == []


def test_a_probe_that_is_not_green_begins_the_time_anew(watched: Watched) -> None:
    watched.look(60)
    watched.ready = 503
    watched.look(300)
    watched.ready = 200
    assert watched.look(STILL_S) == []
    assert len(watched.look(60)) == 2
