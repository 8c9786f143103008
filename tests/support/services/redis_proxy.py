"""A proxy before Redis that loses replies, delays requests or refuses commands."""

from __future__ import annotations

import asyncio
import re
from types import TracebackType
from typing import Self

_CHUNK = 65_536
_HEAD = re.compile(rb"[*$](\d+)\r\n")


class RedisProxy:
    """Forwards to a port of this machine; `cut_after(word)` cuts once after forwarding the word.

    The server receives the whole request; its reply is lost. `hold(word)` keeps requests back.
    `refuse(reply, word)` answers commands with an error that Redis never gave.
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
        self._refusal: tuple[bytes, bytes] | None = None
        self.refused = 0

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

    def refuse(self, reply: bytes, word: bytes) -> None:
        """Answer each command that contains `word` with the error `reply`, until `serve`."""
        self._refusal = (reply, word)

    def serve(self) -> None:
        """Let Redis answer every command again."""
        self._refusal = None

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
        while command := await _command(near):
            data = self._refused(command)
            if self._cut_after is not None and self._cut_after in data:
                self._cut_after = None
                lost.set()
            if self._hold is not None and self._hold in data:
                self.held.set()
                await self._let_go.wait()
            forth.write(data)
            await forth.drain()

    def _refused(self, command: bytes) -> bytes:
        """Return the command, or one in its place that Redis answers with the error."""
        if self._refusal is None or self._refusal[1] not in command:
            return command
        self.refused += 1
        parts = (b"EVAL", b"return {err = ARGV[1]}", b"0", self._refusal[0])
        return b"*4\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)

    async def _replies(
        self, far: asyncio.StreamReader, back: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        while data := await far.read(_CHUNK):
            if lost.is_set():
                self.cuts += 1
                return
            back.write(data)
            await back.drain()


async def _command(near: asyncio.StreamReader) -> bytes:
    """Return the next command, an array of strings, as its bytes; empty at the end."""
    try:
        read = await near.readuntil(b"\r\n")
        for _ in range(_number(read)):
            head = await near.readuntil(b"\r\n")
            read += head + await near.readexactly(_number(head) + 2)
    except asyncio.IncompleteReadError:
        return b""
    return read


def _number(head: bytes) -> int:
    found = _HEAD.fullmatch(head)
    assert found is not None, head
    return int(found[1])
