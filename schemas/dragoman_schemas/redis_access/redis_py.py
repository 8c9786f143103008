"""What does redis-py call that which can happen to a command? One table, for client and worker.

The only module of these packages that knows redis-py; only who connects imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

from dragoman_schemas.redis_access.calls import Errors
from dragoman_schemas.redis_access.slots import Redirection
from dragoman_schemas.tls import Signature, signature


class Misfit(NotConnected):
    """What was reached is not what `redis.url` takes it for, or does not let us in."""


@contextmanager
def breaks_told() -> Iterator[None]:
    """A connection that broke before its reader could say so is an outage in uvloop's word too."""
    try:
        yield
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

    def of(self, maker: RedisSSLContext) -> Any:
        """Return the context that the files make now; the first maker makes it for all."""
        made = self._maker = self._maker or maker
        now = signature((made.ca_certs, made.ca_path, made.certfile, made.keyfile))
        if now != self._seen:
            made.context, self._seen = None, now
        return made.get()


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
