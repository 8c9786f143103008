"""When the memory asks Redis, when it does not, and what it logs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from redis.exceptions import NoPermissionError, OutOfMemoryError, ResponseError
from structlog.testing import capture_logs

from dragoman_connections.redis_access.calls import Answer, Call, Command
from dragoman_worker.stores.memory_outages import MemoryOutages, refusal


class Away:
    """Servers that fail until `back` is set."""

    def __init__(self) -> None:
        self.back = False
        self.tries = 0

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        raise NotImplementedError

    async def each(self, *commands: Command) -> list[list[Any]]:
        self.tries += 1
        if not self.back:
            raise OSError("away")
        return [["PONG"] for _ in commands]

    async def keys(self, prefix: str) -> set[bytes]:
        raise NotImplementedError

    async def load_scripts(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_single_slow_reply_ends_at_once_with_one_warning_per_hour() -> None:
    servers = Away()
    servers.back = True
    now = 0.0
    outages = MemoryOutages(servers, clock=lambda: now)
    with capture_logs() as logs:
        for _ in range(3):
            outages.failed(TimeoutError())
            assert outages.available is False
            await turns()
            assert outages.available is True
        now = 3_600.0
        outages.failed(TimeoutError())
        await turns()
    assert [line["event"] for line in logs] == ["memory_refused", "memory_refused"]


async def test_outage_is_logged_once_and_its_end_too() -> None:
    servers = Away()
    outages = MemoryOutages(servers, longest_pause_s=0)
    with capture_logs() as logs:
        outages.failed(OSError("gone"))
        outages.failed(OSError("gone"))
        await turns()
        assert servers.tries > 1
        servers.back = True
        await turns()
    assert outages.available is True
    assert [line["event"] for line in logs] == ["memory_unavailable", "memory_back"]
    await outages.close()


async def test_start_without_redis_raises_nothing() -> None:
    outages = MemoryOutages(Away(), longest_pause_s=0)
    await outages.start()
    assert outages.available is False
    await outages.close()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), "OOM"),
        (NoPermissionError("User w has no permissions"), "NOPERM"),
        (ResponseError("WRONGTYPE Operation against a key"), "WRONGTYPE"),
        (ResponseError("secret text of a user"), "ResponseError"),
        (TimeoutError("no answer"), "TimeoutError"),
    ],
)
def test_refusals_are_named_without_their_text(error: Exception, code: str) -> None:
    assert refusal(error) == code
