"""A box in a process of its own: `dragoman up`, how to reach it, and its parts to kill."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import psutil
import redis

from support.processes.child_process import ChildProcess, argv_of, command
from support.processes.waiting import wait_until

BoxPart = Literal["worker", "redis", "broker", "gateway"]
_PARTS: dict[BoxPart, str] = {
    "worker": "-m dragoman_worker run",
    "redis": "redis-server",
    "broker": "-m dragoman_producer.box.broker",
    "gateway": "-m dragoman_gateway",
}


class BoxProcess(ChildProcess):
    """`dragoman up` with its data below a short folder."""

    def __init__(self, folder: Path, *arguments: str, data: str = "data", **env: str) -> None:
        self.folder = folder
        super().__init__(
            command("dragoman", "up", "--json", "--data", str(folder / data), *arguments),
            log=folder / "up",
            env={"TMPDIR": str(folder), "XDG_RUNTIME_DIR": "", **env},
            split_streams=True,
        )

    def reached(self, timeout_s: float = 60.0) -> dict[str, Any]:
        """Return what it prints once it is ready."""
        line = self.wait_for(self._line, timeout_s=timeout_s, what="the addresses")
        reached: dict[str, Any] = json.loads(line)
        return reached

    def ready(self, earlier: int) -> None:
        """Wait for its addresses, after those of as many earlier starts in the same folder."""
        self.wait_for(
            lambda: len(self.output.splitlines()) > earlier, timeout_s=60, what="the addresses"
        )

    def _line(self) -> str:
        lines = self.output.splitlines(keepends=True)
        return lines[-1] if lines and lines[-1].endswith("\n") else ""

    @property
    def env(self) -> dict[str, str]:
        """The environment of a command that uses it."""
        reached = self.reached()
        return {
            **os.environ,
            "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": reached["bootstrap_servers"],
            "DRAGOMAN_REDIS__URL": reached["redis_url"],
        }

    @contextmanager
    def redis(self) -> Iterator[redis.Redis]:
        """Connect to its Redis."""
        with redis.Redis.from_url(self.reached()["redis_url"]) as client:
            yield client

    def parts(self) -> list[psutil.Process]:
        """Return every process that it has started, and that runs."""
        return psutil.Process(self.pid).children(recursive=True) if self.running else []

    def part(self, name: BoxPart) -> psutil.Process | None:
        """Return the process of a part, not the link before it; None while it is down."""
        for process in self.parts():
            argv = " ".join(argv_of(process))
            if _PARTS[name] in argv and "parent_link" not in argv and " replica " not in argv:
                return process
        return None

    def kill_part(self, name: BoxPart) -> None:
        """Kill a part, and wait until it is gone."""
        victim = wait_until(lambda: self.part(name), timeout_s=30, what=name)
        assert victim is not None
        victim.send_signal(signal.SIGKILL)
        wait_until(lambda: not victim.is_running() or victim.status() == "zombie", timeout_s=20,
                   what=f"the end of {name}")  # fmt: skip

    def kill_all(self) -> None:
        """Kill the box and every part at once, as a power cut does; wait until all are gone."""
        every = [psutil.Process(self.pid), *self.parts()]
        for process in every:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(every, timeout=20)
