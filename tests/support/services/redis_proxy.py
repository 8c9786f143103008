"""A proxy before Redis that loses replies or delays requests."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

_CHUNK = 65_536


class RedisProxy:
    """Forwards to a port of this machine; `cut_after(word)` cuts once after forwarding the word.

    The server receives the whole request; its reply is lost. `hold(word)` keeps requests back.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._cut_after: bytes | None = None
        self._hold: bytes | None = None
        self._let_go = asyncio.Event()
        self.held = asyncio.Event()
        """Set while a request is kept back."""
        self.cuts = 0

    @property
    def url(self) -> str:
        """Database 0, through the proxy."""
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    def cut_after(self, word: bytes) -> None:
        """Cut the next connection that sends `word`, as soon as Redis has answered."""
        self._cut_after = word

    def hold(self, word: bytes) -> None:
        """Keep back requests that contain `word`, and those behind them, until `let_go`."""
        self._hold = word

    def let_go(self) -> None:
        """Forward what was kept back, and all that comes after it."""
        self._hold = None
        self.held.clear()
        self._let_go.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        closing = (writer.wait_closed() for writer in self._writers)
        await asyncio.gather(*closing, return_exceptions=True)

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far, forth = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [forth, back]
        lost = asyncio.Event()
        ways = [
            asyncio.create_task(self._requests(near, forth, lost)),
            asyncio.create_task(self._replies(far, back, lost)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for writer in (forth, back):
                writer.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._tasks.discard(task)

    async def _requests(
        self, near: asyncio.StreamReader, forth: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        while data := await near.read(_CHUNK):
            if self._cut_after is not None and self._cut_after in data:
                self._cut_after = None
                lost.set()
            if self._hold is not None and self._hold in data:
                self.held.set()
                await self._let_go.wait()
            forth.write(data)
            await forth.drain()

    async def _replies(
        self, far: asyncio.StreamReader, back: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        while data := await far.read(_CHUNK):
            if lost.is_set():
                self.cuts += 1
                return
            back.write(data)
            await back.drain()
