"""Growth of long-lived workers: memory, files, threads and tasks over time, and their slopes."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psutil

from support.chaos.system import Worker

_WARM_UP: Final = 0.2
"""The first fifth of the samples is warm-up and no trend."""


@dataclass(frozen=True, slots=True)
class Trend:
    """First, last and largest value of one gauge of one worker, and its slope per hour."""

    worker: str
    gauge: str
    first: float
    last: float
    largest: float
    slope_an_hour: float
    stats: int


class Gauges:
    """Reads all processes of each worker every `every_s` seconds, in a thread."""

    def __init__(self, workers: Callable[[], list[Worker]], *, every_s: float = 5.0) -> None:
        self._workers = workers
        self._every_s = every_s
        self._began = time.monotonic()
        self._over = threading.Event()
        self._stats: dict[tuple[str, int, str], list[tuple[float, float]]] = defaultdict(list)

    def run(self) -> None:
        """Read until `stop`."""
        while not self._over.wait(self._every_s):
            for worker in self._workers():
                self._read(worker)

    def stop(self) -> None:
        """Stop reading."""
        self._over.set()

    def _read(self, worker: Worker) -> None:
        try:
            root = psutil.Process(worker.pid)
            family = [root, *root.children(recursive=True)]
            values = {
                "rss_mb": sum(process.memory_info().rss for process in family) / 2**20,
                "open_files": sum(process.num_fds() for process in family),
                "threads": sum(process.num_threads() for process in family),
            }
        except psutil.Error:
            return  # it has just exited
        if tasks := worker.metric("dragoman_event_loop_tasks"):
            values["tasks"] = tasks
        at_s = time.monotonic() - self._began
        for gauge, value in values.items():
            self._stats[worker.name, worker.pid, gauge].append((at_s, value))

    def trends(self) -> list[Trend]:
        """Return the least-squares line of each gauge of each process, without its warm-up."""
        found = []
        for (worker, _, gauge), stats in sorted(self._stats.items()):
            settled = stats[int(len(stats) * _WARM_UP) :]
            if len(settled) < 3:
                continue
            values = [value for _, value in settled]
            slope = statistics.linear_regression([at_s for at_s, _ in settled], values).slope
            found.append(
                Trend(
                    worker=worker,
                    gauge=gauge,
                    first=round(values[0], 1),
                    last=round(values[-1], 1),
                    largest=round(max(values), 1),
                    slope_an_hour=round(slope * 3600, 2),
                    stats=len(values),
                )
            )
        return found
