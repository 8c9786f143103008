"""One server: its requests, how many it gets at once, and whether it answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from dragoman_worker.backoff import backoff, pause_s
from dragoman_worker.engines.openai.concurrency import (
    Concurrency,
    CountedConcurrency,
    SearchedConcurrency,
)
from dragoman_worker.engines.openai.gauges import Gauges, gauges_of
from dragoman_worker.engines.openai.replies import (
    Away,
    Busy,
    CacheFull,
    Faulty,
    Locked,
    ServerError,
    SharedOut,
    TimedOut,
    check_status,
    parsed,
)
from dragoman_worker.engines.openai.request_ids import RequestIds
from dragoman_worker.engines.openai.trust import Trust
from dragoman_worker.log import logger

_CONNECT_S: Final = 10.0
_PROBE_S: Final = 10.0
_MOST_BYTES: Final = 8 * 1024 * 1024
"""Largest reply that is read; the longest translation has a few hundred kB."""
_HEADERS: Final = {
    # A compressed reply of 8 MiB may hold 8 GiB.
    "Accept-Encoding": "identity",
}
BACKOFF: Final = backoff(0.5, 15.0)
"""Between two requests to a server that failed one, or asked for fewer."""
_HANGS_S: Final = 60.0
"""A server that says that it runs requests and writes no token for this long hangs."""


class Server:
    """The connections to one address and what is known of the server behind it."""

    def __init__(self, url: str, session: aiohttp.ClientSession, trust: Trust) -> None:
        """`session` sends the key, unless `url` holds a user and a password."""
        self._base = url
        parts = urlsplit(url)
        self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        """For messages: without user and password."""
        self.concurrency: Concurrency = SearchedConcurrency(1)
        self.in_flight = 0
        self.answers = 0
        """Requests answered since the start."""
        self.away = ""
        """Why the server gets no requests now; empty while it does."""
        self.gauges: Gauges | None = None
        self.locked = False
        """Whether it is left out because it refuses every request, as for a wrong key."""
        self._session = session
        self._trust = trust
        self._ids = RequestIds()
        self._left_alone_until = 0.0
        self._throttles = 0
        self._probes = 0
        self._probe_at = 0.0
        self._generated: tuple[int, float] | None = None
        self._confirming: asyncio.Task[ServerError | None] | None = None
        self._pending: dict[asyncio.Task[Any], bool] = {}
        """Tasks that wait for an answer, and whether they were cancelled because none will come."""

    @property
    def free(self) -> int:
        """How many more requests the server may get now."""
        now = time.monotonic()
        if self.away or now < self._left_alone_until:
            return 0
        return self.concurrency.room(self.in_flight, now)

    @property
    def is_due(self) -> bool:
        """Whether a server that is left out is to be tried again now."""
        return bool(self.away) and time.monotonic() >= self._probe_at

    async def post(
        self, path: str, body: Mapping[str, Any], *, within_s: float, quote: bool
    ) -> Any:
        """Return the object that the server replies. Raises ServerError.

        Cancelling closes the connection, by which servers notice that nobody waits any more.
        """
        data = json.dumps(body, ensure_ascii=True).encode()
        name = self._ids.of(data)
        reply = parsed(
            await self._request("POST", path, data, name, within_s=within_s, quote=quote),
            quote=quote,
        )
        if self._ids.is_of_another(reply.get("id"), name):
            raise Faulty("it answered another request than this one")
        return reply

    async def generate(self, path: str, body: Mapping[str, Any], *, within_s: float) -> Any:
        """Return the object that the server replies to a job's request.

        Raises ServerError, and Away as soon as the server is left out.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request needs a task")
        cancels = task.cancelling()
        self._pending[task] = False
        try:
            return await self.post(path, body, within_s=within_s, quote=False)
        except CacheFull as error:
            if self.in_flight > 1 or time.monotonic() < self._left_alone_until:  # all at once
                raise SharedOut(str(error), None) from None
            raise
        except asyncio.CancelledError:
            if self._pending[task] and task.cancelling() - 1 <= cancels:
                raise Away(self.away or "it was left out") from None
            raise
        finally:
            if self._pending.pop(task):
                task.uncancel()

    async def get(self, path: str) -> bytes:
        """Return the body of a page. Raises ServerError."""
        return await self._request("GET", path, within_s=_PROBE_S, quote=True)

    def answered(self, tokens: int) -> None:
        """Count a request that was answered."""
        self.answers += 1
        self._throttles = 0
        self.concurrency.answered(tokens, self.in_flight, time.monotonic())

    def throttled(self, busy: Busy) -> None:
        """Leave the server alone for as long as it asks, and send fewer requests then."""
        now = time.monotonic()
        if now >= self._left_alone_until:  # not once per request of one burst
            self.concurrency.throttled()
        self._throttles += 1
        pause = pause_s(BACKOFF, self._throttles) if busy.pause_s is None else busy.pause_s
        self._left_alone_until = max(self._left_alone_until, now + pause)

    def leave_out(self, reason: str) -> None:
        """Send no requests until the server answers a probe again; those at it raise Away."""
        if not self.away:
            self.locked, self._probes = False, 0
            self.probed()
            logger().warning("engine_server_away", server=self.url, error=reason)
        self.away = reason
        for task, cancelled in self._pending.items():
            if not cancelled:
                self._pending[task] = True
                task.cancel()

    def probed(self) -> None:
        """Count a probe without an answer: the next one is due after a longer pause."""
        self._probes += 1
        self._probe_at = time.monotonic() + pause_s(BACKOFF, self._probes)

    def is_back(self) -> None:
        """Send requests again."""
        if self.away:
            self.away, self.locked = "", False
            self._generated = None
            logger().info("engine_server_back", server=self.url)

    async def confirm(self, ask: Callable[[Server], Awaitable[None]]) -> ServerError | None:
        """Return what is wrong with the server itself, by a harmless request; None if nothing.

        All that ask meanwhile wait for the same answer.
        """
        if self._confirming is None or self._confirming.done():
            self._confirming = asyncio.create_task(self._confirm(ask), name="engine-confirm")
        return await asyncio.shield(self._confirming)

    async def _confirm(self, ask: Callable[[Server], Awaitable[None]]) -> ServerError | None:
        try:
            await ask(self)
        except ServerError as error:
            return error
        return None

    async def read_gauges(self) -> None:
        """Read the server's own counts, if it has any. Raises Away if they show that it hangs.

        A reading that fails changes nothing: a busy server may be late with one.
        """
        try:
            read = gauges_of((await self.get("/metrics")).decode("utf-8", "replace"))
        except Away:
            raise
        except ServerError:
            return
        if read is not None:
            self.gauges = read
            if isinstance(self.concurrency, CountedConcurrency):
                self.concurrency.counted(read.running, read.waiting, time.monotonic())
            self._raise_if_it_hangs()

    def close(self) -> None:
        """Stop asking whether the server itself is at fault."""
        if self._confirming is not None:
            self._confirming.cancel()

    def _raise_if_it_hangs(self) -> None:
        gauges, now = self.gauges, time.monotonic()
        if gauges is None or not gauges.running or not self.in_flight:
            self._generated = None
        elif self._generated is None or self._generated[0] != gauges.generated:
            self._generated = gauges.generated, now
        elif now - self._generated[1] > _HANGS_S:
            raise Away(f"it runs {gauges.running} requests and wrote nothing for {_HANGS_S:.0f} s")

    async def _request(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        name: str = "",
        *,
        within_s: float,
        quote: bool,
    ) -> bytes:
        headers = {"Content-Type": "application/json", "X-Request-Id": name} if data else {}
        timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=_CONNECT_S)
        try:
            async with self._session.request(
                method,
                self._base + path,
                data=data,
                headers=_HEADERS | headers,
                timeout=timeout,
                ssl=self._trust.context,
                allow_redirects=False,
            ) as reply:
                content = await _content(reply)
                check_status(reply.status, reply.headers, content, quote=quote)
                return content
        except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
            raise _server_error(error, within_s) from None


