"""Connections to servers, of which none holds bytes that belong to no request."""

from __future__ import annotations

from typing import Any, Final

import aiohttp
from aiohttp.connector import Connection

_KEPT_S: Final = 4.0
"""Of an unused connection; uvicorn closes them after 5 s."""


class CleanConnector(aiohttp.TCPConnector):
    """Closes a kept connection to which the server wrote more than its reply.

    aiohttp would take what came after the reply for the reply to the next request.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=_KEPT_S)

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:
        """Return a connection without unread bytes."""
        while True:
            connection = await super().connect(*args, **kwargs)
            protocol = connection.protocol
            if protocol is None or not protocol.should_close:
                return connection
            connection.close()
