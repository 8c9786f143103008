"""What does redis-py call that which can happen to a command? One table, for client and worker.

The only module of these packages that knows redis-py; only who connects imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
