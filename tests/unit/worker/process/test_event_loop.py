"""Collections are rare but bounded, and the thresholds are restored afterwards."""

from __future__ import annotations

import gc

from dragoman_worker.process.event_loop import YOUNG, seldom_collected


def test_existing_objects_are_frozen_inside_the_context_and_unfrozen_afterwards() -> None:
    before = gc.get_threshold()

    with seldom_collected():
        assert gc.get_threshold()[0] == YOUNG
        assert gc.get_freeze_count() > 1000

    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


class _Cycle:
    """Garbage that only the collector frees."""

    living = 0

    def __init__(self) -> None:
        self.itself = self
        type(self).living += 1

    def __del__(self) -> None:
        type(self).living -= 1


def test_cycles_are_still_collected() -> None:
    with seldom_collected():
        for _ in range(4 * YOUNG):
            _Cycle()

        assert _Cycle.living < 2 * YOUNG
