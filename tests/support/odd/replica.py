"""Cost of odd records for a live worker: restarts, stalls, CPU time and peak memory."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from support.chaos.system import DragomanWorker

_SCRAPE_EVERY_S: Final = 0.3
_READ_EVERY_S: Final = 1.2
"""The worker sets its gauges once per second and shows each stall twice."""
_RESTARTS: Final = "dragoman_replica_restarts_total"
_LAG: Final = "dragoman_event_loop_lag_seconds"
_CPU: Final = "dragoman_event_loop_lag_cpu_seconds"
_MIB: Final = 2**20


class ReplicaWatch:
    """Measures one worker during one round; call `look` repeatedly meanwhile."""

    def __init__(self, worker: DragomanWorker) -> None:
        self._worker = worker
        self._due = 0.0
        page = self._scrape()
        self._restarts_before = page.get(_RESTARTS, 0.0)
        self._shown = {page.get(_LAG), page.get(_CPU)}
        """Values that the page still shows from the previous round."""
        self._pids = {process.pid for process in self._processes()}
        for pid in self._pids:
            with suppress(OSError):  # resets VmHWM, where /proc exists
                Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
        self._cpu_before = self._cpu_s()
        self._answered_at, self._answered_cpu_s = time.monotonic(), self._cpu_before
        self.lag_s = self.cpu_lag_s = 0.0
        self.restarts = 0
        self.peak_mib = self.before_mib = self._peak_mib()

    def look(self) -> None:
        """Take a sample if one is due."""
        if time.monotonic() < self._due:
            return
        page = self._scrape()
        self.lag_s = max(self.lag_s, self._fresh(page, _LAG))
        self.cpu_lag_s = max(self.cpu_lag_s, self._fresh(page, _CPU))
        if _LAG in page or self._pids != {process.pid for process in self._processes()}:
            self._answered_at, self._answered_cpu_s = time.monotonic(), self._cpu_s()
        else:  # alive, but too busy to answer
            self.lag_s = max(self.lag_s, time.monotonic() - self._answered_at)
            self.cpu_lag_s = max(self.cpu_lag_s, self._cpu_s() - self._answered_cpu_s)
        if _RESTARTS in page:
            self.restarts = int(page[_RESTARTS] - self._restarts_before)
        self.peak_mib = max(self.peak_mib, self._peak_mib())
        self._due = time.monotonic() + _SCRAPE_EVERY_S

    def last_look(self) -> None:
        """Wait until the worker has set its gauges once more and take the last samples."""
        until = time.monotonic() + _READ_EVERY_S
        while time.monotonic() < until:
            self.look()
            time.sleep(0.05)
        self._due = 0.0
        self.look()
        if not self._worker.running or {one.pid for one in self._processes()} - self._pids:
            self.restarts = max(1, self.restarts)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of its processes so far, without processes that have exited."""
        return max(0.0, self._cpu_s() - self._cpu_before)

    def _fresh(self, page: dict[str, float], name: str) -> float:
        value = page.get(name, 0.0)
        return 0.0 if value in self._shown else value

    def _scrape(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for line in self._worker.get("/metrics")[1].splitlines():
            name, _, rest = line.replace("{", " ", 1).partition(" ")
            if name in {_RESTARTS, _LAG, _CPU}:
                with suppress(ValueError):
                    found[name] = found.get(name, 0.0) + float(rest.rsplit(" ", 1)[-1])
        return found

    def _processes(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._worker.pid).children(recursive=True)
        return []

    def _peak_mib(self) -> float:
        return sum(_peak_bytes(process.pid) for process in self._processes()) / _MIB

    def _cpu_s(self) -> float:
        total = 0.0
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total


def _peak_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
