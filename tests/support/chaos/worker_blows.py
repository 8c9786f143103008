"""Faults of workers and their repair."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from support.chaos.fleet import Fleet
from support.chaos.plan import Action, Stroke
from support.chaos.silent_faults import SilentWorker
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
    if stroke.action in blows:
        return blows[stroke.action]
    assert isinstance(worker, SilentWorker), "no such fault of this worker"
    return _silent_blow(stroke, worker)


def _silent_blow(stroke: Stroke, worker: SilentWorker) -> Blow:
    breaks: dict[Action, tuple[Callable[[], None], Callable[[], None]]] = {
        Action.JOBS_CANCELLED: (worker.cancel.touch, partial(worker.cancel.unlink, True)),
        Action.ENGINE_STALL: (worker.stall.touch, partial(worker.stall.unlink, True)),
    }
    if worker.pipe is not None:
        become = worker.pipe.become
        breaks[Action.LOG_CLOSED] = partial(become, "gone"), partial(become, "reads")
        breaks[Action.LOG_STUCK] = partial(become, "rests"), partial(become, "reads")
    if worker.disk is not None:
        breaks[Action.LOG_FULL] = worker.disk.fill, worker.disk.empty
    strike, undo = breaks[stroke.action]

    def mended() -> str:
        undo()
        return f"{stroke.action} is over"

    return Blow(strike, max(1.0, stroke.hold_s), mended)


def suits(action: Action, worker: Worker) -> bool:
    """Return whether the worker's log can be broken in this way; true for all other faults."""
    if action in {Action.LOG_CLOSED, Action.LOG_STUCK}:
        return isinstance(worker, SilentWorker) and worker.pipe is not None
    if action is Action.LOG_FULL:
        return isinstance(worker, SilentWorker) and worker.disk is not None
    return True


def _nothing() -> None:
    """Do nothing: a drain takes long, so it runs as part of the repair."""
