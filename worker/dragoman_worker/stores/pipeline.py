"""Pipelines that let hundreds of concurrent store calls share few round trips to Redis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dragoman_connections.batching import Batcher
from dragoman_connections.redis_access.calls import Answer, Call, Command
from dragoman_worker.errors import Unavailable
from dragoman_worker.stores.refusals import Refusals, is_reply_of

MAX_COMMANDS: Final = 1_024
CONCURRENT_ROUND_TRIPS: Final = 2
"""While one pipeline waits for Redis, the next one is packed."""


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

    def __init__(
        self,
        transport: Transport,
        confirmation: Confirmation | None = None,
        *,
        address: str = "redis.url",
    ) -> None:
        """`address` names Redis in errors where no server is known."""
        self._transport = transport
        self._confirmation = confirmation
        self._refusals = Refusals(address)
        self._batcher = Batcher[Call, list[Any]](
            self._send,
            at_most=MAX_COMMANDS,
            name="redis-pipeline",
            flushes=CONCURRENT_ROUND_TRIPS,
            weigh=lambda call: len(call.commands),
        )

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

        Raises Unavailable for an outage, UnknownReply for an error that no list knows, Halt for a
        refused password, Conflict for a key that the script cannot read, and ResponseError for a
        key of another type.
        """
        return await self._batcher.ask(Call(commands, confirmed))

    async def _send(self, calls: Sequence[Call]) -> list[list[Any] | Exception]:
        """Return the replies or the error of each call, by one round trip."""
        command = None if self._confirmation is None else self._confirmation.command
        try:
            answers = await self._transport.send(calls, command)
        except Exception as error:  # noqa: BLE001  each caller gets an error of its own
            return [self._refusals.judged(error, call.commands[0]) for call in calls]
        return [self._outcome(*pair) for pair in zip(calls, answers, strict=True)]

    def _outcome(self, call: Call, answer: Answer) -> list[Any] | Exception:
        """Return the replies of a call, or the error to raise instead."""
        first, server = call.commands[0], answer.server
        for command, reply in zip(call.commands, answer.replies, strict=True):
            if isinstance(reply, Exception):
                return self._refusals.judged(reply, command, server)
        if first[0] == "EVALSHA":
            if not is_reply_of(first, answer.replies[0]):
                return self._refusals.strange(first, server)
            self._refusals.answered(first, server)
        if call.confirmed and self._confirmation is not None:
            error = _shortfall(self._confirmation, answer.confirmation)
            if error is not None:
                return self._refusals.judged(error, self._confirmation.command, server)
        return answer.replies


def _shortfall(confirmation: Confirmation, reply: Any) -> Exception | None:
    if isinstance(reply, Exception):
        return reply
    if confirmation.enough(reply):
        return None
    return Unavailable("Redis: redis.durability is not reached: too few servers confirmed")
