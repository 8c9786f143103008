"""Availability of Kafka: logged once when it is lost and once when it is back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from dragoman_schemas.wire import now_rfc3339
from dragoman_worker.log import logger

CHECK_EVERY_S: Final = 0.5
MISSES_BEFORE_UNAVAILABLE: Final = 6
"""Failed checks in a row until Kafka counts as unavailable: a reconnect or a new leader takes time.

Checks are counted, not seconds: a process that was stopped continues with answers that it has not
read yet.
"""


class KafkaAvailability:
    """Kafka's availability by the consumer's connections. No I/O and no cost for the broker."""

    def __init__(self, servers: str, answers: Callable[[], bool | None]) -> None:
        """Check with `answers` whether a broker answers; None while there is no consumer."""
        self._servers = servers
        self._answers = answers
        self._misses = 0
        self._since = ""
        self._missed_at = 0.0
        self.unavailable = False

    async def watch(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            self.check()

    def check(self) -> None:
        """Check once."""
        answers = self._answers()
        if answers:
            self._found()
        elif answers is False:
            self._missed()

    def _found(self) -> None:
        if self.unavailable:
            after_s = round(time.monotonic() - self._missed_at, 1)
            logger().info("kafka_available", servers=self._servers, after_s=after_s)
        self.unavailable, self._misses = False, 0

    def _missed(self) -> None:
        if self._misses == 0:
            self._since, self._missed_at = now_rfc3339(), time.monotonic()
        self._misses += 1
        if self._misses == MISSES_BEFORE_UNAVAILABLE:
            self.unavailable = True
            logger().warning("kafka_unavailable", servers=self._servers, since=self._since)
