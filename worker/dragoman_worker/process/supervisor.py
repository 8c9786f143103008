"""Supervisor of all replicas: signals, one shutdown deadline, one HTTP port, one exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    generate_latest,
)

from dragoman_worker.log import logger, take_dropped
from dragoman_worker.process import stderr_relay
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.children import ChildProcesses, Replica
from dragoman_worker.process.exits import Exit
from dragoman_worker.process.http import HttpServer, checks_response
from dragoman_worker.process.journal import Crashes
from dragoman_worker.process.placement import Place, Shared
from dragoman_worker.process.probes import PROBE_S, ProbeAnswer, ask_all, ask_for_one
from dragoman_worker.process.restarts import ReplicaRestarter
from dragoman_worker.process.signals import stop_signals
from dragoman_worker.settings import WorkerSettings

MARGIN_S: Final = 15.0
"""Seconds after the grace period until a replica is killed: an engine stops slowly under load."""
STARTING_S: Final = 5.0
"""Grace period of a stopped replica that was not ready and has no jobs."""
ABORTING_S: Final = 1.2
"""Time to release claims after the second signal: the whole `run` exits within 2 s."""


class ReplicaMetrics:
    """Metrics about replicas, kept by the supervisor."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.up = Gauge(
            "dragoman_replica_up",
            "1 for a replica that answered this scrape.",
            ["replica"],
            registry=registry,
        )
        self.restarts = Counter(
            "dragoman_replica_restarts",
            "Restarts of a replica.",
            ["replica"],
            registry=registry,
        )
        dropped = Counter(
            "dragoman_log_lines_dropped",
            "Lines of the log that could not be written.",
            ["replica"],
            registry=registry,
        )
        self.log_lines_dropped = dropped.labels("supervisor")
        """Of all processes: the supervisor writes what they print."""


