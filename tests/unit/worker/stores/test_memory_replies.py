"""Whatever Redis replies to a look-up in the memory, it costs the hit and never the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry
from redis.exceptions import ResponseError

from dragoman_connections.redis_access.calls import Answer, Call, Command, Servers
from dragoman_connections.settings import RedisSettings
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import ApprovedQuery
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores.redis_memory import RedisMemory


class Replies:
    """Servers that give every command the same reply, or raise it."""

    def __init__(self, reply: Any, *, raises: bool) -> None:
        self._reply = reply
        self._raises = raises

    async def send(self, calls: Sequence[Call], _: Command | None = None) -> list[Answer]:
        if self._raises:
            raise self._reply
        return [Answer([self._reply] * len(call.commands)) for call in calls]

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [[b"PONG"] * len(commands)]

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize(
    "reply",
    [ResponseError("upstream failure"), ValueError("a redirection to nowhere"), 7, [7], b"OK", {}],
    ids=repr,
)
async def test_an_odd_reply_is_a_miss(reply: Any, raises: bool) -> None:
    servers = Replies(reply, raises=raises and isinstance(reply, Exception))
    settings, metrics = RedisSettings(url="redis://127.0.0.1:1/0"), Metrics(CollectorRegistry())
    memory = RedisMemory(settings, cast("Servers", servers), MemorySettings(), metrics, limit_s=30)
    try:
        assert await memory.recall([b"k" * 32]) == [None]
        assert await memory.approved([ApprovedQuery("Save", "de")]) == [None]
    finally:
        await memory.close()
