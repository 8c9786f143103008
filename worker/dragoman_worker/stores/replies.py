"""Which replies have come already, so that nobody needs to wait for them one by one?

The only file that looks into redis-py's private parts: its public way to a reply costs a timer, two
coroutines and a dozen checks each, also for the thousands that lie in the buffer.
"""
# ruff: noqa: SLF001  see above

from __future__ import annotations

from typing import Any

import hiredis
from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.exceptions import ConnectionError as NotConnected


async def received(connection: Any, most: int) -> list[Any]:
    """At most `most` replies that lie in the connection's buffer, errors as values.

    None at all for a parser that is not hiredis. Raises ConnectionError, and disconnects, where
    the server's reply means that.
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
