"""Periodic check of the worker's topics: existence and rights where it writes, and compaction."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.kafka.connection import quietly
from dragoman_worker.kafka.inspection import COMPACTED, compacted
from dragoman_worker.kafka.rights import topic_rights
from dragoman_worker.kafka.topics import written_topics
from dragoman_worker.log import logger, where

CHECK_EVERY_S: Final = 3.0
_CONFIGS_EVERY: Final = 20
"""Checks between two looks at the configuration, which seldom changes."""
REQUEST_WITHIN_S: Final = 10.0


class TopicWatch:
    """Asks the broker every few seconds, whether or not there is a record to write.

    A producer reports nothing: it retries a missing topic for ever and delays each record.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._topics = written_topics(settings)
        self._kept = [*settings.topic_names, settings.dead_letter_topic]
        """Topics in which every record counts; of results, the newest of a job is enough."""
        self._compacted: set[str] = set()
        self.refused: dict[str, str] = {}
        """Problem of each topic that cannot be written to, by topic."""

    async def watch(self) -> None:
        """Check until cancelled; an unavailable broker changes nothing."""
        admin: Any = None
        try:
            for number in itertools.count():
                await asyncio.sleep(CHECK_EVERY_S)
                try:
                    async with asyncio.timeout(REQUEST_WITHIN_S):
                        admin = admin or await _started(self._settings)
                        self._judge(await topic_rights(admin, self._topics), "WRITE")
                        if number % _CONFIGS_EVERY == 0:
                            await self._warn_of_compaction(admin)
                except (KafkaError, OSError, RuntimeError) as error:
                    logger().debug("topics_unknown", where=where(error))
                    await _closed(admin)
                    admin = None
        finally:
            await _closed(admin)

    async def _warn_of_compaction(self, admin: Any) -> None:
        found = {name for name in self._kept if await compacted(admin, name)}
        for name in sorted(found - self._compacted):
            logger().warning("topic_compacted", topic=name, why=COMPACTED)
        self._compacted = found

    def _judge(self, found: list[Any], operation: str) -> None:
        for rights in found:
            problem = rights.problem(operation)
            if problem == self.refused.get(rights.name):
                continue
            if problem is None:
                del self.refused[rights.name]
                logger().info("topic_accepted", topic=rights.name)
            else:
                self.refused[rights.name] = problem
                logger().error("topic_refused", topic=rights.name, why=problem)


async def _started(settings: KafkaSettings) -> Any:
    admin = AIOKafkaAdminClient(**client_options(settings))
    try:
        await admin.start()
    except BaseException:
        await _closed(admin)
        raise
    return admin


async def _closed(admin: Any) -> None:
    if admin is not None:
        close: Callable[[], Any] = admin.close
        await quietly(close)
