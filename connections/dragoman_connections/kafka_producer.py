"""Kafka producer that is replaced as a whole once it can no longer publish."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

Headers = Sequence[tuple[str, bytes | None]]


class SenderDied(KafkaError):  # type: ignore[misc]
    """The producer's background task has ended: no record of it will be acknowledged any more."""


class ReplaceableProducer:
    """Holds one started producer; the first caller that finds it broken retires it.

    An idempotent producer cannot recover from a lost sequence, and aiokafka's sender task does not
    restart once it has ended. `start` builds and starts a producer, `stop` stops one whatever its
    state. A record that was sent but not acknowledged may be published twice.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[AIOKafkaProducer]],
        stop: Callable[[AIOKafkaProducer], Awaitable[None]],
    ) -> None:
        self._start = start
        self._stop = stop
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def started(self) -> AIOKafkaProducer:
        """Return the producer; the first of concurrent callers starts it if there is none.

        Raises what `start` raises.
        """
        if (producer := self._producer) is not None:
            return producer
        async with self._starting:
            return self._producer or self.use(await self._start())

    def use(self, producer: AIOKafkaProducer) -> AIOKafkaProducer:
        """Publish through this started producer from now on, and return it."""
        fail_records_with_sender(producer)
        self._producer = producer
        return producer

    async def retire(self, broken: AIOKafkaProducer) -> None:
        """Stop a producer that can no longer publish; `started` replaces it."""
        if self._producer is broken:
            self._producer = None
            await self._stop(broken)

    async def close(self) -> None:
        """Stop the producer, if there is one."""
        if self._producer is not None:
            await self.retire(self._producer)


def fail_records_with_sender(producer: Any) -> None:
    """Fail every unacknowledged and later record with SenderDied once the sender task has ended.

    aiokafka fails them only if the task raised; after a cancellation they would wait for ever.
    """

    def fail_all(_: asyncio.Task[None]) -> None:
        producer._message_accumulator.fail_all(SenderDied("the sender task has ended"))  # noqa: SLF001

    producer._sender.sender_task.add_done_callback(fail_all)  # noqa: SLF001  no public sign of it
