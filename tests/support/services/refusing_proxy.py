"""A proxy before Redis that can have every command answered with an error that nobody foresaw."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Final

_HANDSHAKE: Final = {b"HELLO", b"AUTH", b"CLIENT", b"SELECT"}


class RefusingProxy:
    """Forwards to a port of this machine, in a thread.

    While it refuses, each command is replaced by a script that returns the error: Redis itself
    keeps the replies in order.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._error: str | None = None
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        serving = asyncio.run_coroutine_threadsafe(self._start(), self._loop)
        self.url = f"redis://127.0.0.1:{serving.result(10)}/0"

    def refuse(self, error: str) -> None:
        """Answer every command with this error from now on."""
        self._error = error

    def accept(self) -> None:
        """Forward commands again."""
        self._error = None

    def close(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _start(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError):
            far, forth = await asyncio.open_connection("127.0.0.1", self._target)
            ways = [
                asyncio.create_task(self._requests(near, forth)),
                asyncio.create_task(_replies(far, back)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            forth.close()
        back.close()

    async def _requests(self, near: asyncio.StreamReader, forth: asyncio.StreamWriter) -> None:
        while True:
            head = await near.readuntil(b"\n")
            parts = [await _bulk(near) for _ in range(int(head[1:]))]
            if self._error is None or parts[0].upper() in _HANDSHAKE:
                forth.write(_array(parts))
            else:
                script = f"return redis.error_reply('{self._error}')".encode()
                forth.write(_array([b"EVAL", script, b"0"]))
            await forth.drain()


async def _replies(far: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
    while data := await far.read(65_536):
        back.write(data)
        await back.drain()


async def _bulk(near: asyncio.StreamReader) -> bytes:
    size = int((await near.readuntil(b"\n"))[1:])
    return (await near.readexactly(size + 2))[:-2]


def _array(parts: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(p), p) for p in parts)
