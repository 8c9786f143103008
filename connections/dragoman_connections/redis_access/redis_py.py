"""What does redis-py call that which can happen to a command? One table, for client and worker.

The only module of these packages that knows redis-py; only who connects imports it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import RedisSSLContext, SSLConnection
from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import TimeoutError as NotInTime

from dragoman_connections.redis_access.calls import Errors
from dragoman_connections.redis_access.slots import Redirection
from dragoman_connections.tls import Signature, signature


class Misfit(NotConnected):
    """What was reached is not what `redis.url` takes it for, or does not let us in."""


class UnusableFile(Misfit):
    """A certificate or key that `redis.url` names cannot be used; the message says which."""


@contextmanager
def breaks_told() -> Iterator[None]:
    """A connection that broke before its reader could say so is an outage in uvloop's word too.

    And a file that cannot be used is no outage: redis-py makes it one.
    """
    try:
        yield
    except NotConnected as error:
        if isinstance(error.__cause__, UnusableFile):
            raise error.__cause__ from None
        raise
    except RuntimeError as error:
        if "handler is closed" not in str(error):
            raise
        raise NotConnected("the connection broke") from error


def open_pool(url: str, **options: Any) -> BlockingConnectionPool:
    """Make a pool whose TLS connections share one context, made again when its files change."""
    pool = BlockingConnectionPool.from_url(url, **options)
    if pool.connection_class is SSLConnection:
        # A class, for redis-py asks for its bases.
        pool.connection_class = type("SharingConnection", (_Sharing,), {"shared": _SharedContext()})
    return pool


class _SharedContext:
    """The context of a pool's connections.

    redis-py makes one per connection and keeps it for good, across reconnects. Files that cannot be
    used fail the connection, and connecting is repeated.
    """

    def __init__(self) -> None:
        self._maker: RedisSSLContext | None = None
        self._seen: Signature = ()
        self._worked = False

    def of(self, maker: RedisSSLContext) -> Any:
        """Return the context that the files make now; the first maker makes it for all.

        Raises UnusableFile until they could be used once, and NotConnected from then on.
        """
        made = self._maker = self._maker or maker
        now = signature((made.ca_certs, made.ca_path, made.certfile, made.keyfile))
        if now != self._seen:
            made.context, self._seen = None, now
        try:
            context = made.get()
        except OSError as error:  # ssl.SSLError is one
            # Files that were good are being replaced: that is waited for.
            kind = NotConnected if self._worked else UnusableFile
            raise kind(_unusable(made, error)) from None
        self._worked = True
        return context


def _unusable(made: RedisSSLContext, error: OSError) -> str:
    files = {
        "ssl_ca_certs": made.ca_certs,
        "ssl_ca_path": made.ca_path,
        "ssl_certfile": made.certfile,
        "ssl_keyfile": made.keyfile,
    }
    for option, file in files.items():
        if file and not os.access(file, os.R_OK):
            why = "it cannot be read" if Path(file).exists() else "there is no such file"
            return f"{option}: {file}: {why}"
    given = ", ".join(option for option, file in files.items() if file)
    return f"{given}: not a certificate or key in PEM that belong together ({error.strerror})"


class _Sharing(SSLConnection):
    shared: ClassVar[_SharedContext]

    def _connection_arguments(self) -> Any:
        # Not redis-py's own: that would make a context per connection.
        arguments = super(SSLConnection, self)._connection_arguments()
        return {**arguments, "ssl": self.shared.of(self.ssl_context)}


def _redirection(error: Exception) -> Redirection | None:
    if not isinstance(error, AskError):  # MovedError is one
        return None
    asking = not isinstance(error, MovedError)
    return Redirection(error.slot_id, (error.host, error.port), asking)


ERRORS: Final = Errors(
    unreachable=(NotConnected, NotInTime, OSError),
    refused=(AuthenticationError, AuthorizationError, NoPermissionError),
    read_only=(ReadOnlyError,),
    no_script=(NoScriptError,),
    cluster_down=(ClusterDownError, TryAgainError),
    redirection=_redirection,
    not_found=NotConnected,
    misfit=Misfit,
)
