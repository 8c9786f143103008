"""Systems under test in a storm: programs that read jobs from a topic and write results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Final, Protocol

import psutil
import redis

from support.chaos.sent import Kind
from support.chaos.texts import SETTINGS, write_table
from support.processes.child_process import ChildProcess
from support.processes.worker_process import ForkedWorker, WorkerProcess, sum_of

TERMINAL: Final = frozenset({"completed", "failed", "cancelled", "expired"})
_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """The services of a system: one topic, one group and one Redis, new for every storm.

    The program under test gives back `[de] TEXT` for the job's `text`, after `latency_s` seconds on
    average (uniform within `latency_s` x (1 +- `spread`), by a hash of the text).
    """

    kafka: str
    redis: str
    topic: str
    dead_letter_topic: str
    group: str
    partitions: int
    folder: Path
    session_timeout_s: float = 6.0
    latency_s: float = 0.6
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class End:
    """A terminal state as a reader sees it. `seen` holds the bytes that must never change."""

    status: str
    text: str | None
    code: str | None
    seen: tuple[bytes | None, ...] = field(repr=False)
    fingerprint: str | None = None
    deliveries: int = 1
    cached: bool = False


class Worker(Protocol):
    """One program of the system under test; a stopped or killed one may be started again."""

    @property
    def name(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def output(self) -> str: ...
    def start(self) -> Any: ...
    def stop(self, *, grace_s: float = ...) -> None: ...
    def kill(self, *, everything: bool = ...) -> None: ...
    def terminate(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def wait(self, *, timeout_s: float) -> int: ...
    def claims_jobs(self) -> bool:
        """Return whether it claims jobs now, without a long wait."""
        ...

    def in_flight(self) -> float | None:
        """Return the number of jobs in flight, None if it is unknown."""
        ...

    def metric(self, name: str) -> float: ...
    def kill_replica(self) -> None:
        """Send SIGKILL to a process that does the work, where that is not the first one."""
        ...


class System(Protocol):
    """A program: how its workers are started and how the outcome of a job is read.

    For a foreign program implement this class; see `support.chaos.foreign_system`.
    """

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of load it understands (names of `support.chaos.load.Kind`)."""
        ...

    @property
    def letters(self) -> bool:
        """Whether failures go to the dead-letter topic, with `x-original-*` headers."""
        ...

    def worker(self, place: Place, name: str) -> Worker:
        """Return a worker that has not been started."""
        ...

    def ends(self, client: redis.Redis, job_ids: Sequence[str]) -> list[End | None]:
        """Return the terminal states of these jobs, None for a job without one."""
        ...

    def audit(self, place: Place) -> tuple[int, str] | None:
        """Run its own audit; return status and output, None without such a command."""
        ...


# --- processes in groups ------------------------------------------------------------------------


