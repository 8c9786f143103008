"""How often does Python look for garbage? Seldom: a job's objects are freed when it ends.

Reference counts free them; the collector is needed for cycles alone, which jobs do not make and
failures do. With its defaults it would go through what thousands of jobs in hand hold again and
again, and through the whole program at every tenth time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 50_000
"""Containers made and not freed before the collector looks: some 10 MB of garbage at most."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Inside, what lives now is taken for eternal, and younger objects are looked at seldom."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