class Supervisor:
    """The replicas of one `run`, from the first start to the last exit."""

    def __init__(
        self,
        settings: WorkerSettings,
        children: ChildProcesses,
        backoff: Callable[[], Backoff],
        crashes: Crashes,
        places: Sequence[Place],
    ) -> None:
        self._settings = settings
        self._children = children
        self._backoff = backoff
        self._crashes = crashes
        self._shared = Shared(places)
        self._log = logger()
        self._metrics = ReplicaMetrics(CollectorRegistry())
        self._places = places
        self._numbers = range(len(places))
        self._kills: list[asyncio.TimerHandle] = []

    async def run(self) -> Exit:
        """Run all replicas until a signal or until a restart cannot help. Raises SettingsError."""
        async with AsyncExitStack() as stack:
            self._report_fork_server()
            stack.enter_context(self._children.reaping())
            stack.enter_context(stop_signals(self._stop, self._abort))
            http = HttpServer(
                self._settings.http,
                {
                    "/startupz": self._startupz,
                    "/livez": self._livez,
                    "/readyz": self._readyz,
                    "/metrics": self._scrape,
                },
            )
            stack.push_async_callback(http.close)
            port = await http.start()
            self._log.info("http_listening", host=self._settings.http.host, port=port)
            try:
                return await self._run_replicas()
            finally:
                for kill in self._kills:
                    kill.cancel()

    async def _run_replicas(self) -> Exit:
        restarters = [
            asyncio.create_task(self._restarter(number).run(), name=f"replica-{number}")
            for number in self._numbers
        ]
        done, _ = await asyncio.wait(restarters, return_when=asyncio.FIRST_COMPLETED)
        self._stop()  # if one exits without a signal, the others drain too
        first = _worst(restarter.result() for restarter in done)
        others = _worst(await asyncio.gather(*restarters))
        return first if first.status else others

    def _report_fork_server(self) -> None:
        server, log = self._children.fork_server, self._log
        server.on_ready = lambda seconds: log.info("fork_server_ready", seconds=round(seconds, 1))
        server.on_lost = lambda status: log.warning("fork_server_lost", status=status)
        server.on_unavailable = lambda why: log.warning("fork_server_unavailable", reason=why)

    def _restarter(self, number: int) -> ReplicaRestarter:
        restarts = self._metrics.restarts.labels(str(number))
        return ReplicaRestarter(
            number,
            place=self._places[number],
            children=self._children,
            shared=self._shared,
            backoff=self._backoff(),
            crashes=self._crashes,
            stuck_after_s=self._settings.supervisor.stuck_after_s,
            start_within_s=self._settings.supervisor.start_within_s,
            restarted=restarts.inc,
        )

    # --- stop -------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Let all replicas drain until one common deadline. Idempotent."""
        if self._shared.stopping.is_set():
            return
        self._shared.stopping.set()
        replicas = self._replicas()
        for replica in replicas:
            replica.stop()
        starting = [replica for replica in replicas if not replica.ready.is_set()]
        self._kill_after(STARTING_S, starting)
        self._kill_after(self._settings.shutdown.grace_s + MARGIN_S, replicas)
        self._log.info("stopping", replicas=len(replicas))

    def _abort(self) -> None:
        self._stop()
        self._shared.aborted = True
        for replica in self._replicas():
            replica.abort()
        self._kill_after(ABORTING_S, self._replicas())

    def _replicas(self) -> list[Replica]:
        found = (self._children.replica(number) for number in self._numbers)
        return [replica for replica in found if replica is not None]

    def _kill_after(self, seconds: float, replicas: Iterable[Replica]) -> None:
        loop = asyncio.get_running_loop()
        self._kills += [loop.call_later(seconds, replica.kill) for replica in replicas]

    # --- pages ------------------------------------------------------------------------------------

    async def _startupz(self, _: web.Request) -> web.StreamResponse:
        """Answer 200 once any replica has been ready; until then, what each one waits for."""
        if self._shared.any_was_ready:
            return checks_response([])
        answers = await ask_all(self._sockets(self._numbers), "/startupz", within_s=PROBE_S)
        ready = any(answer.ok for answer in answers.values())
        return checks_response([] if ready else _failing(answers))

    async def _livez(self, _: web.Request) -> web.StreamResponse:
        """Answer 200 if each ready replica answers; their start limit covers the others."""
        ready = [number for number in self._numbers if self._has_been_ready(number)]
        answers = await ask_all(self._sockets(ready), "/livez", within_s=PROBE_S)
        return checks_response(_failing(answers))

    async def _readyz(self, _: web.Request) -> web.StreamResponse:
        if self._shared.stopping.is_set():
            return checks_response(["not draining"])
        sockets = self._sockets(self._numbers)
        answers = await ask_for_one(sockets, "/readyz", within_s=PROBE_S)
        return checks_response(
            [] if any(answer.ok for answer in answers.values()) else _failing(answers)
        )

    async def _scrape(self, _: web.Request) -> web.StreamResponse:
        answers = await ask_all(self._sockets(self._numbers), "/metrics")
        for number, answer in answers.items():
            self._metrics.up.labels(str(number)).set(answer.ok)
        self._metrics.log_lines_dropped.inc(take_dropped() + stderr_relay.take_dropped())
        own = generate_latest(self._metrics.registry).decode()
        text = merged([own, *(answer.text for answer in answers.values() if answer.ok)])
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _has_been_ready(self, number: int) -> bool:
        replica = self._children.replica(number)
        return replica is not None and replica.ready.is_set()

    def _sockets(self, numbers: Iterable[int]) -> dict[int, Path]:
        return {number: self._children.socket(number) for number in numbers}


def _failing(answers: dict[int, ProbeAnswer]) -> list[str]:
    return [f"replica {number}: {a.reason}" for number, a in answers.items() if not a.ok]


def _worst(exits: Iterable[Exit]) -> Exit:
    return max(exits, key=lambda each: each.status)


def merged(pages: Iterable[str]) -> str:
    """Merge metrics pages in Prometheus' text format: each family once, with all its samples.

    The samples of the pages differ in their labels. Text is merged as text, so that no value is
    parsed and formatted again.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for page in pages:
        name = ""
        for line in page.splitlines():
            if line.startswith("#"):
                _, kind, name, *_ = [*line.split(" ", 3), "", ""]
                head = heads.setdefault(name, [])
                if not any(known.startswith(f"# {kind} ") for known in head):
                    head.append(line)
            elif line:
                samples.setdefault(name, []).append(line)
    lines = (line for name in heads for line in (*heads[name], *samples.get(name, ())))
    return "".join(f"{line}\n" for line in lines)
