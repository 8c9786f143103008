"""The servers of equal standing behind one engine: who gets the next request, and for how long."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from dragoman_worker.engines.openai.replies import Busy, SharedOut, TooLongForServer, verdict
from dragoman_worker.engines.openai.server import Server
from dragoman_worker.errors import Unavailable
from dragoman_worker.ports import EngineStats

_BUSY_S: Final = 60.0
"""Longest that a request is offered to servers that ask for fewer, until that is an outage."""
_MOST_SHARED_OUT: Final = 16
"""Times that a request may not fit beside others: each time there are fewer, down from 256."""


class ServerPool:
    """Gives each request to the server with the most free capacity, in order of arrival."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.all = tuple(servers)
        self._waiting: OrderedDict[asyncio.Future[Server], None] = OrderedDict()

    @property
    def away(self) -> str:
        """Why no server gets requests; empty if one does."""
        if all(server.away for server in self.all):
            return "; ".join(f"{server.url}: {server.away}" for server in self.all)
        return ""

    def stats(self) -> EngineStats:
        """Return the requests at the servers and those that wait here or there.

        Where a server counts itself, others' requests are left out as far as that can be seen.
        """
        running = waiting = preemptions = 0
        usage: list[float | None] = []
        for server in self.all:
            gauges = None if server.away else server.gauges
            late = server.in_flight if server.away else 0
            if gauges is not None:
                late = min(server.in_flight, gauges.waiting)
                preemptions += gauges.preemptions
            running += server.in_flight - late
            waiting += late
            if not server.away:
                known = gauges.kv_cache_usage if gauges else None
                usage.append(known if server.in_flight or known is None else 0.0)
        known_usage = [each for each in usage if each is not None]
        complete = bool(known_usage) and len(known_usage) == len(usage)
        return EngineStats(
            running=running,
            waiting=waiting + len(self._waiting),
            kv_cache_usage=sum(known_usage) / len(known_usage) if complete else None,
            preemptions=preemptions,
            away=self.away,
        )

    async def acquire(self) -> Server:
        """Wait for a server that may get a request. Raises Unavailable while all are away."""
        if reason := self.away:
            raise Unavailable(reason)
        if not self._waiting and (server := self._freest()) is not None:
            server.in_flight += 1
            return server
        turn: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = None
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(turn.result())  # granted in the moment of the cancellation
            raise
        finally:
            self._waiting.pop(turn, None)

    def release(self, server: Server) -> None:
        """Return a server's slot."""
        server.in_flight -= 1
        self.wake()

    def wake(self) -> None:
        """Give the free slots to those that wait; fail all of them while every server is away."""
        if not self._waiting:
            return
        if reason := self.away:
            while self._waiting:
                _settle(self._waiting.popitem(last=False)[0], Unavailable(reason))
            return
        while self._waiting and (server := self._freest()) is not None:
            turn, _ = self._waiting.popitem(last=False)
            if not turn.done():
                server.in_flight += 1
                turn.set_result(server)

    def _freest(self) -> Server | None:
        best = max(self.all, key=lambda server: server.free)
        return best if best.free else None


def _settle(turn: asyncio.Future[Server], error: Exception) -> None:
    if not turn.done():
        turn.set_exception(error)


class PutOffs:
    """How long, and how often, servers have put one request off."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._shared_out = 0

    def add(self, server: Server, error: Busy) -> None:
        """Count one: the server gets fewer requests. Raises TooLong or Unavailable at the end."""
        server.throttled(error)
        if isinstance(error, SharedOut):
            self._shared_out += 1
            if self._shared_out >= _MOST_SHARED_OUT:  # it does not fit beside anything
                raise verdict(server.url, TooLongForServer(str(error)))
            return
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        if now - self._began > _BUSY_S:
            raise Unavailable(f"{server.url}: {error}")
