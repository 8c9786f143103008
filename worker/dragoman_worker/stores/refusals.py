"""What an error of Redis means for a call: an outage, a refused password, or an unknown reply."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

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

from dragoman_connections.redis_access.calls import Command
from dragoman_schemas.scripts import CLAIM, CONFIRM, FINISH, MARK, RELEASE, SCRIPTS
from dragoman_worker.errors import Conflict, Halt, Unavailable, UnknownReply, WorkerError

MOST_SHOWN: Final = 120
"""Characters of a reply in logs and messages."""
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
_WRONG_TYPE: Final = re.compile(r"(?:^|: | -)WRONGTYPE ")
_OF_THE_SCRIPT: Final = re.compile(r"(?:^|: )user_script:\d+: (?!Script killed)")
"""Lua's own errors. With `@` before it, Redis names the line of a command that it refused."""
_ARGUMENTS: Final = re.compile(r",? *with args|args beginning with")
_QUOTE: Final = re.compile(r"(?<![A-Za-z])['\"`]")
_NAMES: Final = {script.sha1: script.name for script in SCRIPTS}
_SIZES: Final = {CLAIM.sha1: 8, FINISH.sha1: 5, CONFIRM.sha1: 2, RELEASE.sha1: 2}
"""Values in the replies of the scripts that the worker calls; `mark` replies with a number."""


class Refusals:
    """Judges the errors of one address, and records which servers answer scripts meanwhile."""

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._clock = clock
        self._answered_at: dict[str, float] = {}
        self._run: set[str] = set()
        """Commands that were answered: a script that ran once is one that Redis can run."""

    def answered(self, command: Command, server: str = "") -> None:
        """Record that a server has just carried out a command."""
        self._answered_at[server] = self._clock()
        self._run.add(name_of(command))

    def judged(self, error: Exception, command: Command, server: str = "") -> Exception:
        """Return the error to raise: Unavailable for an outage, Halt for a refused password.

        A permission revoked while the worker runs can be granted again, so it counts as an outage.
        Returns the error itself for a key of another type and for a defect of the client.
        """
        if isinstance(error, WorkerError | DataError):
            return error
        if isinstance(error, AuthenticationError):
            return Halt(
                "redis.url: Redis refuses its user or password (or redis.username, "
                f"redis.password): {_printable(error)}"
            )
        if not isinstance(error, RedisError | OSError) or wrong_type(error):
            return error
        if isinstance(error, ResponseError) and not _refused_now(error):
            return self._unknown(error, command, server)
        unavailable = Unavailable(
            f"Redis at {server or self._address}: {type(error).__name__}: {_printable(error)}"
        )
        unavailable.__cause__ = error
        return unavailable

    def _unknown(self, error: ResponseError, command: Command, server: str) -> Exception:
        """Return the error of a reply that no list knows."""
        name, reply = name_of(command), shown(error)
        message = (
            f"Redis at {server or self._address} answers {name} with an unknown error: {reply}"
        )
        verdict: WorkerError = self._verdict(name, reply, server)
        if _OF_THE_SCRIPT.search(_said(error)):
            verdict = Conflict(
                f"its Redis key holds what the script {name} cannot read ({reply}); delete it"
            )
            if name in self._run:
                return verdict
        return self._reply(message, server, verdict)

    def strange(self, command: Command, server: str = "") -> UnknownReply:
        """Return the error of a script's reply that is none."""
        name, reply = name_of(command), "no reply of this script"
        message = f"Redis at {server or self._address} answers {name} with {reply}"
        return self._reply(message, server, self._verdict(name, reply, server))

    def _reply(self, message: str, server: str, verdict: WorkerError) -> UnknownReply:
        at = self._answered_at.get(server)
        return UnknownReply(message, server=server, answered_at=at, verdict=verdict)

    def _verdict(self, name: str, reply: str, server: str) -> Halt:
        return Halt(
            f"Redis at {server or self._address} has refused {name} for a minute, though it "
            f"answered other calls: {reply}. No job was failed. Check its log, and whether it, or "
            "a proxy before it, runs every script of docs/reference/scripts.md"
        )


def is_reply_of(command: Command, reply: object) -> bool:
    """Return whether a reply has the form that its script gives it."""
    if command[1] == MARK.sha1:
        return isinstance(reply, int)
    return isinstance(reply, list | tuple) and len(reply) == _SIZES.get(command[1], len(reply))


def wrong_type(error: Exception) -> bool:
    """Return whether the key of a command, also of one inside a script, has another type."""
    return isinstance(error, ResponseError) and _WRONG_TYPE.search(_said(error)) is not None


def forbidden(error: Exception) -> bool:
    """Return whether an error of `Refusals` is that the user lacks a right."""
    return isinstance(error.__cause__, NoPermissionError)


def name_of(command: Command) -> str:
    """Return the script's name, or the command's."""
    return _NAMES.get(command[1], "a script") if command[0] == "EVALSHA" else str(command[0])


def shown(error: Exception) -> str:
    """Return the first words of a reply, without what it may quote of our arguments."""
    words = _QUOTE.split(_said(error), maxsplit=1)[0]
    return _clean(words) or type(error).__name__


def _said(error: Exception) -> str:
    """Return a reply without the arguments that Redis repeats after a command's name."""
    return _ARGUMENTS.split(str(error), maxsplit=1)[0]


def _printable(error: Exception) -> str:
    return _clean(_said(error))


def _clean(words: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in words[:MOST_SHOWN]).strip()


def _refused_now(error: ResponseError) -> bool:
    return isinstance(error, _NOT_NOW) or _NOT_NOW_WORDS.search(_said(error)) is not None
