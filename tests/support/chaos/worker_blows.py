"""Faults of workers and their repair."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from support.chaos.fleet import Fleet
from support.chaos.plan import Action, Stroke
from support.chaos.system import Worker


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault injected at once and repaired `hold_s` later."""

    strike: Callable[[], None]
    hold_s: float
    mend: Callable[[], str]


def blow(stroke: Stroke, worker: Worker, fleet: Fleet) -> Blow:
    """Return the fault that a stroke causes at this worker."""
    name, hold_s = worker.name, stroke.hold_s

    def again() -> str:
        worker.stop(grace_s=0.1)  # none of its processes may remain
        fleet.restart(name)
        return "started"

    def drained() -> str:
        outcome = fleet.drain(name)
        time.sleep(hold_s)
        return f"{outcome}, {again()}"

    def resumed() -> str:
        worker.resume()
        return "continued"

    blows = {
        Action.WORKER_KILL: Blow(worker.kill, hold_s, again),
        Action.REPLICA_KILL: Blow(worker.kill_replica, hold_s, lambda: "left to itself"),
        Action.WORKER_TERM: Blow(_nothing, 0.0, drained),
        Action.WORKER_REMOVE: Blow(_nothing, 0.0, lambda: fleet.remove(name)),
        Action.WORKER_STOP: Blow(worker.pause, hold_s, resumed),
    }
    return blows[stroke.action]


def _nothing() -> None:
    """Do nothing: a drain takes long, so it runs as part of the repair."""
