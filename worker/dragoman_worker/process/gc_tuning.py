"""Garbage collection thresholds for a worker with thousands of jobs in flight.

Reference counts free the objects of a job when it is finished. The collector is only needed for
cycles, which jobs do not make and failures do. With its default thresholds it would scan the
objects of all jobs in flight over and over, and the whole program every tenth time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 50_000
"""Containers allocated and not freed before a collection: at most some 10 MB of garbage."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Freeze the objects that exist now, and collect younger ones seldom, inside the context."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
