"""The row of the table for one storm."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Final

from support.chaos.conductor import Conductor
from support.chaos.gauges import Trend
from support.chaos.green import Green
from support.chaos.ledger import Verdict
from support.chaos.plan import Action
from support.chaos.watch import Seen

_COORDINATOR_MOVES: Final = (Action.COORDINATOR_KILL, Action.COORDINATOR_STOP)
_BROKER_BLOWS: Final = (
    Action.BROKER_KILL,
    Action.BROKER_STOP,
    Action.BROKER_TERM,
    Action.ALL_BROKERS_KILL,
    Action.ALL_BROKERS_STOP,
    *_COORDINATOR_MOVES,
)


@dataclass(slots=True)
class Row:
    """One line of the table: the faults and their consequences."""

    seed: int
    system: str = "dragoman"
    records: int = 0
    jobs: int = 0
    seconds: float = 0.0
    kills: int = 0
    stops: int = 0
    drains: int = 0
    joins: int = 0
    broker_blows: int = 0
    moves: int = 0
    redis_outages: int = 0
    cuts: int = 0
    server_blows: int = 0
    idle: int = 0
    skipped: int = 0
    failed: int = 0
    own_deaths: int = 0
    struck_in_flight: int = 0
    redeliveries: int = 0
    duplicate_computations: int = 0
    duplicate_letters: int = 0
    lost: int = 0
    wrong: int = 0
    condemned: int = 0
    changed: int = 0
    beyond: int = 0
    uncommitted: int = 0
    rest_s: float = 0.0
    """Seconds from the last repair until every job had ended and was committed."""
    immortal: int = 0
    cached: int = 0
    """Jobs answered by the memory, or by an equal job in flight."""
    slow: int = 0
    still: int = 0
    """Times that a partition with open work stood still for 90 s behind green probes."""
    untold: int = 0
    """Ended jobs that the progress of their document does not show."""
    longest_green_still_s: float = 0.0
    audit: int | None = None
    comparisons: int = 0
    trends: list[Trend] = field(default_factory=list)
    """Trends of the workers that were never killed."""
    problems: list[str] = field(default_factory=list)
    timeline: str = ""

    @property
    def broken(self) -> bool:
        """Whether a guarantee was broken."""
        counts = (
            self.lost,
            self.wrong,
            self.changed,
            self.beyond,
            self.uncommitted,
            self.immortal,
            self.still,
            self.untold,
        )
        return any(counts) or self.audit not in {0, None}

    def as_json(self) -> str:
        """Return one line with the first 50 problems."""
        fields = asdict(self)
        return json.dumps(fields | {"problems": self.problems[:50]})

    def add_conductor(self, conductor: Conductor) -> None:
        """Count the injected faults."""

        def fell(*actions: Action) -> int:
            return sum(conductor.counts[f"{action}: done"] for action in actions)

        def were(happened: str) -> int:
            counts = conductor.counts.items()
            return sum(count for what, count in counts if what.endswith(f": {happened}"))

        self.kills = fell(Action.WORKER_KILL, Action.REPLICA_KILL)
        self.stops = fell(Action.WORKER_STOP)
        self.drains = fell(Action.WORKER_TERM, Action.WORKER_REMOVE)
        self.joins = fell(Action.WORKER_ADD)
        self.broker_blows = fell(*_BROKER_BLOWS)
        self.moves = fell(Action.LEADERS_MOVE, *_COORDINATOR_MOVES)
        self.redis_outages = fell(*(action for action in Action if action.startswith("redis")))
        self.cuts = fell(Action.LINK_CUT)
        self.server_blows = fell(Action.SERVER_KILL, Action.SERVER_STOP)
        self.idle, self.skipped = were("idle"), were("skipped")
        self.failed = len(conductor.failures)
        self.struck_in_flight = int(conductor.struck_in_flight)
        self.problems += [f"conductor: {failure}" for failure in conductor.failures]

    def add_verdict(self, verdict: Verdict) -> None:
        """Add the findings of the ledger."""
        self.records, self.jobs = verdict.records, verdict.jobs
        self.duplicate_computations = verdict.duplicate_computations
        self.duplicate_letters = verdict.duplicate_letters
        self.lost, self.wrong = verdict.lost, verdict.wrong
        self.condemned = verdict.condemned
        self.problems += verdict.problems

    def add_green(self, green: Green) -> None:
        """Add what stood still behind green probes."""
        self.still = len(green.violations)
        self.longest_green_still_s = round(green.longest_s, 1)
        self.problems += green.violations[:20]

    def add_watch(self, seen: Seen) -> None:
        """Add the observations of the watch."""
        self.changed, self.beyond = len(seen.changed), len(seen.beyond)
        self.slow, self.comparisons = len(seen.slow), seen.comparisons
        self.problems += seen.changed[:20] + seen.slow
        self.problems += [f"committed beyond {job_id}" for job_id in sorted(seen.beyond)[:20]]
