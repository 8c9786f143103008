"""redis-py's connections and errors, as the client and the worker use them.

The only module of `dragoman_connections` that imports redis-py; only adapters import this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import DefaultParser, RedisSSLContext, SSLConnection
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

# Without a password Redis 6.2 and later reads no command of more than 10 arguments, nor a long one,
# so such a command gets these replies in place of NOAUTH.
_OF_ERR: Any = DefaultParser.EXCEPTION_CLASSES["ERR"]
for _what in ("bulk", "multibulk"):
    _OF_ERR[f"Protocol error: unauthenticated {_what} length"] = AuthenticationError


class Misfit(NotConnected):
    """The server does not fit `redis.url`, or refuses its credentials."""


class UnusableFile(Misfit):
    """A certificate or key that `redis.url` names cannot be used; the message names the file."""


@contextmanager
def connection_errors() -> Iterator[None]:
    """Translate two errors: uvloop's for a broken connection, and redis-py's for unusable files.

    uvloop raises RuntimeError for a connection that broke before its reader noticed: an outage.
    redis-py raises ConnectionError for TLS files that cannot be used: not an outage.
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
    """Return a pool whose TLS connections share one context, rebuilt when its files change."""
    pool = BlockingConnectionPool.from_url(url, **options)
    if pool.connection_class is SSLConnection:
        # A class, because redis-py inspects its bases.
        pool.connection_class = type("SharingConnection", (_Sharing,), {"shared": _SharedContext()})
    return pool


class _SharedContext:
    """TLS context of a pool's connections.

    redis-py builds one per connection and keeps it across reconnects. Unusable files fail the
    connection, and connecting is repeated.
    """

    def __init__(self) -> None:
        self._maker: RedisSSLContext | None = None
        self._seen: Signature = ()
        self._worked = False

    def of(self, maker: RedisSSLContext) -> Any:
        """Return the context of the files' present contents; the first maker builds it for all.

        Raises UnusableFile until the files were usable once, and NotConnected from then on.
        """
        made = self._maker = self._maker or maker
        now = signature((made.ca_certs, made.ca_path, made.certfile, made.keyfile))
        if now != self._seen:
            made.context, self._seen = None, now
        try:
            context = made.get()
        except OSError as error:  # ssl.SSLError is one
            # Files that were usable are being replaced, which counts as an outage.
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
        # Not redis-py's own, which would build one context per connection.
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
