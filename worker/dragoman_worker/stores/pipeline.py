"""How do hundreds of concurrent store calls share a few round trips? They travel together."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from redis.exceptions import (
    AuthenticationError,
    ClusterDownError,
    DataError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from dragoman_worker.errors import Unavailable
from dragoman_worker.log import logger

MAX_COMMANDS: Final = 1_024
LANES: Final = 2
"""Pipelines under way at once: while one waits for Redis the next is being packed."""

Command = tuple[Any, ...]
_NOT_NOW: Final = (
    ClusterDownError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
"""redis-py takes the first word off these, which the others begin with."""
_NOT_NOW_WORDS: Final = re.compile(
    # At the start, or where Redis 6 quotes what a command inside a script was answered.
    r"(?:^| -)(?:OOM|MISCONF|READONLY|LOADING|MASTERDOWN|NOREPLICAS|BUSY) "
)


class Transport(Protocol):
    """Sends commands together and gives each one's reply or error, in order."""

    async def send(self, commands: list[Command]) -> list[Any]:
        """Raises RedisError or OSError if nothing can be said of any of them."""
        ...

    async def load_scripts(self) -> None:
        """Make the server know our scripts (again: it forgets them when it restarts)."""
        ...


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A command that waits until the writes before it, on its connection, are as safe as asked."""

    command: Command
    enough: Callable[[Any], bool]


@dataclass(slots=True, eq=False)
class _Call:
    commands: list[Command]
    replies: asyncio.Future[list[Any]]
    confirmed: bool = False


class Pipeline:
    """Collects the calls of one turn of the event loop and sends them as one round trip.

    A call is a list of commands whose replies are wanted together. Every call must be idempotent:
    it is repeated once if the server has forgotten our scripts.
    """

    def __init__(self, transport: Transport, confirmation: Confirmation | None = None) -> None:
        self._transport = transport
        self._confirmation = confirmation
        self._waiting: deque[_Call] = deque()
        self._work = asyncio.Event()
        self._lanes: list[asyncio.Task[None]] = []
        self._closing = False
        self._available = True

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
        for call in self._waiting:
            call.replies.cancel()

    async def call(self, commands: list[Command], *, confirmed: bool = False) -> list[Any]:
        """The replies of `commands`, once they are as safe as the confirmation asks if `confirmed`.

        Raises Unavailable, or RedisError for a defect of ours.
        """
        call = _Call(commands, asyncio.get_running_loop().create_future(), confirmed)
        self._waiting.append(call)
        self._work.set()
        return await call.replies

    async def _lane(self) -> None:
        while not self._closing:
            await self._work.wait()
            calls = self._next_calls()
            if calls:
                await self._send(calls)

    def _next_calls(self) -> list[_Call]:
        calls: list[_Call] = []
        commands = 0
        while self._waiting and commands < MAX_COMMANDS:
            call = self._waiting.popleft()
            if not call.replies.done():  # else its caller has gone
                calls.append(call)
                commands += len(call.commands)
        if not self._waiting:
            self._work.clear()
        return calls

    async def _send(self, calls: list[_Call]) -> None:
        try:
            replies = await self._replies(calls)
        except asyncio.CancelledError:
            for call in calls:
                call.replies.cancel()
            raise
        except Exception as error:  # noqa: BLE001  a lane that dies answers nobody any more
            self._note(available=False, error=error)
            for call in calls:
                _fail(call, _classified(error))
            return
        self._note(available=True)
        start = 0
        for call in calls:
            end = start + len(call.commands)
            _answer(call, replies[start:end])
            start = end

    def _note(self, *, available: bool, error: Exception | None = None) -> None:
        """Say once that Redis has gone, and once that it is back."""
        if available == self._available:
            return
        self._available = available
        if available:
            logger().info("redis_back")
        else:
            logger().warning("redis_unavailable", error=type(error).__name__)

    async def _replies(self, calls: list[_Call]) -> list[Any]:
        commands = [command for call in calls for command in call.commands]
        confirmation = self._confirmation if any(call.confirmed for call in calls) else None
        if confirmation is not None:
            commands.append(confirmation.command)
        replies = await self._transport.send(commands)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            await self._transport.load_scripts()
            replies = await self._transport.send(commands)
        if confirmation is not None:
            _require(confirmation, replies.pop())
        return replies


def _require(confirmation: Confirmation, reply: Any) -> None:
    if isinstance(reply, Exception):
        raise reply
    if not confirmation.enough(reply):
        raise Unavailable("Redis: redis.durability is not reached: too few servers confirmed")


def _answer(call: _Call, replies: list[Any]) -> None:
    error = next((reply for reply in replies if isinstance(reply, Exception)), None)
    if error is not None:
        _fail(call, _classified(error))
    elif not call.replies.done():
        call.replies.set_result(replies)


def _fail(call: _Call, error: Exception) -> None:
    if not call.replies.done():
        call.replies.set_exception(error)


def _classified(error: Exception) -> Exception:
    """A server that cannot serve now is waited for; a command it will never take is a defect."""
    if isinstance(error, Unavailable):
        return error
    if isinstance(error, DataError | AuthenticationError):
        return error
    lasting = isinstance(error, ResponseError) and not _refused_now(error)
    if lasting or not isinstance(error, RedisError | OSError):
        return error
    return Unavailable(f"Redis: {type(error).__name__}: {str(error)[:120]}")


def _refused_now(error: ResponseError) -> bool:
    return isinstance(error, _NOT_NOW) or _NOT_NOW_WORDS.search(str(error)) is not None
