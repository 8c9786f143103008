"""Connections to servers, of which none holds bytes that belong to no request."""

from __future__ import annotations

from typing import Any, Final

import aiohttp
from aiohttp.connector import Connection

from dragoman_connections.settings import SettingsError
from dragoman_worker.settings import EngineSettings

_KEPT_S: Final = 4.0
"""Of an unused connection; uvicorn closes them after 5 s."""


def open_session(settings: EngineSettings) -> aiohttp.ClientSession:
    """Return a session that sends the key. Raises SettingsError for one that no header can hold."""
    return aiohttp.ClientSession(
        headers=_key_header(settings),
        connector=CleanConnector(),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )


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


def _key_header(settings: EngineSettings) -> dict[str, str]:
    if settings.api_key is None:
        return {}
    key = settings.api_key.get_secret_value()
    if not (key.isascii() and key.isprintable()):
        raise SettingsError("engine.api_key: it has characters that no key has; is it the key?")
    if any("@" in url for url in settings.url):
        raise SettingsError("engine.url: give a user and a password, or engine.api_key, not both")
    return {"Authorization": f"Bearer {key}"}
