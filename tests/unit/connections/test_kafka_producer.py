"""A broken producer is replaced once, and its records fail with its sender task."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from dragoman_connections.kafka_producer import ReplaceableProducer, SenderDied


class Producers:
    """Makes fake producers, and records which were stopped and how their records failed."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.stopped: list[Any] = []
        self.failed: list[Exception] = []
        self.held = ReplaceableProducer(self.start, self.stop)

    async def start(self) -> Any:
        sender = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)
        producer = SimpleNamespace(
            _sender=SimpleNamespace(sender_task=sender),
            _message_accumulator=SimpleNamespace(fail_all=self.failed.append),
        )
        self.made.append(producer)
        return producer

    async def stop(self, producer: Any) -> None:
        self.stopped.append(producer)
        producer._sender.sender_task.cancel()
        await asyncio.wait([producer._sender.sender_task])


async def test_concurrent_callers_start_one_producer_and_retire_it_once() -> None:
    producers = Producers()
    first, *others = await asyncio.gather(*(producers.held.started() for _ in range(5)))
    assert producers.made == [first]
    assert all(other is first for other in others)
    await asyncio.gather(*(producers.held.retire(first) for _ in range(5)))
    assert producers.stopped == [first]
    second = await producers.held.started()
    assert second is not first
    await producers.held.retire(first)  # by a caller that learnt of it late
    assert await producers.held.started() is second
    await producers.held.close()
    assert producers.stopped == [first, second]


async def test_records_fail_once_the_sender_task_has_been_cancelled() -> None:
    producers = Producers()
    producer: Any = await producers.held.started()
    producer._sender.sender_task.cancel()
    await asyncio.wait([producer._sender.sender_task])
    await asyncio.sleep(0)
    assert [type(error) for error in producers.failed] == [SenderDied]
    await producers.held.close()
