"""Periodic check of the topics that the worker writes to: existence and rights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.kafka.connection import quietly
from dragoman_worker.kafka.rights import topic_rights
from dragoman_worker.kafka.topics import written_topics
from dragoman_worker.log import logger, where

CHECK_EVERY_S: Final = 3.0
REQUEST_WITHIN_S: Final = 10.0


class TopicWatch:
    """Asks the broker every few seconds, whether or not there is a record to write.

    A producer reports nothing: it retries a missing topic for ever and delays each record.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._topics = written_topics(settings)
        self.refused: dict[str, str] = {}
        """Problem of each topic that cannot be written to, by topic."""

    async def watch(self) -> None:
        """Check until cancelled; an unavailable broker changes nothing."""
        admin: Any = None
        try:
            while True:
                await asyncio.sleep(CHECK_EVERY_S)
                try:
                    async with asyncio.timeout(REQUEST_WITHIN_S):
                        admin = admin or await _started(self._settings)
                        self._judge(await topic_rights(admin, self._topics), "WRITE")
                except (KafkaError, OSError, RuntimeError) as error:
                    logger().debug("topics_unknown", where=where(error))
                    await _closed(admin)
                    admin = None
        finally:
            await _closed(admin)

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
