"""Read the replies that are already in a connection's buffer, without awaiting each.

The only file that uses private parts of redis-py: its public call costs a timer, two coroutines and
a dozen checks per reply, also for the thousands that are buffered.
"""
# ruff: noqa: SLF001  see above

from __future__ import annotations

from typing import Any

import hiredis
from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.exceptions import ConnectionError as NotConnected


async def received(connection: Any, most: int) -> list[Any]:
    """Return up to `most` replies from the connection's buffer, errors as values.

    Returns an empty list for a parser that is not hiredis. Raises ConnectionError, and disconnects,
    if the server's reply is such an error.
    """
    reader = getattr(connection._parser, "_reader", None)
    replies: list[Any] = []
    if not isinstance(reader, hiredis.Reader):
        return replies
    for _ in range(most):
        reply = reader.gets()
        if reply is NOT_ENOUGH_DATA:
            break
        if isinstance(reply, NotConnected):
            await connection.disconnect(nowait=True)
            raise reply
        replies.append(reply)
    return replies