_MEANINGS: Final[tuple[tuple[type[Exception], type[ServerError], str], ...]] = (
    (aiohttp.ClientConnectorCertificateError, Locked, "its certificate is not trusted"),
    (aiohttp.InvalidURL, Locked, "its address is not valid"),
    (aiohttp.ClientResponseError, Away, "its reply is not HTTP"),
    (aiohttp.ClientPayloadError, Away, "its reply broke off in the middle"),
    (HttpProcessingError, Faulty, "its reply is not HTTP ({name})"),
    (aiohttp.ConnectionTimeoutError, Away, f"cannot connect within {_CONNECT_S:.0f} s"),
    (TimeoutError, TimedOut, "no answer within {within_s:.0f} s"),
    (aiohttp.ClientConnectorError, Away, "cannot connect: {reason}"),
    (aiohttp.ServerDisconnectedError, Away, "it closed the connection"),
    (aiohttp.ClientError, Away, "the connection broke ({name})"),
    (OSError, Away, "the connection broke ({name})"),
    (ValueError, Faulty, "its reply is not HTTP ({name})"),
)
"""What errors of a connection say of the server; the first that fits. Some are of several types."""


def _server_error(error: Exception, within_s: float) -> ServerError:
    """Return what an error of the connection says of the server."""
    system = getattr(error, "os_error", error)
    reason = getattr(system, "strerror", None) or system
    for kind, meaning, words in _MEANINGS:
        if isinstance(error, kind):
            return meaning(
                words.format(within_s=within_s, reason=reason, name=type(error).__name__)
            )
    return Faulty(f"its reply cannot be read ({type(error).__name__})")


async def _content(reply: aiohttp.ClientResponse) -> bytes:
    if reply.headers.get("Content-Encoding", "identity").casefold() != "identity":
        raise Faulty("its reply is compressed, which it was not asked for")
    content = bytearray()
    async for chunk in reply.content.iter_any():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise Faulty(f"its reply is larger than {_MOST_BYTES // 2**20} MiB")
    return bytes(content)
