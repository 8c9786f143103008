"""Which workers are there, and who starts those again that a storm has killed?"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from support.chaos.system import Place, System, Worker
from support.chaos.timeline import Timeline
from support.processes.waiting import NotInTime, wait_until

BUSY: Final = 10
"""So many jobs in hand make a blow count."""
_START_S: Final = 90.0
_LEAVE_S: Final = 60.0


class Fleet:
    """The workers of one storm: `w0`, `w1`, ... A worker that ends unasked is started again.

    `spared` are only ever stopped and continued, never killed: their memory can be watched.
    """

    def __init__(
        self,
        system: System,
        place: Place,
        timeline: Timeline,
        *,
        size: int,
        spared: frozenset[str] = frozenset(),
    ) -> None:
        self._system = system
        self._place = place
        self._timeline = timeline
        self._size = size
        self.spared = spared
        self._lock = threading.Lock()
        self._workers: dict[str, Worker] = {}
        self._in_treatment: set[str] = set()
        self._numbers = iter(range(10_000))
        self.own_deaths = 0
        self.largest_in_flight: dict[str, float] = {}
        """Jobs in hand of each worker at most, as far as `look` saw."""
        self._whole_since = time.monotonic()
        self._over = False

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all, and wait until they take jobs."""
        for _ in range(self._size):
            self.add()
        for worker in self.all():
            wait_until(worker.claims_jobs, timeout_s=_START_S, what=f"{worker.name} takes jobs")

    def stop(self) -> None:
        """End all, for good; what does not drain in time is killed."""
        with self._lock:
            self._over = True
        for worker in self.all():
            worker.resume()
            worker.terminate()
        for worker in self.all():
            worker.stop(grace_s=_LEAVE_S)

    def add(self) -> str:
        """One more; its name."""
        name = f"w{next(self._numbers)}"
        worker = self._system.worker(self._place, name)
        self._start(worker)
        with self._lock:
            self._workers[name] = worker
        return name

    def _start(self, worker: Worker) -> None:
        # An interrupted storm may leave a healer behind, which must not outdo `stop`.
        with self._lock:
            if not self._over:
                worker.start()

    def settled(self, name: str) -> str:
        """Wait until one takes jobs, or has been removed meanwhile."""
        worker = self[name]
        wait_until(
            lambda: worker.claims_jobs() or name not in self._workers,
            timeout_s=_START_S,
            what=f"{name} takes jobs",
        )
        return "takes jobs"

    def remove(self, name: str) -> str:
        """Drain one and forget it; what became of it."""
        worker = self[name]
        told = self._drain(worker)
        worker.stop(grace_s=1.0)
        with self._lock:
            del self._workers[name]
        return told

    def restart(self, name: str) -> None:
        """Start one that has ended."""
        self._start(self[name])

    def drain(self, name: str) -> str:
        """SIGTERM and wait; how it ended."""
        return self._drain(self[name])

    def mend(self) -> None:
        """All continue and run."""
        for worker in self.all():
            worker.resume()
        self.revive()

    def revive(self) -> None:
        """Start again those that ended on their own; called all the time, as a supervisor would."""
        for worker in self.all():
            if worker.name not in self._in_treatment and not worker.running:
                self.own_deaths += 1
                last_words = worker.output[-400:]
                self._timeline.note(
                    "died", target=worker.name, status=worker.returncode, words=last_words
                )
                worker.stop(grace_s=0.1)
                self._start(worker)

    def look(self) -> None:
        """See whether all take jobs: a worker takes seconds to start."""
        if not all(worker.claims_jobs() for worker in self.all()):
            self._whole_since = time.monotonic()
        for worker in self.all():
            largest = max(self.largest_in_flight.get(worker.name, 0.0), worker.in_flight() or 0.0)
            self.largest_in_flight[worker.name] = largest

    def whole_s(self) -> float:
        """For how many seconds all have been taking jobs, as far as `look` saw."""
        return time.monotonic() - self._whole_since

    # --- choosing -------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Worker:
        with self._lock:
            return self._workers[name]

    def all(self) -> list[Worker]:
        """All workers, running or not."""
        with self._lock:
            return list(self._workers.values())

    @property
    def removable(self) -> bool:
        """Whether there are more than there were at the start."""
        return len(self.all()) > self._size - 1

    @property
    def growable(self) -> bool:
        """Whether there is room for another."""
        return len(self.all()) < self._size + 1

    def choose(
        self, who: float, target: str | None, *, deadly: bool
    ) -> tuple[Worker, float | None] | None:
        """A worker that nothing is being done to, the busiest kind first, and its jobs in hand.

        `who` says where in the row to begin; the first that is busy is taken, else the first.
        It stays out of everybody's hands until `release`. None if there is nobody.
        """
        free = [
            worker
            for worker in self.all()
            if worker.name not in self._in_treatment
            and worker.running
            and not (deadly and worker.name in self.spared)
            and target in {None, worker.name}
        ]
        if not free:
            return None
        first = int(who * len(free))
        row = free[first:] + free[:first]
        looks = [(worker, worker.in_flight()) for worker in row]
        worker, in_flight = next(
            (look for look in looks if look[1] is None or look[1] >= BUSY), looks[0]
        )
        self._in_treatment.add(worker.name)
        return worker, in_flight

    def release(self, name: str) -> None:
        """Whoever treated it has done."""
        self._in_treatment.discard(name)

    def _drain(self, worker: Worker) -> str:
        worker.terminate()
        try:
            return f"exit {worker.wait(timeout_s=_LEAVE_S)}"
        except NotInTime:
            worker.kill(everything=True)
            return f"did not end within {_LEAVE_S:g} s"


class Supervising:
    """Revives and looks at the fleet every half second, in a thread."""

    def __init__(self, fleet: Fleet, look: Callable[[], None]) -> None:
        self._fleet = fleet
        self._look = look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervising", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._over.wait(0.5):
            self._fleet.revive()
            self._fleet.look()
            with suppress(OSError):
                self._look()


class Tallies:
    """Sums of counters over all lives of all workers: a counter that falls is a new life."""

    def __init__(self, fleet: Fleet, names: tuple[str, ...]) -> None:
        self._fleet = fleet
        self._names = names
        self._latest: dict[tuple[str, int, str], float] = {}

    def look(self) -> None:
        """Read them all once; a stopped or dead worker keeps what it had."""
        for worker in self._fleet.all():
            if not worker.running:
                continue
            for name in self._names:
                if value := worker.metric(name):
                    self._latest[worker.name, worker.pid, name] = value

    def sums(self) -> Counter[str]:
        """The sum of each counter, as far as it was seen (what a victim did in its last second
        is missing)."""
        sums: Counter[str] = Counter()
        for (_, _, name), value in self._latest.items():
            sums[name] += int(value)
        return sums
