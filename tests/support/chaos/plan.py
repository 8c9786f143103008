"""Plans of faults: drawn from a seed, or replayed from a timeline."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final


class Action(StrEnum):
    """One way to break something."""

    WORKER_KILL = "worker kill"
    REPLICA_KILL = "replica kill"
    WORKER_TERM = "worker term"
    WORKER_STOP = "worker stop"
    WORKER_ADD = "worker add"
    WORKER_REMOVE = "worker remove"
    BROKER_KILL = "broker kill"
    BROKER_TERM = "broker term"
    BROKER_STOP = "broker stop"
    COORDINATOR_KILL = "coordinator kill"
    COORDINATOR_STOP = "coordinator stop"
    LEADERS_MOVE = "leaders move"
    REDIS_KILL = "redis kill"
    REDIS_STOP = "redis stop"
    REDIS_READONLY = "redis readonly"
    REDIS_FULL = "redis full"
    REDIS_SCRIPT_FLUSH = "redis script flush"
    REDIS_CLIENT_KILL = "redis client kill"
    REDIS_CLIENT_PAUSE = "redis client pause"
    # Only in the silent family and in scripts:
    LOG_CLOSED = "log closed"
    LOG_STUCK = "log stuck"
    LOG_FULL = "log full"
    JOBS_CANCELLED = "jobs cancelled"
    ENGINE_STALL = "engine stall"
    REDIS_PASSWORD = "redis password"  # noqa: S105  the name of a fault
    REDIS_REPLIES = "redis replies"
    # Only in the family of a served engine:
    SERVER_KILL = "server kill"
    SERVER_STOP = "server stop"
    # Only in scripts:
    ALL_BROKERS_KILL = "all brokers kill"
    ALL_BROKERS_STOP = "all brokers stop"
    LINK_CUT = "link cut"


# Kills of workers are the most likely: they reveal commits that come too early.
WEIGHTS: Final = {
    Action.WORKER_KILL: 8,
    Action.REPLICA_KILL: 3,
    Action.WORKER_TERM: 3,
    Action.WORKER_STOP: 4,
    Action.WORKER_ADD: 2,
    Action.WORKER_REMOVE: 2,
    Action.BROKER_KILL: 2,
    Action.BROKER_TERM: 1,
    Action.BROKER_STOP: 1,
    Action.COORDINATOR_KILL: 1,
    Action.COORDINATOR_STOP: 1,
    Action.LEADERS_MOVE: 2,
    Action.REDIS_KILL: 2,
    Action.REDIS_STOP: 2,
    Action.REDIS_READONLY: 1,
    Action.REDIS_FULL: 1,
    Action.REDIS_SCRIPT_FLUSH: 1,
    Action.REDIS_CLIENT_KILL: 1,
    Action.REDIS_CLIENT_PAUSE: 1,
}
SILENT_WEIGHTS: Final = {
    Action.LOG_CLOSED: 3,
    Action.LOG_STUCK: 3,
    Action.LOG_FULL: 3,
    Action.JOBS_CANCELLED: 2,
    Action.ENGINE_STALL: 2,
    Action.REDIS_PASSWORD: 2,
    Action.REDIS_REPLIES: 3,
    Action.WORKER_KILL: 2,
    Action.WORKER_TERM: 1,
    Action.WORKER_STOP: 1,
    Action.BROKER_STOP: 1,
    Action.REDIS_FULL: 1,
    Action.REDIS_STOP: 1,
}
"""The family of faults that a probe does not see by itself, with a few others between them."""
SERVED_WEIGHTS: Final = {**WEIGHTS, Action.SERVER_KILL: 24, Action.SERVER_STOP: 8}
"""The faults of a storm whose workers' engine is a server, and those of that server."""
_HOLD_S: Final = {
    Action.SERVER_KILL: (0.2, 8.0),
    Action.SERVER_STOP: (2.0, 10.0),
    Action.LOG_CLOSED: (3.0, 20.0),
    Action.LOG_STUCK: (3.0, 20.0),
    Action.LOG_FULL: (3.0, 20.0),
    Action.ENGINE_STALL: (65.0, 80.0),  # longer than an engine may be without a sign of life
    Action.REDIS_PASSWORD: (2.0, 8.0),
    Action.REDIS_REPLIES: (2.0, 10.0),
    Action.WORKER_KILL: (0.5, 3.0),
    Action.WORKER_TERM: (0.0, 1.0),
    Action.WORKER_STOP: (12.0, 15.0),  # twice the session timeout
    Action.BROKER_KILL: (3.0, 8.0),
    Action.BROKER_TERM: (1.0, 4.0),
    Action.BROKER_STOP: (5.0, 12.0),
    Action.COORDINATOR_KILL: (3.0, 8.0),
    Action.COORDINATOR_STOP: (5.0, 12.0),
    Action.REDIS_KILL: (0.5, 5.0),
    Action.REDIS_STOP: (3.0, 10.0),
    Action.REDIS_READONLY: (2.0, 6.0),
    Action.REDIS_FULL: (2.0, 6.0),
    Action.REDIS_CLIENT_PAUSE: (2.0, 5.0),
}
GAP_S: Final = (5.0, 9.0)
FIRST_S: Final = 6.0


@dataclass(frozen=True, slots=True)
class Stroke:
    """One fault at a time of the storm; `who` in [0, 1) picks among the candidates then."""

    at_s: float
    action: Action
    who: float
    hold_s: float
    target: str | None = None
    """The exact target, set in a replay."""


def drawn(
    seed: int,
    duration_s: float,
    *,
    only: frozenset[Action] | None = None,
    family: Mapping[Action, int] = WEIGHTS,
) -> Iterator[Stroke]:
    """Return the plan of a seed, with four draws per stroke whether or not they are used."""
    draws = random.Random(f"plan {seed}")
    actions = [action for action in family if only is None or action in only]
    weights = [family[action] for action in actions]
    at_s = FIRST_S
    while at_s < duration_s:
        gap, choice, who, hold = (draws.random() for _ in range(4))
        action = _weighted(actions, weights, choice)
        shortest, longest = _HOLD_S.get(action, (0.0, 0.0))
        yield Stroke(
            at_s=round(at_s, 3),
            action=action,
            who=round(who, 6),
            hold_s=round(shortest + hold * (longest - shortest), 3),
        )
        at_s += GAP_S[0] + gap * (GAP_S[1] - GAP_S[0])


def recorded(timeline: Path) -> tuple[dict[str, Any], list[Stroke]]:
    """Return the head of a timeline (seed and options) and the faults that happened, in order."""
    lines = [json.loads(line) for line in timeline.read_text(encoding="utf-8").splitlines()]
    head = next(line for line in lines if line["what"] == "storm")
    strokes = [
        Stroke(
            at_s=line["at_s"],
            action=Action(line["action"]),
            who=line["who"],
            hold_s=line["hold_s"],
            target=line["target"],
        )
        for line in lines
        if line["what"] == "strike" and line["happened"] != "skipped"
    ]
    return head, strokes


def _weighted(actions: list[Action], weights: list[int], choice: float) -> Action:
    left = choice * sum(weights)
    for action, weight in zip(actions, weights, strict=True):
        left -= weight
        if left < 0:
            return action
    return actions[-1]
