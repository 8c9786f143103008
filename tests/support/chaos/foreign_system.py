"""Foreign programs in the same storms: a command that writes one Redis hash per job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import redis

from support.chaos.system import TERMINAL, End, GroupProcess, Place

# What a program must read from its environment.
KAFKA: Final = "STORM_KAFKA"
REDIS: Final = "STORM_REDIS"
TOPIC: Final = "STORM_TOPIC"
GROUP: Final = "STORM_GROUP"
LATENCY_S: Final = "STORM_LATENCY_S"
SPREAD: Final = "STORM_SPREAD"
SESSION_TIMEOUT_S: Final = "STORM_SESSION_TIMEOUT_S"
WORKER: Final = "STORM_WORKER"


class ForeignWorker(GroupProcess):
    """A process of a foreign program, assumed to be busy whenever it runs."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        self.name = name
        super().__init__(argv, log=log, env=env)

    def claims_jobs(self) -> bool:
        """Return whether its log holds the word `ready`."""
        return self.running and "ready" in self.output

    def in_flight(self) -> float | None:
        """Return None: the number is unknown."""
        return None if self.running else 0.0

    def kill_replica(self) -> None:
        """Kill the process, which is assumed to be the only one."""
        self.kill()

    def metric(self, name: str) -> float:
        """Return 0: it has no metrics."""
        del name
        return 0.0


class Foreign:
    """A program that writes `dragoman:job:ID` with the fields `status` and `text`.

    `argv(place)` is its command; it finds the rest in its environment (the names above). It does
    plain jobs and exact duplicates, and has no dead letters.
    """

    letters = False
    kinds = frozenset({"plain", "duplicate"})

    def __init__(self, name: str, argv: Callable[[Place], Sequence[str]]) -> None:
        self.name = name
        self._argv = argv

    def worker(self, place: Place, name: str) -> ForeignWorker:
        """Return a worker that has not been started."""
        env = {
            KAFKA: place.kafka,
            REDIS: place.redis,
            TOPIC: place.topic,
            GROUP: place.group,
            LATENCY_S: str(place.latency_s),
            SPREAD: str(place.spread),
            SESSION_TIMEOUT_S: str(place.session_timeout_s),
            WORKER: name,
        }
        return ForeignWorker(name, self._argv(place), place.folder / f"{name}.log", env)

    def ends(self, client: redis.Redis, job_ids: Sequence[str]) -> list[End | None]:
        """Read the hashes of these jobs once."""
        pipeline = client.pipeline(transaction=False)
        for job_id in job_ids:
            pipeline.hmget(f"dragoman:job:{job_id}", "status", "text")
        return [_end(fields) for fields in pipeline.execute()]

    def audit(self, place: Place) -> tuple[int, str] | None:
        """Return None: it has no such command."""
        del place
        return None


def _end(fields: Sequence[Any]) -> End | None:
    status = (fields[0] or b"").decode()
    if status not in TERMINAL:
        return None
    text = None if fields[1] is None else fields[1].decode()
    return End(status=status, text=text, code=None, seen=tuple(fields))
