"""Findings of `check`: model, Redis, Kafka, topics and rights, tried one after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import SettingsError
from dragoman_worker.deadline import Deadline
from dragoman_worker.engines import open_engine
from dragoman_worker.errors import Halt, JobError
from dragoman_worker.kafka.connection import connected, quietly
from dragoman_worker.kafka.rights import TopicRights, may_read_group, topic_rights
from dragoman_worker.kafka.topics import needed_topics, problem_of
from dragoman_worker.prompts import get_profile
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.stores.redis import RedisStore

CONNECT_TIMEOUT_S = 10.0
KAFKA_TIMEOUT_S = 8.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check. `warn` means that it works, but perhaps not as intended."""

    name: str
    status: Literal["ok", "warn", "bad"]
    detail: str


async def findings(settings: WorkerSettings, *, engine: bool = True) -> AsyncIterator[Finding]:
    """Yield each finding as it is made; the engine takes longest and comes last."""
    yield _profile(settings)
    yield await _redis(settings)
    async for finding in _kafka(settings):
        yield finding
    if engine:
        yield await _engine(settings)


def _profile(settings: WorkerSettings) -> Finding:
    try:
        profile = get_profile(settings.engine.profile)
    except JobError as error:
        return Finding("profile", "bad", f"engine.{error}")
    return Finding("profile", "ok", profile.name)


async def _redis(settings: WorkerSettings) -> Finding:
    store = RedisStore(settings.redis, poison_after=4, want_results=False)
    try:
        await store.start(Deadline.after(_timeout_s(settings)))
    except (Halt, SettingsError) as error:
        return Finding("redis", "bad", str(error))
    finally:
        await store.close()
    return Finding("redis", "ok", store.address)


async def _kafka(settings: WorkerSettings) -> AsyncIterator[Finding]:
    servers = settings.kafka.bootstrap_servers
    try:
        admin = await connected(
            lambda: AIOKafkaAdminClient(**client_options(settings.kafka)),
            settings.kafka,
            Deadline.after(_timeout_s(settings)),
        )
    except (Halt, SettingsError) as error:
        yield Finding("kafka", "bad", str(error))
        return
    try:
        async with asyncio.timeout(KAFKA_TIMEOUT_S):
            yield Finding("kafka", "ok", servers)
            for rights in await topic_rights(admin, needed_topics(settings.kafka)):
                yield _topic(rights, settings)
            yield await _group(admin, settings)
    except (KafkaError, OSError) as error:  # OSError includes TimeoutError
        yield Finding("kafka", "bad", f"{servers} does not list its topics: {type(error).__name__}")
    finally:
        await quietly(admin.close)


def _topic(rights: TopicRights, settings: WorkerSettings) -> Finding:
    name = f"topic {rights.name}"
    if (problem := problem_of(rights, settings.kafka)) is not None:
        return Finding(name, "bad", problem)
    if rights.partitions == 1:
        return Finding(name, "warn", "only one worker can read its one partition; others are idle")
    return Finding(name, "ok", f"{rights.partitions} partitions")


async def _group(admin: AIOKafkaAdminClient, settings: WorkerSettings) -> Finding:
    name = f"group {settings.kafka.group_id}"
    if await may_read_group(admin, settings.kafka.group_id):
        return Finding(name, "ok", "may be joined")
    return Finding(name, "bad", "this user may not join it; grant READ on the group")


async def _engine(settings: WorkerSettings) -> Finding:
    try:
        engine = open_engine(settings.engine)
        try:
            await engine.start()
            limits = engine.limits
        finally:
            await engine.close()
    except (SettingsError, Halt) as error:
        return Finding("engine", "bad", str(error))
    return Finding(
        "engine",
        "ok",
        f"{engine.info.name} {engine.info.version}, {limits.max_num_seqs} sequences, "
        f"{limits.max_num_batched_tokens} batched tokens, context {limits.max_model_len}, "
        f"{limits.kv_cache_tokens} tokens of KV cache",
    )


def _timeout_s(settings: WorkerSettings) -> float:
    return min(settings.connect_timeout_s, CONNECT_TIMEOUT_S)
