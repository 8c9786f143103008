"""Batches of calls to one Redis server, independent of the client library.

Commands are sent in batches of calls. Three guarantees hold for every kind of Redis. The commands
of a call take effect in its order. Each call gets its own replies. A confirmation (WAIT) runs on
the connection of the server that executed the call's first command. This package does not retry an
outage: the caller does, because every call may be repeated. The caller's `connect` opens the
connections; except for `redis_py`, this package imports no Redis client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from dragoman_connections.redis_access.slots import Redirection
from dragoman_schemas.scripts import SCRIPTS

Command = tuple[Any, ...]
_LOAD: Final[tuple[Command, ...]] = tuple(("SCRIPT", "LOAD", script.text) for script in SCRIPTS)
_GLOB: Final = re.compile(r"[\\*?\[\]^]")
_SCANNED_AT_ONCE: Final = 2_000
"""Keys that one SCAN looks at: about 1 ms of the server's time."""
_LASTING: Final = re.compile(
    "DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode"
    "|cluster support disabled|unknown command|unknown subcommand"
)
"""Replies of a server that `redis.url` does not fit: an invalid database, a server that is not in
Cluster mode, a Sentinel named as a server or a server named as a Sentinel."""


class Connection(Protocol):
    """Connection to one server, through the caller's Redis client."""

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send the commands as one pipeline and return a reply or an error for each.

        Raises the client's error if no command has a reply.
        """
        ...

    async def disconnect(self) -> None:
        """Close idle connections: the next command resolves the host name and connects again."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


@dataclass(frozen=True, slots=True)
class Errors:
    """The client's exception classes, by what they mean for the choice of a server."""

    unreachable: tuple[type[Exception], ...]
    refused: tuple[type[Exception], ...]
    """Invalid credentials or missing permissions; some of these are `unreachable` too."""
    read_only: tuple[type[Exception], ...]
    no_script: tuple[type[Exception], ...]
    cluster_down: tuple[type[Exception], ...]
    redirection: Callable[[Exception], Redirection | None]
    not_found: Callable[[str], Exception]
    """Builds the error of a service or Cluster that no server reports; an `unreachable`."""
    misfit: Callable[[str], Exception]
    """Builds the same error if all servers answered and no retry would change the answer."""


class Call(NamedTuple):
    """Commands whose replies belong together; `confirmed` asks for the first write's durability."""

    commands: Sequence[Command]
    confirmed: bool = False


@dataclass(slots=True)
class Answer:
    """A reply or an error for each command of a call; after an error the rest was not sent.

    `confirmation` is the reply to the confirmation by the server of the first command, if asked.
    `server` is the host and port that gave the first reply, or the error that is among the replies;
    empty where there is only one server.
    """

    replies: list[Any]
    confirmation: Any = None
    server: str = ""


Connect = Callable[[str], Connection]
"""Builds a connection without connecting; the URL comes from `RedisAddress.url_of`."""


class Servers(Protocol):
    """Redis in any topology."""

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """Return the answers in the order of the calls. Raises if no call has an answer."""
        ...

    async def load_scripts(self) -> None:
        """Load the scripts into every server that accepts writes."""
        ...

    async def each(self, *commands: Command) -> list[list[Any]]:
        """Return the replies of every reachable server, including replicas."""
        ...

    async def keys(self, prefix: str) -> set[bytes]:
        """Return the keys that begin with `prefix`, by SCAN, which blocks no other client."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class OneServer:
    """One server, or a proxy at its address."""

    def __init__(self, connection: Connection, errors: Errors) -> None:
        self._connection = connection
        self._errors = errors

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """See Servers."""
        commands = [command for call in calls for command in call.commands]
        confirms = confirmation is not None and any(call.confirmed for call in calls)
        if confirms and confirmation is not None:
            commands.append(confirmation)
        replies = await self._send(commands)
        confirmed = replies.pop() if confirms else None
        answers, start = [], 0
        for call in calls:
            end = start + len(call.commands)
            answers.append(Answer(replies[start:end], confirmed if call.confirmed else None))
            start = end
        return answers

    async def load_scripts(self) -> None:
        """See Servers."""
        _raise_first(await self._connection.send(_LOAD))

    async def each(self, *commands: Command) -> list[list[Any]]:
        """See Servers."""
        return [await self._connection.send(commands)]

    async def keys(self, prefix: str) -> set[bytes]:
        """See Servers."""
        pattern = _GLOB.sub(r"\\\g<0>", prefix) + "*"
        found: set[bytes] = set()
        cursor = 0
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", _SCANNED_AT_ONCE)
            (reply,) = await self._connection.send([command])
            _raise_first([reply])
            cursor, keys = int(reply[0]), reply[1]
            found.update(keys)
            if cursor == 0:
                return found

    async def close(self) -> None:
        """See Servers."""
        await self._connection.close()

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        replies = await self._connection.send(commands)
        if _any_of(replies, self._errors.no_script):
            await self.load_scripts()
            replies = await self._connection.send(commands)
        if is_read_only(replies, self._errors):
            await self._connection.disconnect()  # the name may resolve to another server by now
        return replies


async def replies_of_reachable(
    connections: Iterable[Connection], commands: Sequence[Command], errors: Errors
) -> list[list[Any]]:
    """Return the replies of the servers that answer."""
    found: list[list[Any]] = []
    for connection in connections:
        try:
            found.append(await connection.send(commands))
        except errors.unreachable:
            continue
    return found


def lasting(error: Exception, errors: Errors) -> bool:
    """Return whether no retry cures this error: `redis.url` does not fit the server."""
    return isinstance(error, errors.refused) or _LASTING.search(str(error)) is not None


def _any_of(replies: Iterable[Any], kinds: tuple[type[Exception], ...]) -> bool:
    return any(isinstance(reply, kinds) for reply in replies)


def is_read_only(replies: Iterable[Any], errors: Errors) -> bool:
    """Return whether a reply is READONLY, also as Redis 6 quotes it inside a script's error."""
    return any(
        isinstance(error, errors.read_only) or "-READONLY " in str(error)
        for error in replies
        if isinstance(error, Exception)
    )


def _raise_first(replies: Iterable[Any]) -> None:
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
