"""The client contract: the same tests on the client in memory and the real one.

The real one uses a real Kafka and Redis and a stand-in for the worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import pytest

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_producer import (
    AlreadyCompleted,
    ClientClosed,
    IdTaken,
    JobHandle,
    JobStatus,
    JobTooLarge,
    ResultTimeout,
    SomeNotSubmitted,
    TranslationClient,
    TranslationJob,
    TranslationRejected,
)
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_schemas.jobs import Item
from dragoman_schemas.wire import encode_job, open_record
from support.fakes.played_worker import PlayedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer


def a_job(job_id: str, text: object = "Hello.", **fields: object) -> TranslationJob:
    return TranslationJob.model_validate(
        {"job_id": job_id, "text": text, "target_lang": "de", **fields}
    )


def translate(item: Item, job: TranslationJob) -> str:
    """Translate an item as every worker of these tests does."""
    if "fail" in item.text:
        raise ItemFailed
    return f"[{job.target_lang}] {item.text}"


class Scene(Protocol):
    """A client, and control of when its jobs run."""

    @property
    def client(self) -> TranslationClient | InMemoryClient: ...

    async def run(self, *jobs: TranslationJob, replay: int = 0) -> None:
        """Let a worker claim and finish these jobs."""
        ...


class InMemory:
    def __init__(self) -> None:
        self.client = InMemoryClient(translate, held=True)

    async def run(self, *jobs: TranslationJob, replay: int = 0) -> None:
        await self.client.run_all()


class Real:
    def __init__(self, client: TranslationClient, worker: PlayedWorker) -> None:
        self.client = client
        self._worker = worker

    async def run(self, *jobs: TranslationJob, replay: int = 0) -> None:
        for job in jobs:
            fingerprint = open_record(encode_job(job)).fingerprint
            if self._worker.claim(job.job_id, fingerprint, replay=replay).verdict != "run":
                continue
            texts = [self._text(item, job) for item in job.items]
            status = "failed" if None in texts else "completed"
            self._worker.finish(job.job_id, fingerprint, *texts, status=status, replays=replay)

    def _text(self, item: Item, job: TranslationJob) -> str | None:
        try:
            return translate(item, job)
        except ItemFailed:
            return None


@pytest.fixture(
    params=["memory", pytest.param("real", marks=[pytest.mark.kafka, pytest.mark.redis])]
)
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    if request.param == "memory":
        held = InMemory()
        yield held
        await held.client.close()
        return
    kafka: KafkaBroker = request.getfixturevalue("kafka")
    server: RedisServer = request.getfixturevalue("redis_server")
    topic: Callable[..., str] = request.getfixturevalue("topic")
    options = {
        "kafka.bootstrap_servers": kafka.bootstrap,
        "kafka.topics": topic(),
        "kafka.dead_letter_topic": topic(),
        "redis.url": server.url,
    }
    worker = PlayedWorker(server.url)
    worker.redis.flushall()
    async with TranslationClient(settings=load_settings(DragomanSettings, options=options)) as real:
        yield Real(real, worker)
    worker.close()


async def test_a_job_goes_from_queued_to_its_texts(scene: Scene) -> None:
    job = a_job("a", ["One.", {"text": "Two.", "id": "t"}], metadata={"page": "7"})
    handle = await scene.client.submit(job)
    assert await handle.status() is JobStatus.QUEUED
    waiting = asyncio.create_task(handle.texts(20))
    await scene.run(job)
    assert await waiting == ["[de] One.", "[de] Two."]
    assert await handle.text(0) == "[de] One.\n[de] Two."
    result = await scene.client.job("a").result(0)
    assert (result.status, result.fingerprint) == (
        "completed",
        open_record(encode_job(job)).fingerprint,
    )


async def test_a_failed_job_keeps_the_items_that_succeeded(scene: Scene) -> None:
    job = a_job("f", text=["One.", "fail"])
    handle = await scene.client.submit(job)
    await scene.run(job)
    with pytest.raises(TranslationRejected) as raised:
        await handle.texts(20)
    assert raised.value.code == "engine_failed"
    assert [item.text for item in raised.value.result.translations] == ["[de] One.", None]


async def test_an_unknown_job_has_no_status_and_no_result(scene: Scene) -> None:
    handle = scene.client.job("never")
    assert await handle.status() is None
    with pytest.raises(ResultTimeout) as raised:
        await handle.result(0.1)
    assert raised.value.status is None


async def test_a_wait_ends_in_time_and_says_where_the_job_is(scene: Scene) -> None:
    handle = await scene.client.submit(a_job("q"))
    with pytest.raises(ResultTimeout, match="queued"):
        await handle.result(0.1)


async def test_the_same_job_twice_is_one_job(scene: Scene) -> None:
    job = a_job("twice")
    await scene.client.submit(job)
    await scene.run(job)
    second = await scene.client.submit(job)
    await scene.run(job)
    assert await second.text(5) == "[de] Hello."


async def test_another_payload_cannot_take_an_id(scene: Scene) -> None:
    job = a_job("mine")
    await scene.client.submit(job)
    await scene.run(job)
    with pytest.raises(IdTaken):
        await scene.client.submit(a_job("mine", "Another."))
    assert await scene.client.job("mine").text(0) == "[de] Hello."


async def test_again_reopens_what_failed_and_waits_for_the_new_run(scene: Scene) -> None:
    job = a_job("r", "fail")
    first = await scene.client.submit(job)
    await scene.run(job)
    assert (await first.result(20)).status == "failed"
    second = await scene.client.submit(job, resubmit=True)
    assert (second.replay, await second.status()) == (1, JobStatus.QUEUED)
    assert (first.already, second.already) == (None, None), "both are run"
    with pytest.raises(ResultTimeout):
        await second.result(0.1)
    await scene.run(job, replay=1)
    assert (await second.result(20)).status == "failed"
    assert (await scene.client.submit(job, resubmit=True)).replay == 2


async def test_without_again_a_failed_job_stays_failed(scene: Scene) -> None:
    job = a_job("s", "fail")
    await scene.client.submit(job)
    await scene.run(job)
    handle = await scene.client.submit(job)
    assert handle.already == JobStatus.FAILED
    assert (await handle.result(20)).status == "failed"


async def test_a_job_that_was_cancelled_before_it_came_says_so(scene: Scene) -> None:
    assert await scene.client.job("early").cancel() == JobStatus.CANCELLED
    handle = await scene.client.submit(a_job("early"))
    assert handle.already == JobStatus.CANCELLED
    assert (await handle.result(20)).status == "cancelled"


async def test_again_on_a_completed_job_is_refused(scene: Scene) -> None:
    job = a_job("done")
    await scene.client.submit(job)
    await scene.run(job)
    with pytest.raises(AlreadyCompleted):
        await scene.client.submit(job, resubmit=True)


async def test_cancelling_a_queued_job_ends_it_for_good(scene: Scene) -> None:
    job = a_job("c")
    handle = await scene.client.submit(job)
    assert await handle.cancel() is JobStatus.CANCELLED
    await scene.run(job)
    result = await handle.result(20)
    assert result.status == "cancelled"
    assert result.error is not None
    assert result.error.code == "cancelled"
    again = await scene.client.submit(job, resubmit=True)
    await scene.run(job, replay=1)
    assert await again.text(20) == "[de] Hello."


async def test_cancelling_an_ended_or_unknown_job(scene: Scene) -> None:
    job = a_job("e")
    handle = await scene.client.submit(job)
    await scene.run(job)
    assert await handle.cancel() is JobStatus.COMPLETED
    assert await scene.client.job("unknown").cancel() is JobStatus.CANCELLED
    assert await scene.client.job("unknown").status() is JobStatus.CANCELLED


async def test_a_job_too_large_is_failed_for_every_reader(scene: Scene) -> None:
    items = [{"text": "x", "context": "y" * 8000} for _ in range(130)]
    with pytest.raises(JobTooLarge):
        await scene.client.submit(a_job("l", text=items))
    result = await scene.client.job("l").result(0)
    assert result.error is not None
    assert (result.status, result.error.code) == ("failed", "invalid_job")
    assert len(result.translations) == 130


async def test_many_jobs_keep_their_order_and_one_refused_stops_no_other(scene: Scene) -> None:
    taken = a_job("m-3")
    await scene.client.submit(taken)
    await scene.run(taken)
    handles: list[JobHandle] = []

    async def submit_all() -> None:
        jobs = (a_job(f"m-{n}", f"Number {n}.") for n in range(10))
        async for handle in scene.client.submit_many(jobs, in_flight=4):
            handles.append(handle)  # noqa: PERF401 - what came before the error counts too

    with pytest.raises(SomeNotSubmitted) as raised:
        await submit_all()
    assert [handle.job_id for handle in handles] == [f"m-{n}" for n in range(10) if n != 3]
    assert isinstance(raised.value.refused[0], IdTaken)


async def test_a_closed_client_says_so(scene: Scene) -> None:
    waiting = asyncio.create_task(scene.client.job("x").result())
    await asyncio.sleep(0.05)
    await scene.client.close()
    with pytest.raises(ClientClosed):
        await waiting
    with pytest.raises(ClientClosed):
        await scene.client.submit(a_job("y"))
