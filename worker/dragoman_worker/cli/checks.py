"""Findings of `check`: model, Redis, Kafka, topics and rights, tried one after another."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal, Protocol, runtime_checkable

from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import counted
from dragoman_worker.deadline import Deadline
from dragoman_worker.engines.machine import this_machine
from dragoman_worker.engines.sizing import share_out
from dragoman_worker.engines.starting import open_engine
from dragoman_worker.engines.vllm.patches.table import PATCHES, chosen
from dragoman_worker.errors import Halt, Unavailable
from dragoman_worker.kafka.inspection import COMPACTED, inspection
from dragoman_worker.kafka.rights import TopicRights
from dragoman_worker.kafka.topics import problem_of
from dragoman_worker.prompts.table import PROFILES, profiles_of
from dragoman_worker.recognition import recognized_profile
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.stores.announcements import announcement_problem
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.memory_outages import memory_problem
from dragoman_worker.stores.redis import RedisStore

CONNECT_TIMEOUT_S = 10.0


@runtime_checkable
class Served(Protocol):
    """An engine behind a server: what was found there."""

    @property
    def found(self) -> str:
        """One line."""
        ...


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check. `warn` means that it works, but perhaps not as intended."""

    name: str
    status: Literal["ok", "warn", "bad"]
    detail: str


async def findings(settings: WorkerSettings, *, engine: bool = True) -> AsyncIterator[CheckResult]:
    """Yield each finding as it is made; the engine takes longest and comes last."""
    yield _profile(settings)
    yield _replicas(settings)
    yield await _redis(settings)
    yield await _memory(settings)
    yield await _announcements(settings)
    async for finding in _kafka(settings):
        yield finding
    if settings.engine.kind == "vllm" and find_spec("vllm"):
        yield _patches(settings)
    if engine:
        yield await _engine(settings)


def _profile(settings: WorkerSettings) -> CheckResult:
    try:
        profiles_of(settings.engine)
    except SettingsError as error:
        return CheckResult("profile", "bad", str(error))
    profile, asked = settings.engine.profile, recognized_profile(settings.engine.model or "")
    if asked is None or asked == profile or profile not in PROFILES:
        return CheckResult("profile", "ok", profile)
    return CheckResult("profile", "warn", f"{profile}; by its name, the model needs {asked}")


def _replicas(settings: WorkerSettings) -> CheckResult:
    """Return how many engines `run` would start, and on which GPUs."""
    try:
        share = share_out(settings.engine, this_machine)
    except SettingsError as error:
        return CheckResult("replicas", "bad", str(error))
    groups = dict.fromkeys(",".join(place.gpus) for place in share.places if place.gpus)
    on = f" on GPU {'; '.join(groups)}" if groups else ""
    return CheckResult("replicas", "ok", f"{len(share.places)}{on}; {share.reason}")


async def _redis(settings: WorkerSettings) -> CheckResult:
    async with redis_servers(settings.redis) as servers:
        store = RedisStore(settings.redis, servers, poison_after=4, want_results=False)
        try:
            await store.start(Deadline.after(_timeout_s(settings)))
        except (Halt, SettingsError) as error:
            return CheckResult("redis", "bad", str(error))
        finally:
            await store.close()
    if missing := store.missing_replicas:
        what = f"{missing} more replicas" if missing > 1 else "one more replica"
        detail = f"redis.durability = {settings.redis.durability} needs {what}; until then nothing"
        return CheckResult("redis", "warn", f"{store.address}; {detail} is committed")
    return CheckResult("redis", "ok", store.address)


async def _memory(settings: WorkerSettings) -> CheckResult:
    if not settings.memory_enabled:
        by = "by default" if settings.memory.enabled is None else "by memory.enabled"
        detail = f"off {by}: approved and earlier translations are not used; memory.enabled = true"
        return CheckResult("memory", "ok", f"{detail} turns it on")
    problem = await memory_problem(settings.redis)
    if problem is None:
        return CheckResult("memory", "ok", f"at most {settings.memory.max_mb} MB in Redis")
    return CheckResult(
        "memory",
        "warn",
        f"jobs would run without it: {problem}; give the Redis user the rights on "
        "dragoman:memory:*, or set memory.enabled = false",
    )


async def _announcements(settings: WorkerSettings) -> CheckResult:
    if (problem := await announcement_problem(settings.redis)) is None:
        return CheckResult("announcement", "ok", "dry runs and `audit` can see this worker")
    detail = f"dry runs and `audit` would not see this worker: {problem}"
    return CheckResult("announcement", "warn", detail)


