"""Inspection of the topics and the group with the rights of the worker's user, for `check`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unavailable
from dragoman_worker.kafka.connection import connected, quietly
from dragoman_worker.kafka.rights import TopicRights, topic_rights
from dragoman_worker.kafka.topics import group_problem, needed_topics

INSPECT_WITHIN_S: Final = 8.0
_RETENTION: Final = "retention.ms"
_CLEANUP: Final = "cleanup.policy"
COMPACTED: Final = (
    "cleanup.policy is compact, which removes all but the newest record of a key; set it to delete"
)


class Inspection:
    """Questions to a connected broker. They change nothing."""

    def __init__(self, admin: Any, settings: KafkaSettings) -> None:
        self._admin = admin
        self._settings = settings

    async def topics(self) -> Sequence[TopicRights]:
        """Return the rights on each topic that a worker needs."""
        return await topic_rights(self._admin, needed_topics(self._settings))

    async def retention_ms(self, topic: str) -> int | None:
        """Return for how long the topic keeps its records, -1 for ever, None if it is not shown."""
        found = await topic_configs(self._admin, topic, _RETENTION)
        return int(found[_RETENTION]) if _RETENTION in found else None

    async def compacted(self, topic: str) -> bool:
        """Return whether the topic keeps only the newest record of a key; False if not shown."""
        return await compacted(self._admin, topic)

    async def group_problem(self) -> str | None:
        """Return why the user cannot join the consumer group, or None."""
        return await group_problem(self._admin, self._settings)


async def compacted(admin: Any, topic: str) -> bool:
    """Return whether the topic keeps only the newest record of a key; False if not shown."""
    policy = (await topic_configs(admin, topic, _CLEANUP)).get(_CLEANUP, "")
    return "compact" in policy.split(",")


async def topic_configs(admin: Any, topic: str, *names: str) -> dict[str, str]:
    """Return those configurations of a topic that the broker shows this user.

    It needs DESCRIBE_CONFIGS on the topic, which no worker needs.
    """
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(names))
    try:
        (answer,) = await admin.describe_configs([resource])
    except KafkaError:  # a broker without this request
        return {}
    entries = [entry for *_, found in answer.resources for entry in found]
    return {entry[0]: entry[1] for entry in entries if entry[0] in names and entry[1] is not None}


@asynccontextmanager
async def inspection(settings: KafkaSettings, within: Deadline) -> AsyncIterator[Inspection]:
    """Connect for an inspection of up to 8 s.

    Raises Unreachable, Halt and SettingsError if no connection is made, and Unavailable if the
    broker does not answer a question.
    """
    admin = await connected(
        lambda: AIOKafkaAdminClient(**client_options(settings)), settings, within
    )
    try:
        async with asyncio.timeout(INSPECT_WITHIN_S):
            yield Inspection(admin, settings)
    except (KafkaError, OSError) as error:  # OSError includes TimeoutError
        servers, kind = settings.bootstrap_servers, type(error).__name__
        raise Unavailable(f"{servers} does not list its topics: {kind}") from None
    finally:
        await quietly(admin.close)
