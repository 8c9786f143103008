"""Whose trouble a failed request is: it asks the server something harmless, and watches it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dragoman_worker.backoff import pause_s
from dragoman_worker.engines.openai import discovery, llama_cpp
from dragoman_worker.engines.openai.concurrency import CountedConcurrency, SearchedConcurrency
from dragoman_worker.engines.openai.discovery import ServerFacts
from dragoman_worker.engines.openai.opening import bound_of
from dragoman_worker.engines.openai.replies import (
    Away,
    Busy,
    Locked,
    RequestRejected,
    ServerError,
    wrong_setting,
)
from dragoman_worker.engines.openai.server import BACKOFF, Server
from dragoman_worker.engines.openai.servers import ServerPool
from dragoman_worker.engines.openai.trust import Trust
from dragoman_worker.errors import EngineDead, Halt, TransientEngineError
from dragoman_worker.settings import EngineSettings

_WATCH_S: Final = 1.0
_SAMPLE_S: Final = 60.0
"""For one token: as long as a full server may let a request wait."""
_COUNTED_MOST: Final = 1_024
"""Requests at once at a server whose counts are read: vLLM's own bound on one H100."""
_SEARCHED_MOST: Final = 256
"""Requests at once at any other."""
_MOST_TROUBLES: Final = 10_000
_MOST_BREAKS: Final = 8
"""Times that a request may break the connection of a server that answers others: half a minute."""


class ServerWatch:
    """Leaves servers out while they are at fault, and takes them back.

    `died` is called with the reason where no request can succeed, and returns the error to raise.
    """

    def __init__(
        self,
        servers: ServerPool,
        facts: ServerFacts,
        *,
        settings: EngineSettings,
        trust: Trust,
        died: Callable[[str], EngineDead],
    ) -> None:
        self._servers = servers
        self._facts = facts
        self._options = settings.options
        self._share = settings.prefill_share
        self._trust = trust
        self._died = died
        self._breaks: Counter[tuple[str, int]] = Counter()
        self.looks = 0
        """Rounds over the servers so far: a sign that this task lives."""

    def answered(self, trouble: tuple[str, int]) -> None:
        """Forget what a request broke: it has its answer, or has failed."""
        self._breaks.pop(trouble, None)

    async def broken(self, server: Server, trouble: tuple[str, int], error: Away) -> None:
        """Return when the request may be sent again, after its connection broke.

        Raises TransientEngineError if it has broken connections of a server that answers others.
        """
        if server.away:
            return
        if len(self._breaks) >= _MOST_TROUBLES:  # those of cancelled requests stay
            self._breaks.clear()
        self._breaks[trouble] += 1
        breaks = self._breaks[trouble]
        if (fault := await server.confirm(self._say_hello)) is not None:
            if isinstance(fault, Locked):
                self._refused(server, fault)
                return
            if not isinstance(fault, Busy):
                self._leave_out(server, error)
                return
        if breaks >= _MOST_BREAKS:
            del self._breaks[trouble]
            raise TransientEngineError(
                f"{error}, {breaks} times at this request, while the server answered others"
            )
        await asyncio.sleep(pause_s(BACKOFF, breaks))

    async def is_the_servers(self, server: Server, error: ServerError, *, others: bool) -> bool:
        """Return whether a failed request may be sent again, because the server itself is at fault.

        It is the request's own trouble if the server answered others meanwhile, or answers a
        harmless one: a firewall may refuse a text with 403. Raises EngineDead if every server
        refuses harmless ones.
        """
        if others and not isinstance(error, Locked):
            return False
        fault = await server.confirm(self._say_hello)
        if fault is None or isinstance(fault, Busy):
            return False
        if isinstance(fault, Locked) or (
            isinstance(fault, RequestRejected) and isinstance(error, RequestRejected)
        ):
            self._refused(server, fault)
        else:
            self._leave_out(server, fault)
        return True

    async def _say_hello(self, server: Server) -> None:
        await discovery.say_hello(server, self._facts, within_s=_SAMPLE_S)

    def _leave_out(self, server: Server, error: ServerError) -> None:
        server.leave_out(str(error))
        self._servers.wake()

    def _refused(self, server: Server, error: ServerError) -> None:
        """Leave out a server whose key, address or model is wrong.

        Raises EngineDead if that is so with all of them.
        """
        server.locked = True
        dead = None
        if all(each.locked for each in self._servers.all):
            dead = self._died(wrong_setting(server.url, error, self._facts.model))
        server.leave_out(str(error))
        self._servers.wake()
        if dead is not None:
            raise dead

    async def measure(self, server: Server) -> None:
        """Read the server's own counts, and set by them how many requests it gets at once."""
        await self._look_at(server)
        counted = server.gauges is not None
        most = bound_of(self._options, "max_num_seqs")
        if most is None and not counted and (props := await llama_cpp.props_of(server)):
            most = props.slots
        most = most or (_COUNTED_MOST if counted else _SEARCHED_MOST)
        server.concurrency = (
            CountedConcurrency(most, self._share) if counted else SearchedConcurrency(most)
        )

    async def forever(self) -> None:
        """Read the servers' counts, and try those again that were left out."""
        while True:
            await asyncio.sleep(_WATCH_S)
            self.looks += 1
            await asyncio.to_thread(self._trust.refresh)
            await asyncio.gather(*(self._watch_one(server) for server in self._servers.all))
            self._servers.wake()

    async def _watch_one(self, server: Server) -> None:
        if server.is_due:
            await self._try_again(server)
        elif server.in_flight and server.gauges is not None and not server.away:
            await self._look_at(server)

    async def _try_again(self, server: Server) -> None:
        try:
            await self._say_hello(server)
            await self._compare(server)
        except ServerError as error:
            server.locked = False
            server.probed()
            if isinstance(error, Locked):
                with suppress(EngineDead):  # who has to know is told by `died`
                    self._refused(server, error)
        else:
            server.is_back()
            await self.measure(server)

    async def _compare(self, server: Server) -> None:
        """Raise Locked if the server has a smaller context than at the start.

        Prompts are planned for that one; a restart of the replica finds out the new one.
        """
        try:
            _, listed = await discovery.model_at(server, self._facts.model)
        except (ServerError, Halt):  # it answered the harmless request with that model
            return
        given = self._options.get("max_model_len")
        context = await discovery.context_of(server, listed, given)
        if context < self._facts.context:
            raise Locked(f"its context is {context} tokens, and was {self._facts.context}")

    async def _look_at(self, server: Server) -> None:
        try:
            await server.read_gauges()
        except Away as error:
            fault = await server.confirm(self._say_hello)
            if fault is not None and not isinstance(fault, Busy):
                self._leave_out(server, error)