async def _kafka(settings: WorkerSettings) -> AsyncIterator[CheckResult]:
    within = Deadline.after(_timeout_s(settings))
    try:
        async with inspection(settings.kafka, within) as broker:
            yield CheckResult("kafka", "ok", settings.kafka.bootstrap_servers)
            for rights in await broker.topics():
                finding = _topic(rights, settings)
                if finding.status == "ok" and rights.name != settings.kafka.results_topic:
                    finding = _kept(finding, compacted=await broker.compacted(rights.name))
                if finding.status == "ok" and rights.name in settings.kafka.topic_names:
                    finding = _input(
                        finding, rights, await broker.retention_ms(rights.name), settings
                    )
                yield finding
            yield _group(settings, await broker.group_problem())
    except (Halt, SettingsError, Unavailable) as error:
        yield CheckResult("kafka", "bad", str(error))


def _topic(rights: TopicRights, settings: WorkerSettings) -> CheckResult:
    name = f"topic {rights.name}"
    if (problem := problem_of(rights, settings.kafka)) is not None:
        return CheckResult(name, "bad", problem)
    return CheckResult(name, "ok", counted(rights.partitions, "partition"))


def _kept(finding: CheckResult, *, compacted: bool) -> CheckResult:
    """Return the finding of a topic in which every record counts: of jobs, of dead letters."""
    return replace(finding, status="warn", detail=COMPACTED) if compacted else finding


def _input(
    finding: CheckResult, rights: TopicRights, retention_ms: int | None, settings: WorkerSettings
) -> CheckResult:
    """Return the finding of a topic of jobs, with what may not be as intended."""
    if rights.partitions == 1:
        detail = "it has 1 partition, so only one worker can read it and others stay idle"
        return replace(finding, status="warn", detail=detail)
    live_s = settings.redis.live_ttl_s
    if retention_ms is None or 0 <= retention_ms <= live_s * 1000:
        return finding
    kept = "forever" if retention_ms < 0 else f"for {retention_ms / 1000:.0f} s"
    detail = (
        f"{finding.detail}; it keeps records {kept}, and redis.live_ttl_s an unfinished job for "
        f"{live_s} s: one that waits longer is forgotten, with its cancellation"
    )
    return replace(finding, status="warn", detail=detail)


def _group(settings: WorkerSettings, problem: str | None) -> CheckResult:
    name = f"group {settings.kafka.group_id}"
    if problem is not None:
        return CheckResult(name, "bad", problem)
    return CheckResult(name, "ok", "this user may join it")


async def _engine(settings: WorkerSettings) -> CheckResult:
    try:
        place = share_out(settings.engine, this_machine).places[0]
        os.environ.update(place.environment)  # before CUDA is initialised
        options = {**settings.engine.options, **place.engine_options}
        engine = open_engine(settings.engine.model_copy(update={"options": options}))
        try:
            await engine.start()
            limits = engine.limits
        finally:
            await engine.close()
    except (SettingsError, Halt) as error:
        return CheckResult("engine", "bad", str(error))
    if isinstance(engine, Served):
        detail = f"{engine.info.version}: {engine.found}; context {limits.max_model_len}"
        return CheckResult("engine", "ok", detail)
    return CheckResult(
        "engine",
        "ok",
        f"{engine.info.name} {engine.info.version}, {limits.max_num_seqs} sequences, "
        f"{limits.max_num_batched_tokens} batched tokens, context {limits.max_model_len}, "
        f"{limits.kv_cache_tokens} tokens of KV cache",
    )


def _patches(settings: WorkerSettings) -> CheckResult:
    """Return what the worker changes in vLLM, and what it leaves as it is for want of a name."""
    patches = chosen(settings.engine.patches)
    detail = f"{settings.engine.patches}: {', '.join(sorted(patches.names)) or 'none'}"
    if not patches.missing:
        return CheckResult("patches of vLLM", "ok", detail)
    left_out = (
        f"{name}, because this vLLM has no {lacking} ({PATCHES[name].lost})"
        for name, lacking in patches.missing.items()
    )
    return CheckResult("patches of vLLM", "warn", f"{detail}; left out: {'; '.join(left_out)}")


def _timeout_s(settings: WorkerSettings) -> float:
    return min(settings.connect_timeout_s, CONNECT_TIMEOUT_S)
