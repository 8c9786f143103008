"""Is Kafka there? Said once when it has gone and once when it is back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from dragoman_schemas.wire import now_rfc3339
from dragoman_worker.log import logger

LOOK_EVERY_S: Final = 0.5
LOOKS_BEFORE_AWAY: Final = 6
"""So many in a row must find nobody: to connect again, or to a new leader, takes a moment. Looks,
not seconds: a process that was stopped goes on with answers that it has not read yet."""


class Contact:
    """What the consumer's connections say. Costs the broker nothing; no I/O."""

    def __init__(self, servers: str, answers: Callable[[], bool | None]) -> None:
        """`answers`: whether a broker does; None while nobody asks one."""
        self._servers = servers
        self._answers = answers
        self._misses = 0
        self._since = ""
        self._missed_at = 0.0
        self.away = False

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self.look()

    def look(self) -> None:
        """Look once."""
        answers = self._answers()
        if answers:
            self._found()
        elif answers is False:
            self._missed()

    def _found(self) -> None:
        if self.away:
            after_s = round(time.monotonic() - self._missed_at, 1)
            logger().info("kafka_available", servers=self._servers, after_s=after_s)
        self.away, self._misses = False, 0

    def _missed(self) -> None:
        if self._misses == 0:
            self._since, self._missed_at = now_rfc3339(), time.monotonic()
        self._misses += 1
        if self._misses == LOOKS_BEFORE_AWAY:
            self.away = True
            logger().warning("kafka_unavailable", servers=self._servers, since=self._since)
