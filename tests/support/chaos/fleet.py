"""The workers of a storm, and their restarts."""

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
"""A fault counts from this number of jobs in flight."""
_START_S: Final = 90.0
_LEAVE_S: Final = 60.0


class Fleet:
    """The workers of one storm: `w0`, `w1`, ... A worker that exits by itself is restarted.

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
        """Most jobs in flight of each worker that `look` has seen."""
        self._whole_since = time.monotonic()
        self._over = False

    # --- start and stop -------------------------------------------------------------------------

    def start(self) -> None:
        """Start all workers and wait until they claim jobs."""
        for _ in range(self._size):
            self.add()
        for worker in self.all():
            wait_until(worker.claims_jobs, timeout_s=_START_S, what=f"{worker.name} claims jobs")

    def stop(self) -> None:
        """Stop all workers for good; one that does not drain in time is killed."""
        with self._lock:
            self._over = True
        for worker in self.all():
            worker.resume()
            worker.terminate()
        for worker in self.all():
            worker.stop(grace_s=_LEAVE_S)

    def add(self) -> str:
        """Start another worker and return its name."""
        name = f"w{next(self._numbers)}"
        worker = self._system.worker(self._place, name)
        self._start(worker)
        with self._lock:
            self._workers[name] = worker
        return name

    def _start(self, worker: Worker) -> None:
        # A repair that outlives an interrupted storm must not start a worker after `stop`.
        with self._lock:
            if not self._over:
                worker.start()

    def settled(self, name: str) -> str:
        """Wait until a worker claims jobs or has been removed meanwhile."""
        worker = self[name]
        wait_until(
            lambda: worker.claims_jobs() or name not in self._workers,
            timeout_s=_START_S,
            what=f"{name} claims jobs",
        )
        return "claims jobs"

    def remove(self, name: str) -> str:
        """Drain and remove a worker; return its outcome."""
        worker = self[name]
        outcome = self._drain(worker)
        worker.stop(grace_s=1.0)
        with self._lock:
            del self._workers[name]
        return outcome

    def restart(self, name: str) -> None:
        """Start a worker that has exited."""
        self._start(self[name])

    def drain(self, name: str) -> str:
        """Send SIGTERM, wait, and return the outcome."""
        return self._drain(self[name])

    def mend(self) -> None:
        """Continue and restart all workers."""
        for worker in self.all():
            worker.resume()
        self.revive()

    def revive(self) -> None:
        """Restart workers that exited by themselves; called repeatedly, like a supervisor."""
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
        """Check whether all workers claim jobs: a start takes seconds."""
        if not all(worker.claims_jobs() for worker in self.all()):
            self._whole_since = time.monotonic()
        for worker in self.all():
            largest = max(self.largest_in_flight.get(worker.name, 0.0), worker.in_flight() or 0.0)
            self.largest_in_flight[worker.name] = largest

    def whole_s(self) -> float:
        """Return for how many seconds all have claimed jobs, as far as `look` has seen."""
        return time.monotonic() - self._whole_since

    # --- choosing -------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Worker:
        with self._lock:
            return self._workers[name]

    def all(self) -> list[Worker]:
        """Return all workers, running or not."""
        with self._lock:
            return list(self._workers.values())

    @property
    def removable(self) -> bool:
        """Whether there are more workers than at the start."""
        return len(self.all()) > self._size - 1

    @property
    def growable(self) -> bool:
        """Whether another worker may be added."""
        return len(self.all()) < self._size + 1

    def choose(
        self,
        who: float,
        target: str | None,
        *,
        deadly: bool,
        suits: Callable[[Worker], bool] = lambda _: True,
    ) -> tuple[Worker, float | None] | None:
        """Choose a worker without a fault, busy ones first; return it and its jobs in flight.

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
            and suits(worker)
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
        """Mark a worker as free of faults."""
        self._in_treatment.discard(name)

    def _drain(self, worker: Worker) -> str:
        worker.terminate()
        try:
            return f"exit {worker.wait(timeout_s=_LEAVE_S)}"
        except NotInTime:
            worker.kill(everything=True)
            return f"did not exit within {_LEAVE_S:g} s"


class Supervising:
    """Restarts and observes the fleet every half second, in a thread."""

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
    """Sums of counters over all processes of all workers; a falling counter means a new process."""

    def __init__(self, fleet: Fleet, names: tuple[str, ...]) -> None:
        self._fleet = fleet
        self._names = names
        self._latest: dict[tuple[str, int, str], float] = {}

    def look(self) -> None:
        """Read all counters once; those of a stopped or dead worker keep their value."""
        for worker in self._fleet.all():
            if not worker.running:
                continue
            for name in self._names:
                if value := worker.metric(name):
                    self._latest[worker.name, worker.pid, name] = value

    def sums(self) -> Counter[str]:
        """Return the sum of each counter, without the last second of each killed process."""
        sums: Counter[str] = Counter()
        for (_, _, name), value in self._latest.items():
            sums[name] += int(value)
        return sums
