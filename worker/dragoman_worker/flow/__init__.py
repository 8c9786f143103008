"""How much work is in flight, and which item enters the engine next."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_worker.flow.permits import Permits
from dragoman_worker.flow.planning import Planning


@dataclass(frozen=True, slots=True)
class Flow:
    """What every job waits for: a turn to plan its requests, and permits to enter the engine."""

    planning: Planning
    permits: Permits
