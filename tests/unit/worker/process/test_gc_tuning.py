"""Is the collector's leisure bounded, and over with the worker?"""

from __future__ import annotations

import gc

from dragoman_worker.process.gc_tuning import YOUNG, seldom_collected


def test_the_program_is_left_alone_while_a_worker_works_and_looked_at_again_afterwards() -> None:
    before = gc.get_threshold()

    with seldom_collected():
        assert gc.get_threshold()[0] == YOUNG
        assert gc.get_freeze_count() > 1000

    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


class _Knot:
    """Garbage that only the collector finds."""

    living = 0

    def __init__(self) -> None:
        self.itself = self
        type(self).living += 1

    def __del__(self) -> None:
        type(self).living -= 1


def test_cycles_are_still_collected() -> None:
    with seldom_collected():
        for _ in range(4 * YOUNG):
            _Knot()

        assert _Knot.living < 2 * YOUNG
