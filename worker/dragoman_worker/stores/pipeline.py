"""Pipelines that let hundreds of concurrent store calls share few round trips to Redis."""

from __future__ import annotations

import re
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

from dragoman_connections.batching import Batcher
from dragoman_connections.redis_access.calls import Answer, Call, Command
from dragoman_worker.errors import Halt, Unavailable
from dragoman_worker.log import logger

MAX_COMMANDS: Final = 1_024
CONCURRENT_ROUND_TRIPS: Final = 2
"""While one pipeline waits for Redis, the next one is packed."""

_NOT_NOW: Final = (
    ClusterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
"""redis-py strips the error's first word (the code) from these, and only from these."""
_NOT_NOW_WORDS: Final = re.compile(
    # At the start, or where Redis 6 quotes the reply to a command inside a script.
    r"(?:^| -)(?:OOM|MISCONF|READONLY|LOADING|MASTERDOWN|NOREPLICAS|BUSY|NOPERM) "
    r"|ACL failure in script|user executing the script can't "  # Redis 7.2 and later, and before
)


class Transport(Protocol):
    """Connection to Redis that sends calls together and returns one answer per call, in order."""

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """Return the answers; raise RedisError or OSError if no call has an answer."""
        ...


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A command that waits until earlier writes of its connection are as durable as configured."""

    command: Command
    enough: Callable[[Any], bool]


class Pipeline:
    """Sends the calls of one turn of the event loop as one round trip.

    A call is a list of commands whose replies are wanted together. Every call must be idempotent:
    it is repeated if the server has forgotten our scripts.
    """

    def __init__(self, transport: Transport, confirmation: Confirmation | None = None) -> None:
        self._transport = transport
        self._confirmation = confirmation
        self._batcher = Batcher[Call, list[Any]](
            self._send,
            at_most=MAX_COMMANDS,
            name="redis-pipeline",
            flushes=CONCURRENT_ROUND_TRIPS,
            weigh=lambda call: len(call.commands),
        )
        self._available = True

    @property
    def waiting(self) -> int:
        """Calls that have not been sent yet: at most one per waiting caller."""
        return self._batcher.waiting

    @property
    def confirms(self) -> bool:
        """Whether a confirmation is configured."""
        return self._confirmation is not None

    async def caught_up(self, key: str) -> None:
        """Return once every script that was sent for the key has its answer or error."""
        await self._batcher.caught_up(lambda call: call.commands[0][3:4] == (key,))

    async def close(self) -> None:
        """Cancel the calls under way and their callers."""
        await self._batcher.close()

    async def call(self, commands: list[Command], *, confirmed: bool = False) -> list[Any]:
        """Return the replies of `commands`, with `confirmed` only once their writes are confirmed.

        Raises Unavailable for an outage, Halt for a refused password, and RedisError for a
        command that Redis never accepts.
        """
        return await self._batcher.ask(Call(commands, confirmed))

    async def _send(self, calls: Sequence[Call]) -> list[list[Any] | Exception]:
        """Return the replies or the error of each call, by one round trip."""
        command = None if self._confirmation is None else self._confirmation.command
        try:
            answers = await self._transport.send(calls, command)
        except Exception as error:  # noqa: BLE001  each caller gets an error of its own
            self._note(available=False, error=error)
            return [classified(error) for _ in calls]
        outcomes = [self._outcome(*pair) for pair in zip(calls, answers, strict=True)]
        refused = next((error for error in outcomes if isinstance(error, Unavailable)), None)
        if refused is not None:
            self._note(available=False, error=refused)
        elif any(call.commands[0][0] == "EVALSHA" for call in calls):
            self._note(available=True)  # a full or isolated server still answers reads
        return outcomes

    def _outcome(self, call: Call, answer: Answer) -> list[Any] | Exception:
        """Return the replies of a call, or the error to raise instead."""
        error: Exception | None = None
        for reply in answer.replies:
            if isinstance(reply, Exception):
                error = reply
                break
        if error is None and call.confirmed and self._confirmation is not None:
            error = _shortfall(self._confirmation, answer.confirmation)
        return answer.replies if error is None else classified(error)

    def _note(self, *, available: bool, error: Exception | None = None) -> None:
        """Log once that Redis is unavailable, and once that it is available again."""
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


def classified(error: Exception) -> Exception:
    """Return the error to raise: Unavailable for an outage, the error itself for a defect.

    A permission revoked while the worker runs can be granted again, so it counts as an outage.
    A refused password halts the worker: no retry helps, and the next start reports it.
    """
    if isinstance(error, Unavailable | DataError):
        return error
    if isinstance(error, AuthenticationError):
        return Halt(
            "redis.url: Redis refuses its user or password (or redis.username, redis.password): "
            f"{str(error)[:120]}"
        )
    lasting = isinstance(error, ResponseError) and not _refused_now(error)
    if lasting or not isinstance(error, RedisError | OSError):
        return error
    return Unavailable(f"Redis: {type(error).__name__}: {str(error)[:120]}")


def _refused_now(error: ResponseError) -> bool:
    return isinstance(error, _NOT_NOW) or _NOT_NOW_WORDS.search(str(error)) is not None
