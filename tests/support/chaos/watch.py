"""A reader that looks for violations throughout a storm."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import redis

from support.chaos.brokers import Brokers
from support.chaos.ledger import Ledger, Spot
from support.chaos.sent import Kind
from support.chaos.system import End, Place, System
from support.chaos.timeline import Timeline

_PASS_S: Final = 0.25
_COMMITS_EVERY_S: Final = 1.0
_CHUNK: Final = 1_500
_SAMPLE: Final = 200
_TOLD: Final = 20
_STILL_S: Final = 30.0
"""Without any fault, a longer time without a finished job is a violation."""


@dataclass(slots=True)
class Seen:
    """The observations of the watch; each violation is named."""

    changed: list[str] = field(default_factory=list)
    beyond: set[str] = field(default_factory=set)
    slow: list[str] = field(default_factory=list)
    looks: int = 0
    comparisons: int = 0
    commit_looks: int = 0
    longest_still_s: float = 0.0


class Watch:
    """Reads results as they appear, re-reads finished ones, and follows the commits.

    - *changed*: a job that had ended reads differently, or is gone.
    - *beyond*: a committed offset lies above a record that, looked up afterwards, has no end.
    - *slow*: NO_PROGRESS (no job ended) or COMMIT_FROZEN (commits did not move) for 30 s in which
      nothing was broken. Measured, not forbidden: the machine may be busy.
    """

    def __init__(
        self,
        system: System,
        place: Place,
        brokers: Brokers,
        ledger: Ledger,
        timeline: Timeline,
        calm_s: Callable[[], float],
    ) -> None:
        self._system = system
        self._place = place
        self._brokers = brokers
        self._ledger = ledger
        self._timeline = timeline
        self._calm_s = calm_s
        self._over = threading.Event()
        self._known: dict[str, tuple[bytes | None, ...]] = {}
        self._order: list[str] = []
        self._open: dict[str, list[Spot]] = {}
        self._contested: set[str] = set()
        self._entered = self._read = 0
        self._random = random.Random(0)
        self._ended_at = self._committed_at = self._reported_at = time.monotonic()
        self._committed: dict[int, int] = {}
        self.seen = Seen()

    @property
    def unfinished(self) -> int:
        """Jobs in the ledger without an observed result."""
        return len(self._open) + len(self._ledger) - self._entered

    @property
    def ended_at(self) -> float:
        """Time of the latest observed result (monotonic)."""
        return self._ended_at

    def open_partitions(self) -> dict[int, int]:
        """Return the committed offset of each partition that is not committed to its end."""
        ends: dict[int, int] = {}
        for (partition, offset), _ in self._ledger.entries(0):
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        committed = self._committed
        return {
            each: committed.get(each, 0)
            for each, end in ends.items()
            if committed.get(each, 0) < end
        }

    def stop(self) -> None:
        """Stop reading."""
        self._over.set()

    def run(self) -> None:
        """Read until `stop`."""
        client = redis.Redis.from_url(self._place.redis, socket_timeout=2, socket_connect_timeout=2)
        commits_due = 0.0
        with client:
            while not self._over.wait(_PASS_S):
                try:
                    self._look(client)
                    if time.monotonic() >= commits_due:
                        self._follow_commits(client)
                        commits_due = time.monotonic() + _COMMITS_EVERY_S
                except redis.RedisError:
                    pass  # Redis is down; the jobs wait, and so does the watch
                self._judge_progress()

    def compare_all(self, ends: dict[str, End | None]) -> None:
        """Compare once more every result that was ever observed."""
        for job_id, before in self._known.items():
            end = ends.get(job_id)
            self._compare(job_id, before, end)

    # --- one look -------------------------------------------------------------------------------

    def _look(self, client: redis.Redis) -> None:
        entries = self._ledger.entries(self._entered)
        for spot, sent in entries:
            if sent.job_id is not None and sent.job_id not in self._known:
                spots = self._open.setdefault(sent.job_id, [])
                spots.append(spot)
                if sent.kind is Kind.CONFLICT:
                    self._contested.add(sent.job_id)
        self._entered += len(entries)
        self._read_open(client, self._next_open())
        if self._order:
            again = self._random.choices(self._order, k=_SAMPLE)
            for job_id, end in zip(again, self._system.ends(client, again), strict=True):
                self._compare(job_id, self._known[job_id], end)
        self.seen.looks += 1

    def _next_open(self) -> list[str]:
        """Return the next jobs to read, in turn: a stuck one must not hide the others."""
        ids = list(self._open)
        first = self._read if self._read < len(ids) else 0
        self._read = first + _CHUNK
        return ids[first : first + _CHUNK]

    def _read_open(self, client: redis.Redis, job_ids: Sequence[str]) -> None:
        for job_id, end in zip(job_ids, self._system.ends(client, job_ids), strict=True):
            if end is not None:
                self._known[job_id] = end.seen
                self._order.append(job_id)
                del self._open[job_id]
                self._ended_at = time.monotonic()

    def _compare(self, job_id: str, before: tuple[bytes | None, ...], end: End | None) -> None:
        self.seen.comparisons += 1
        if end is not None and end.seen == before:
            return
        now = None if end is None else end.seen
        words = f"{job_id} read {before} and now reads {now}"
        self.seen.changed.append(words)
        self._timeline.note("CHANGED", words=words)
        if end is not None:
            self._known[job_id] = end.seen

    # --- commits --------------------------------------------------------------------------------

    def _follow_commits(self, client: redis.Redis) -> None:
        place = self._place
        committed = self._brokers.committed(place.group, place.topic, place.partitions)
        if committed is None:
            return
        self.seen.commit_looks += 1
        if committed != self._committed:
            self._committed, self._committed_at = committed, time.monotonic()
        ids = [
            job_id
            for job_id, spots in self._open.items()
            # Of two payloads either may be the one that is settled by its dead letter, before the
            # job of the other ends: after a crash the later record may be taken first.
            if job_id not in self._contested | self.seen.beyond
            and any(offset < (committed.get(partition) or 0) for partition, offset in spots)
        ]
        # Read after the commit was: what has no end now had none then.
        for job_id, end in zip(ids, self._system.ends(client, ids), strict=True):
            if end is None:
                self.seen.beyond.add(job_id)
                if len(self.seen.beyond) <= _TOLD:
                    self._timeline.note("BEYOND", job_id=job_id)

    # --- progress -------------------------------------------------------------------------------

    def _judge_progress(self) -> None:
        now = time.monotonic()
        if not self.unfinished:
            self._ended_at = self._committed_at = now
            return
        calm_s = self._calm_s()
        still_s = min(calm_s, now - self._ended_at)
        frozen_s = min(calm_s, now - self._committed_at)
        self.seen.longest_still_s = max(self.seen.longest_still_s, still_s)
        if now - self._reported_at < _STILL_S:
            return
        for name, seconds in (("NO_PROGRESS", still_s), ("COMMIT_FROZEN", frozen_s)):
            if seconds > _STILL_S:
                self._reported_at = now
                words = f"{name} for {seconds:.0f} s, {self.unfinished} jobs unfinished"
                self.seen.slow.append(words)
                self._timeline.note("SLOW", words=words)
                break
