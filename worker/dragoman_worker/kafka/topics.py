"""Are the topics there that we read? Asked at the start, or a wrong name would go unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from dragoman_schemas.connections import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unreachable
from dragoman_worker.kafka.connection import client_options, connected, quietly
from dragoman_worker.log import logger

_BETWEEN_LOOKS_S: Final = 1.0
_BETWEEN_WARNINGS: Final = 10


async def topics_exist(settings: KafkaSettings, topics: Collection[str], within: Deadline) -> None:
    """Return once all are there; somebody may be about to make them. Raises Unreachable."""
    admin = await connected(
        lambda: AIOKafkaAdminClient(**client_options(settings)), settings, within
    )
    try:
        looks = 0
        while missing := await _missing(admin, topics):
            names = ", ".join(missing)
            if within.at_most(_BETWEEN_LOOKS_S) < _BETWEEN_LOOKS_S:
                raise Unreachable(
                    f"kafka.topics: there is no topic {names} on Kafka at "
                    f"{settings.bootstrap_servers}; "
                    "make it by `dragoman topics create`"
                )
            if looks % _BETWEEN_WARNINGS == 0:
                logger().warning("waiting_for_topic", topics=names, left_s=round(within.left_s))
            looks += 1
            await asyncio.sleep(_BETWEEN_LOOKS_S)
    finally:
        await quietly(admin.close)


async def _missing(admin: Any, topics: Collection[str]) -> list[str]:
    try:
        existing = set(await admin.list_topics())  # asking for one by name could create it
    except (KafkaError, OSError):
        existing = set()
    return sorted(set(topics) - existing)
