"""Topics and rights that a worker needs, and the wait for them at the start."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Unreachable
from dragoman_worker.kafka.connection import connected, quietly
from dragoman_worker.kafka.rights import TopicRights, may_read_group, topic_rights
from dragoman_worker.log import logger

_BETWEEN_CHECKS_S: Final = 1.0
_BETWEEN_WARNINGS: Final = 10


async def topics_ready(settings: KafkaSettings, within: Deadline) -> None:
    """Wait until no topic or right is missing, as it may be granted soon. Raises Unreachable."""
    admin = await connected(
        lambda: AIOKafkaAdminClient(**client_options(settings)), settings, within
    )
    try:
        checks = 0
        while missing := await _missing(admin, settings):
            if within.at_most(_BETWEEN_CHECKS_S) < _BETWEEN_CHECKS_S:
                servers = settings.bootstrap_servers
                raise Unreachable(f"Kafka at {servers}: {'; '.join(missing)}")
            if checks % _BETWEEN_WARNINGS == 0:
                logger().warning("waiting_for_topic", missing=missing, left_s=round(within.left_s))
            checks += 1
            await asyncio.sleep(_BETWEEN_CHECKS_S)
    finally:
        await quietly(admin.close)


async def _missing(admin: Any, settings: KafkaSettings) -> list[str]:
    try:
        missing = [
            f"topic {rights.name}: {problem}"
            for rights in await topic_rights(admin, needed_topics(settings))
            if (problem := problem_of(rights, settings)) is not None
        ]
        problem = await group_problem(admin, settings)
        return missing + ([f"group {settings.group_id}: {problem}"] if problem else [])
    except (KafkaError, OSError) as error:
        return [f"it does not report its topics ({type(error).__name__})"]


def written_topics(settings: KafkaSettings) -> list[str]:
    """Return the topics that a worker writes to."""
    results = [settings.results_topic] if settings.results_topic else []
    return [settings.dead_letter_topic, *results]


def needed_topics(settings: KafkaSettings) -> list[str]:
    """Return all topics of a worker, each once."""
    return list(dict.fromkeys((*settings.topic_names, *written_topics(settings))))


def problem_of(rights: TopicRights, settings: KafkaSettings) -> str | None:
    """Return why the worker cannot use the topic, or None."""
    needs = ["READ"] if rights.name in settings.topic_names else []
    needs += ["WRITE"] if rights.name in written_topics(settings) else []
    return next(filter(None, map(rights.problem, needs)), None)


async def group_problem(admin: Any, settings: KafkaSettings) -> str | None:
    """Return why the worker cannot join its group, or None. Raises KafkaError."""
    if await may_read_group(admin, settings.group_id):
        return None
    return "this user may not join it; grant READ on the group"
