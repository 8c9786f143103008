"""Whatever Redis replies to a look-up in the memory, it costs the hit and never the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from redis.exceptions import ResponseError

from dragoman_connections.redis_access.calls import Answer, Call, Command
from dragoman_connections.settings import RedisSettings
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import ApprovedQuery
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores import redis_memory
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
async def test_an_odd_reply_is_a_miss(
    reply: Any, raises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = raises and isinstance(reply, Exception)
    monkeypatch.setattr(redis_memory, "open_servers", lambda *_: Replies(reply, raises=raised))
    settings, metrics = RedisSettings(url="redis://127.0.0.1:1/0"), Metrics(CollectorRegistry())
    memory = RedisMemory(settings, MemorySettings(), metrics, limit_s=30)
    try:
        assert await memory.recall([b"k" * 32]) == [None]
        assert await memory.approved([ApprovedQuery("Save", "de")]) == [None]
    finally:
        await memory.close()
