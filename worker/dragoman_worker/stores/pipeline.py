"""How do hundreds of concurrent store calls share a few round trips? They travel together."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from redis.exceptions import (
    AuthenticationError,
    ClusterDownError,
    DataError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from dragoman_connections.redis_access.calls import Answer, Call, Command
from dragoman_worker.errors import Halt, Unavailable
from dragoman_worker.log import logger

MAX_COMMANDS: Final = 1_024
LANES: Final = 2
"""Pipelines under way at once: while one waits for Redis the next is being packed."""

_NOT_NOW: Final = (
    ClusterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
"""redis-py takes the first word off these, which the others begin with."""
_NOT_NOW_WORDS: Final = re.compile(
    # At the start, or where Redis 6 quotes what a command inside a script was answered.
    r"(?:^| -)(?:OOM|MISCONF|READONLY|LOADING|MASTERDOWN|NOREPLICAS|BUSY|NOPERM) "
    r"|ACL failure in script|user executing the script can't "  # Redis 7.2 and later, and before
)


class Transport(Protocol):
    """Sends calls together and answers each, in order."""

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """Raises RedisError or OSError if nothing can be said of any of them."""
        ...


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A command that waits until the writes before it, on its connection, are as safe as asked."""

    command: Command
    enough: Callable[[Any], bool]


@dataclass(slots=True, eq=False)
class _Waiting:
    call: Call
    replies: asyncio.Future[list[Any]]


class Pipeline:
    """Collects the calls of one turn of the event loop and sends them as one round trip.

    A call is a list of commands whose replies are wanted together. Every call must be idempotent:
    it is repeated if the server has forgotten our scripts.
    """

    def __init__(self, transport: Transport, confirmation: Confirmation | None = None) -> None:
        self._transport = transport
        self._confirmation = confirmation
        self._waiting: deque[_Waiting] = deque()
        self._work = asyncio.Event()
        self._lanes: list[asyncio.Task[None]] = []
        self._closing = False
        self._available = True

    @property
    def waiting(self) -> int:
        """Calls that have not been sent yet: at most one for each caller that still waits."""
        return len(self._waiting)

    @property
    def confirms(self) -> bool:
        """Whether there is a confirmation to ask for."""
        return self._confirmation is not None

    def start(self) -> None:
        """Start the lanes."""
        self._lanes = [
            asyncio.create_task(self._lane(), name=f"redis-lane-{number}")
            for number in range(LANES)
        ]

    async def close(self) -> None:
        """Stop the lanes; calls under way are cancelled."""
        self._closing = True  # redis-py may swallow a cancellation that meets a reply
        for lane in self._lanes:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)
        for waiting in self._waiting:
            waiting.replies.cancel()

    async def call(self, commands: list[Command], *, confirmed: bool = False) -> list[Any]:
        """The replies of `commands`, once they are as safe as the confirmation asks if `confirmed`.

        Raises Unavailable, or RedisError for a defect of ours.
        """
        replies: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(Call(commands, confirmed), replies))
        self._work.set()
        return await replies

    async def _lane(self) -> None:
        while not self._closing:
            await self._work.wait()
            calls = self._next_calls()
            if calls:
                await self._send(calls)

    def _next_calls(self) -> list[_Waiting]:
        calls: list[_Waiting] = []
        commands = 0
        while self._waiting and commands < MAX_COMMANDS:
            waiting = self._waiting.popleft()
            if not waiting.replies.done():  # else its caller has gone
                calls.append(waiting)
                commands += len(waiting.call.commands)
        if not self._waiting:
            self._work.clear()
        return calls

    async def _send(self, calls: list[_Waiting]) -> None:
        command = None if self._confirmation is None else self._confirmation.command
        try:
            answers = await self._transport.send([waiting.call for waiting in calls], command)
        except asyncio.CancelledError:
            for waiting in calls:
                waiting.replies.cancel()
            raise
        except Exception as error:  # noqa: BLE001  a lane that dies answers nobody any more
            self._note(available=False, error=error)
            for waiting in calls:
                _fail(waiting, _classified(error))
            return
        told = [self._answer(*pair) for pair in zip(calls, answers, strict=True)]
        refused = next((error for error in told if isinstance(error, Unavailable)), None)
        if refused is not None:
            self._note(available=False, error=refused)
        elif any(waiting.call.commands[0][0] == "EVALSHA" for waiting in calls):
            self._note(available=True)  # a full or lonely server still answers those who only read

    def _answer(self, waiting: _Waiting, answer: Answer) -> Exception | None:
        """Hand the replies over, or the error that is told instead."""
        error = next((reply for reply in answer.replies if isinstance(reply, Exception)), None)
        if error is None and waiting.call.confirmed and self._confirmation is not None:
            error = _shortfall(self._confirmation, answer.confirmation)
        if error is not None:
            error = _classified(error)
            _fail(waiting, error)
        elif not waiting.replies.done():
            waiting.replies.set_result(answer.replies)
        return error

    def _note(self, *, available: bool, error: Exception | None = None) -> None:
        """Say once that Redis has gone, and once that it is back."""
        if available == self._available:
            return
        self._available = available
        if available:
            logger().info("redis_back")
        else:
            words = str(error) if isinstance(error, Unavailable) else type(error).__name__
            logger().warning("redis_unavailable", error=words)


def _shortfall(confirmation: Confirmation, reply: Any) -> Exception | None:
    if isinstance(reply, Exception):
        return reply
    if confirmation.enough(reply):
        return None
    return Unavailable("Redis: redis.durability is not reached: too few servers confirmed")


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.replies.done():
        waiting.replies.set_exception(error)


def _classified(error: Exception) -> Exception:
    """A server that cannot serve now is waited for; a command it will never take is a defect.

    A right that is taken away while the worker runs can be given back: it is waited for too. With
    a password that is refused nothing can go on, and a start will say so.
    """
    if isinstance(error, Unavailable | DataError):
        return error
    if isinstance(error, AuthenticationError):
        return Halt(f"redis.url: Redis refuses its user or password: {str(error)[:120]}")
    lasting = isinstance(error, ResponseError) and not _refused_now(error)
    if lasting or not isinstance(error, RedisError | OSError):
        return error
    return Unavailable(f"Redis: {type(error).__name__}: {str(error)[:120]}")


def _refused_now(error: ResponseError) -> bool:
    return isinstance(error, _NOT_NOW) or _NOT_NOW_WORDS.search(str(error)) is not None
