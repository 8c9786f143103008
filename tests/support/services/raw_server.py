"""A server that writes bytes as they are given: what no library of servers would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from support.services.openai_server import answer

Write = Callable[[asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]


def http(body: bytes, *, status: str = "200 OK", **headers: str) -> bytes:
    """Return a reply with an honest length, unless the headers say another."""
    given = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


class RawServer:
    """Answers requests with a job's text by `on_text`, and the others as OpenAI's API does."""

    def __init__(self, on_text: Write, *, host: str = "127.0.0.1", prefix: str = "") -> None:
        self.on_text = on_text
        self.times = 1
        """How many of those it gets; later ones are answered well."""
        self.heads: list[bytes] = []
        """Heads of the requests."""
        self._host = host
        self._prefix = prefix
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address."""
        assert self._server is not None
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._server.sockets[0].getsockname()[1]}{self._prefix}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, self._host, 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    await self._reply(reader, writer)
        finally:
            writer.close()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, path = head.decode().split(" ")[:2]
        path = path.removeprefix(self._prefix)
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line[:15] == b"Content-Length:"), 0
        )
        body = json.loads(await reader.readexactly(length) or b"{}")
        if path == "/v1/models":
            writer.write(http(json.dumps({"data": [{"id": "m", "max_model_len": 512}]}).encode()))
        elif method == "GET" or "completions" not in path:
            writer.write(http(b"{}", status="404 Not Found"))
        elif "TEXT" in json.dumps(body) and self.times:
            self.times -= 1
            await self.on_text(writer, body)
        else:
            writer.write(http(json.dumps(answer("done")).encode()))
        await writer.drain()
