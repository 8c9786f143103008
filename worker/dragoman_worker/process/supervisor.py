"""What holds the replicas together? Signals, one deadline, one HTTP port and one exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from dragoman_worker.log import logger
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.children import ChildProcesses, Replica
from dragoman_worker.process.crashes import Crashes
from dragoman_worker.process.end import End
from dragoman_worker.process.http import HttpServer, verdict
from dragoman_worker.process.merging import merged
from dragoman_worker.process.metrics import ReplicaMetrics
from dragoman_worker.process.probes import PROBE_S, Answer, ask_all, ask_for_one
from dragoman_worker.process.restarts import ReplicaRestarter, Shared
from dragoman_worker.process.signals import signals_heard, stop_signals
from dragoman_worker.settings import WorkerSettings

MARGIN_S: Final = 15.0
"""After the grace: an engine takes its time to end on a busy machine."""
STARTING_S: Final = 5.0
"""How long a stopped replica may take that has no jobs yet."""
ABORTING_S: Final = 1.2
"""How long replicas may give back their claims after the second signal: all is over in 2 s."""


class Supervisor:
    """The replicas of one `run`, from the first start to the last end."""

    def __init__(
        self,
        settings: WorkerSettings,
        children: ChildProcesses,
        backoff: Callable[[], Backoff],
        crashes: Crashes,
    ) -> None:
        if settings.engine.replicas == "auto":
            raise ValueError("engine.replicas: auto is counted before there is a house")
        self._settings = settings
        self._children = children
        self._backoff = backoff
        self._crashes = crashes
        self._shared = Shared()
        self._log = logger()
        self._metrics = ReplicaMetrics(CollectorRegistry())
        self._numbers = range(settings.engine.replicas)
        self._killings: list[asyncio.TimerHandle] = []

    async def run(self) -> End:
        """Keep every replica until a signal or until one cannot be kept. Raises SettingsError."""
        async with AsyncExitStack() as stack:
            stack.enter_context(self._children.reaping())
            stack.enter_context(stop_signals(self._stop, self._abort))
            stack.enter_context(signals_heard())
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
                return await self._keep()
            finally:
                for killing in self._killings:
                    killing.cancel()

    async def _keep(self) -> End:
        restarters = [
            asyncio.create_task(self._restarter(number).keep(), name=f"replica-{number}")
            for number in self._numbers
        ]
        ended, _ = await asyncio.wait(restarters, return_when=asyncio.FIRST_COMPLETED)
        self._stop()  # one that ends without a signal takes the others along, drained
        first = _worst(restarter.result() for restarter in ended)
        others = _worst(await asyncio.gather(*restarters))
        return first if first.status else others

    def _restarter(self, number: int) -> ReplicaRestarter:
        restarts = self._metrics.restarts.labels(str(number))
        return ReplicaRestarter(
            number,
            children=self._children,
            shared=self._shared,
            backoff=self._backoff(),
            crashes=self._crashes,
            stuck_after_s=self._settings.supervisor.stuck_after_s,
            start_within_s=self._settings.supervisor.start_within_s,
            started_again=restarts.inc,
        )

    # --- stop -------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Let all drain to one deadline. Only the first time counts."""
        if self._shared.stopping.is_set():
            return
        self._shared.stopping.set()
        replicas = self._replicas()
        self._log.info("stopping", replicas=len(replicas))
        for replica in replicas:
            replica.stop()
        starting = [replica for replica in replicas if not replica.ready.is_set()]
        self._kill_after(STARTING_S, starting)
        self._kill_after(self._settings.shutdown.grace_s + MARGIN_S, replicas)

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
        self._killings += [loop.call_later(seconds, replica.kill) for replica in replicas]

    # --- pages ------------------------------------------------------------------------------------

    async def _startupz(self, _: web.Request) -> web.StreamResponse:
        """Whether one has ever been ready; until then, what each is starting."""
        if self._shared.any_was_ready:
            return verdict([])
        answers = await ask_all(self._sockets(self._numbers), "/startupz", within_s=PROBE_S)
        ready = any(answer.ok for answer in answers.values())
        return verdict([] if ready else _failing(answers))

    async def _livez(self, _: web.Request) -> web.StreamResponse:
        """Those that have been ready must answer; the others are seen to."""
        ready = [number for number in self._numbers if self._has_been_ready(number)]
        answers = await ask_all(self._sockets(ready), "/livez", within_s=PROBE_S)
        return verdict(_failing(answers))

    async def _readyz(self, _: web.Request) -> web.StreamResponse:
        if self._shared.stopping.is_set():
            return verdict(["not draining"])
        sockets = self._sockets(self._numbers)
        answers = await ask_for_one(sockets, "/readyz", within_s=PROBE_S)
        return verdict([] if any(answer.ok for answer in answers.values()) else _failing(answers))

    async def _scrape(self, _: web.Request) -> web.StreamResponse:
        answers = await ask_all(self._sockets(self._numbers), "/metrics")
        for number, answer in answers.items():
            self._metrics.up.labels(str(number)).set(answer.ok)
        own = generate_latest(self._metrics.registry).decode()
        text = merged([own, *(answer.text for answer in answers.values() if answer.ok)])
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _has_been_ready(self, number: int) -> bool:
        replica = self._children.replica(number)
        return replica is not None and replica.ready.is_set()

    def _sockets(self, numbers: Iterable[int]) -> dict[int, Path]:
        return {number: self._children.socket(number) for number in numbers}


def _failing(answers: dict[int, Answer]) -> list[str]:
    return [f"replica {number}: {a.reason}" for number, a in answers.items() if not a.ok]


def _worst(ends: Iterable[End]) -> End:
    return max(ends, key=lambda end: end.status)