class GroupProcess(ChildProcess):
    """A child process that is stopped and continued with its whole process group."""

    def pause(self) -> None:
        """Send SIGSTOP to the whole group."""
        self._send_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT to the whole group."""
        self._send_group(signal.SIGCONT)

    def _send_group(self, number: signal.Signals) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)  # it leads its session, so its group id is its pid


# --- Dragoman -----------------------------------------------------------------------------------


class DragomanWorker(WorkerProcess, GroupProcess):
    """A `dragoman-worker run` on the echo engine."""

    host = "127.0.0.1"
    """Host of its HTTP pages."""

    def __init__(
        self, place: Place, name: str, settings: Mapping[str, Any], env: Mapping[str, str]
    ) -> None:
        self.name = name
        super().__init__(
            place.folder,
            kafka=place.kafka,
            redis=place.redis,
            topic=place.topic,
            name=name,
            settings={
                "kafka.dead_letter_topic": place.dead_letter_topic,
                "kafka.group_id": place.group,
                "kafka.session_timeout_s": place.session_timeout_s,
                "engine.echo.latency_s": place.latency_s,
                "engine.echo.latency_spread": place.spread,
                "worker_id": name,
                **settings,
            },
            env=env,
        )

    def claims_jobs(self) -> bool:
        """Return whether it claims jobs now."""
        return self.running and self.metric("dragoman_ready") > 0

    def kill_replica(self) -> None:
        """Send SIGKILL to its largest process but the first, which must notice."""
        with contextlib.suppress(psutil.NoSuchProcess):
            replicas = psutil.Process(self.pid).children(recursive=True)
            if replicas:
                max(replicas, key=lambda process: process.memory_info().rss).kill()
                return
        self.kill()

    def in_flight(self) -> float | None:
        """Return the jobs in flight by its metric, a second old at most; None without an answer."""
        if not self.running:
            return 0.0
        status, page = self.get("/metrics")
        return sum_of("dragoman_jobs_in_flight", page) if status == 200 else None

    def get(self, path: str) -> tuple[int, str]:
        """Return a page like its parent, but without a long wait for a stopped worker."""
        url = f"http://{self.host}:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=_LOOK_S) as response:
                return response.status, response.read().decode()
        except OSError:
            return 0, ""


class ForkedDragomanWorker(DragomanWorker, ForkedWorker):
    """One replica on the echo engine, without a supervisor."""


class Dragoman:
    """The worker; `package_path` precedes the installed packages (mutants, old versions).

    With `mixed` every second worker has it, the others the installed ones: an upgrade half-way.
    `supervised=False` runs replicas without their supervisors, which start 20 times as fast.
    `trust=True` judges, remembers and coalesces; the load then needs `RepeatedTexts`.
    """

    name = "dragoman"
    letters = True

    def __init__(
        self,
        *,
        package_path: Path | None = None,
        mixed: bool = False,
        settings: Mapping[str, Any] | None = None,
        supervised: bool = True,
        trust: bool = False,
    ) -> None:
        self._trust = trust
        self._kind = DragomanWorker if supervised else ForkedDragomanWorker
        self._settings = dict(settings or {})
        placed = {} if package_path is None else {"PYTHONPATH": str(package_path)}
        self._env = cycle((placed, {} if mixed else placed))

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds of load."""
        return frozenset(kind.value for kind in Kind)

    def worker(self, place: Place, name: str) -> DragomanWorker:
        """Return a worker that has not been started."""
        settings = self._settings
        if self._trust:
            table = write_table(place.folder / "answers.tsv")
            settings = SETTINGS | {"engine.echo.table": str(table)} | settings
        return self._kind(place, name, settings, next(self._env))

    def ends(self, client: redis.Redis, job_ids: Sequence[str]) -> list[End | None]:
        """Read the hashes of these jobs once."""
        pipeline = client.pipeline(transaction=False)
        for job_id in job_ids:
            pipeline.hmget(f"dragoman:job:{job_id}", *_FIELDS)
        return [_end(fields) for fields in pipeline.execute()]

    def audit(self, place: Place) -> tuple[int, str] | None:
        """Run `dragoman audit` and return its status and output."""
        script = Path(sys.executable).with_name("dragoman")
        done = subprocess.run(
            [str(script), "audit", "--json"],
            env={
                **os.environ,
                "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": place.kafka,
                "DRAGOMAN_KAFKA__TOPICS": json.dumps([place.topic]),
                "DRAGOMAN_KAFKA__DEAD_LETTER_TOPIC": place.dead_letter_topic,
                "DRAGOMAN_KAFKA__GROUP_ID": place.group,
                "DRAGOMAN_REDIS__URL": place.redis,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout[-2000:] + done.stderr[-2000:]


_FIELDS: Final = ("status", "result", "finished_at", "fingerprint", "deliveries", "replays")


def _end(fields: Sequence[bytes | None]) -> End | None:
    status = (fields[0] or b"").decode()
    if status not in TERMINAL:
        return None
    result = json.loads(fields[1] or b"{}")
    items = result.get("translations") or [{}]
    return End(
        status=status,
        text=items[0].get("text"),
        code=(result.get("error") or items[0].get("error") or {}).get("code"),
        seen=tuple(fields),
        fingerprint=(fields[3] or b"").decode(),
        deliveries=int(fields[4] or 0),
        cached=items[0].get("cached") is True,
    )
