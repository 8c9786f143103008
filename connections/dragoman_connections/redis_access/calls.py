"""How do commands reach one Redis server, whatever client carries them?

Commands travel in batches of calls. What is promised of every kind of Redis: the commands of one
call take effect in its order, each call gets its own replies, and a confirmation (WAIT) is asked
on the connection of the server that took the call's first command. Nothing here retries an outage:
the caller does, for every call may be repeated. Connections are opened by the caller's `connect`;
but for `redis_py`, this package knows no Redis client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dragoman_connections.redis_access.slots import Redirection
from dragoman_schemas.scripts import SCRIPTS

Command = tuple[Any, ...]
_LOAD: Final[tuple[Command, ...]] = tuple(("SCRIPT", "LOAD", script.text) for script in SCRIPTS)
_LASTING: Final = re.compile(
    "DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode"
    "|cluster support disabled|unknown command|unknown subcommand"
)
"""A database there is none of, a Cluster that is none, a Sentinel taken for a server or the other
way round."""


class Connection(Protocol):
    """One server, through the caller's Redis client."""

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """A reply or an error for each, by one pipeline without a transaction.

        Raises what the client raises if nothing can be said of any of them.
        """
        ...

    async def disconnect(self) -> None:
        """Close idle connections: the next command looks the name up and connects again."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


@dataclass(frozen=True, slots=True)
class Errors:
    """The client's names for what a server answers when it is the wrong one to ask."""

    unreachable: tuple[type[Exception], ...]
    refused: tuple[type[Exception], ...]
    """A user or password that is wrong, or may not do what we ask; some are `unreachable` too."""
    read_only: tuple[type[Exception], ...]
    no_script: tuple[type[Exception], ...]
    cluster_down: tuple[type[Exception], ...]
    redirection: Callable[[Exception], Redirection | None]
    not_found: Callable[[str], Exception]
    """Makes the error of a Sentinel service or a Cluster that nobody knows; an `unreachable`."""
    misfit: Callable[[str], Exception]
    """The same where all that were asked answered, and nothing says that they will answer else."""


@dataclass(frozen=True, slots=True)
class Call:
    """Commands whose replies are wanted together; `confirmed`: the first one's write is."""

    commands: Sequence[Command]
    confirmed: bool = False


@dataclass(slots=True)
class Answer:
    """A reply or an error for each command of a call; after an error the rest was not sent.

    `confirmation` is what the server of the first command said to the confirmation, if asked.
    """

    replies: list[Any]
    confirmation: Any = None


Connect = Callable[[str], Connection]
"""Opens nothing yet; the URL is one that `RedisAddress.url_of` gave."""


class Servers(Protocol):
    """Redis, whatever it is made of."""

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """The answers in the order of the calls. Raises if nothing can be said of any of them."""
        ...

    async def load_scripts(self) -> None:
        """Make every server that takes writes know our scripts."""
        ...

    async def each(self, *commands: Command) -> list[list[Any]]:
        """The replies of every server, replicas among them, as far as they are reached."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class OneServer:
    """One server, or whatever answers at its address."""

    def __init__(self, connection: Connection, errors: Errors) -> None:
        self._connection = connection
        self._errors = errors

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """See Servers."""
        commands = [command for call in calls for command in call.commands]
        asked = confirmation is not None and any(call.confirmed for call in calls)
        if asked and confirmation is not None:
            commands.append(confirmation)
        replies = await self._send(commands)
        said = replies.pop() if asked else None
        answers, start = [], 0
        for call in calls:
            end = start + len(call.commands)
            answers.append(Answer(replies[start:end], said if call.confirmed else None))
            start = end
        return answers

    async def load_scripts(self) -> None:
        """See Servers."""
        _raise_first(await self._connection.send(_LOAD))

    async def each(self, *commands: Command) -> list[list[Any]]:
        """See Servers."""
        return [await self._connection.send(commands)]

    async def close(self) -> None:
        """See Servers."""
        await self._connection.close()

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        replies = await self._connection.send(commands)
        if _any_of(replies, self._errors.no_script):
            await self.load_scripts()
            replies = await self._connection.send(commands)
        if is_read_only(replies, self._errors):
            await self._connection.disconnect()  # another server may answer to the name by now
        return replies


async def those_reached(
    connections: Iterable[Connection], commands: Sequence[Command], errors: Errors
) -> list[list[Any]]:
    """The replies of those servers that answer."""
    told: list[list[Any]] = []
    for connection in connections:
        try:
            told.append(await connection.send(commands))
        except errors.unreachable:
            continue
    return told


def lasting(error: Exception, errors: Errors) -> bool:
    """Whether a server will always say this: `redis.url` does not fit what is there."""
    return isinstance(error, errors.refused) or _LASTING.search(str(error)) is not None


def _any_of(replies: Iterable[Any], kinds: tuple[type[Exception], ...]) -> bool:
    return any(isinstance(reply, kinds) for reply in replies)


def is_read_only(replies: Iterable[Any], errors: Errors) -> bool:
    """Also as Redis 6 quotes it, inside the error of a script."""
    return any(
        isinstance(error, errors.read_only) or "-READONLY " in str(error)
        for error in replies
        if isinstance(error, Exception)
    )


def _raise_first(replies: Iterable[Any]) -> None:
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
