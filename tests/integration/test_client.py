"""Integration tests of the client's records and keys, with a real Kafka and Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from dragoman_connections.settings import load_settings
from dragoman_producer import (
    AlreadyCompleted,
    BrokerRefused,
    DragomanSettings,
    IdTaken,
    JobStatus,
    JobTooLarge,
    ResultTimeout,
    SomeNotSubmitted,
    TranslationClient,
    TranslationJob,
    TranslationRejected,
)
from dragoman_schemas.wire import encode_job, open_record
from support.fakes.played_worker import PlayedWorker, records
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

Topic = Callable[..., str]


def a_job(job_id: str, text: str = "Hello.", **fields: object) -> TranslationJob:
    return TranslationJob.model_validate(
        {"job_id": job_id, "text": text, "target_lang": "de", **fields}
    )


def a_job_of(size: int, job_id: str) -> TranslationJob:
    """Return a valid job whose record has exactly ``size`` bytes."""
    items: list[dict[str, str]] = [
        {"text": "x", "context": "y" * 8000} for _ in range(size // 8100)
    ]
    rest = size - len(encode_job(a_job_with(job_id, items)))
    items[0]["text"] += "x" * rest
    job = a_job_with(job_id, items)
    assert len(encode_job(job)) == size
    return job


def a_job_with(job_id: str, items: list[dict[str, str]]) -> TranslationJob:
    return TranslationJob.model_validate({"job_id": job_id, "text": items, "target_lang": "de"})


def fingerprint_of(job: TranslationJob) -> str:
    return open_record(encode_job(job)).fingerprint


@pytest.fixture
def worker(redis_server: RedisServer) -> Iterator[PlayedWorker]:
    played = PlayedWorker(redis_server.url)
    played.redis.flushall()
    yield played
    played.close()


@pytest.fixture
def jobs_topic(topic: Topic) -> str:
    return topic()


@pytest.fixture
def dead_letters(topic: Topic) -> str:
    return topic()


@pytest.fixture
def settings(
    kafka: KafkaBroker, redis_server: RedisServer, jobs_topic: str, dead_letters: str
) -> DragomanSettings:
    return load_settings(
        DragomanSettings,
        options={
            "kafka.bootstrap_servers": kafka.bootstrap,
            "kafka.topics": jobs_topic,
            "kafka.dead_letter_topic": dead_letters,
            "redis.url": redis_server.url,
            "connect_timeout_s": 5.0,
        },
    )


@pytest.fixture
async def client(settings: DragomanSettings) -> AsyncIterator[TranslationClient]:
    async with TranslationClient(settings=settings) as opened:
        yield opened


# --- submitting ---------------------------------------------------------------------------------


async def test_a_submitted_job_is_queued_in_redis_and_on_the_topic_under_its_id(
    client: TranslationClient, worker: PlayedWorker, kafka: KafkaBroker, jobs_topic: str
) -> None:
    job = a_job("a1", metadata={"page": "7"})
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    handle = await client.submit(job, traceparent=traceparent)

    assert await handle.status() is JobStatus.QUEUED
    assert worker.fields("a1").keys() == {"status", "queued_at"}
    assert 0 < worker.ttl_s("a1") <= 7 * 86_400
    (record,) = records(kafka.bootstrap, jobs_topic, 1)
    assert record.key == b"a1"
    assert json.loads(record.value or b"") == {
        "job_id": "a1",
        "text": "Hello.",
        "target_lang": "de",
        "metadata": {"page": "7"},
    }
    assert record.headers == {"traceparent": traceparent.encode()}


async def test_the_stub_is_written_before_the_record(
    settings: DragomanSettings, worker: PlayedWorker
) -> None:
    elsewhere = settings.kafka.model_copy(update={"topics": ("no-such-topic",)})
    without_topic = settings.model_copy(update={"kafka": elsewhere})
    async with TranslationClient(settings=without_topic) as client:
        with pytest.raises(BrokerRefused, match=r"no topic no-such-topic.*dragoman topics create"):
            await client.submit(a_job("early"))
    assert worker.fields("early")["status"] == "queued"


async def test_a_job_of_900_kb_is_published(
    client: TranslationClient, worker: PlayedWorker, kafka: KafkaBroker, jobs_topic: str
) -> None:
    job = a_job_of(900_000, "large")
    await client.submit(job)
    (record,) = records(kafka.bootstrap, jobs_topic, 1)
    assert record.value == encode_job(job)


async def test_a_job_over_the_record_limit_is_failed_for_every_reader_and_not_published(
    client: TranslationClient,
    worker: PlayedWorker,
    kafka: KafkaBroker,
    jobs_topic: str,
    dead_letters: str,
) -> None:
    job = a_job_of(1_200_000, "huge")

    with pytest.raises(JobTooLarge, match=r"1,200,000 bytes, at most 1,000,000") as raised:
        await client.submit(job)

    assert (raised.value.size, raised.value.limit) == (1_200_000, 1_000_000)
    result = await client.job("huge").result(0)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.code == "invalid_job"
    assert len(result.translations) == len(job.items)
    assert worker.ttl_s("huge") <= 86_400
    (dead_letter,) = records(kafka.bootstrap, dead_letters, 1)
    assert (dead_letter.key, dead_letter.value) == (b"huge", None)
    assert dead_letter.headers["x-error-code"] == b"invalid_job"
    assert dead_letter.headers["x-original-size"] == b"1200000"
    await client.submit(a_job("next"))
    (record,) = records(kafka.bootstrap, jobs_topic, 1)
    assert record.key == b"next"


async def test_a_job_over_the_brokers_limit_is_failed_and_others_are_not_affected(
    settings: DragomanSettings, worker: PlayedWorker, kafka: KafkaBroker, topic: Topic
) -> None:
    small = topic(configs={"max.message.bytes": "100000"})
    narrow = settings.kafka.model_copy(update={"topics": (small,)})
    async with TranslationClient(settings=settings.model_copy(update={"kafka": narrow})) as client:
        await client.submit(a_job("before"))
        with pytest.raises(JobTooLarge, match=r"200,000 bytes, more than the broker allows"):
            await client.submit(a_job_of(200_000, "over"))
        await asyncio.gather(*(client.submit(a_job(f"after-{n}")) for n in range(20)))
        assert await client.job("over").status() is JobStatus.FAILED
    keys = {record.key for record in records(kafka.bootstrap, small, 21)}
    assert keys == {b"before", *(f"after-{n}".encode() for n in range(20))}


async def test_without_a_dead_letter_topic_a_large_job_is_cancelled_rather_than_left_queued(
    settings: DragomanSettings, worker: PlayedWorker
) -> None:
    none = settings.kafka.model_copy(update={"dead_letter_topic": "no-such-topic"})
    quick = settings.model_copy(update={"kafka": none, "connect_timeout_s": 1.5})
    async with TranslationClient(settings=quick) as client:
        with pytest.raises(JobTooLarge) as raised:
            await client.submit(a_job_of(1_100_000, "large"))
        assert "no topic no-such-topic" in raised.value.__notes__[0]
        assert await client.job("large").status() is JobStatus.CANCELLED


async def test_a_large_job_does_not_change_an_id_in_use(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    await client.submit(a_job("mine"))
    with pytest.raises(JobTooLarge):
        await client.submit(a_job_of(1_100_000, "mine"))
    assert await client.job("mine").status() is JobStatus.QUEUED


async def test_submitting_the_same_job_again_is_harmless(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    job = a_job("twice")
    await client.submit(job)
    worker.claim("twice", fingerprint_of(job))
    worker.finish("twice", fingerprint_of(job), "Hallo.")
    handle = await client.submit(job)
    assert await handle.text(timeout_s=5) == "Hallo."


async def test_submitting_another_payload_under_a_taken_id_is_refused(
    client: TranslationClient, worker: PlayedWorker, kafka: KafkaBroker, jobs_topic: str
) -> None:
    job = a_job("taken")
    worker.claim("taken", fingerprint_of(job))
    with pytest.raises(IdTaken, match="taken"):
        await client.submit(a_job("taken", "Something else."))
    assert records(kafka.bootstrap, jobs_topic, 0, timeout_s=1) == []


async def test_a_handle_raises_when_another_payload_owns_its_id(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    handle = await client.submit(a_job("race"))
    waiting = asyncio.create_task(handle.result(20))
    other = fingerprint_of(a_job("race", "Another."))
    worker.claim("race", other)
    worker.finish("race", other, "Anders.")
    with pytest.raises(IdTaken):
        await waiting
    with pytest.raises(IdTaken):
        await handle.status()
    with pytest.raises(IdTaken):
        await handle.cancel()
    assert await client.job("race").text(5) == "Anders."


# --- resubmitting -------------------------------------------------------------------------------


async def test_resubmit_runs_a_failed_job_with_the_next_replay_header(
    client: TranslationClient, worker: PlayedWorker, kafka: KafkaBroker, jobs_topic: str
) -> None:
    job = a_job("retry")
    fingerprint = fingerprint_of(job)
    first = await client.submit(job)
    worker.claim("retry", fingerprint)
    worker.finish("retry", fingerprint, None, status="failed")
    with pytest.raises(TranslationRejected, match="engine_failed"):
        await first.text(5)

    second = await client.submit(job, resubmit=True)

    assert second.replay == 1
    assert await second.status() is JobStatus.QUEUED
    with pytest.raises(ResultTimeout, match="queued"):
        await second.result(0.2)
    waiting = asyncio.create_task(second.text(20))
    answer = worker.claim("retry", fingerprint, replay=1)
    assert (answer.verdict, answer.replays) == ("run", 1)
    assert await second.status() is JobStatus.RUNNING
    worker.finish("retry", fingerprint, "Hallo.", replays=1)
    assert await waiting == "Hallo."
    published = records(kafka.bootstrap, jobs_topic, 2)
    assert [record.headers for record in published] == [{}, {"dragoman-replay": b"1"}]
    assert published[0].value == published[1].value


async def test_resubmitting_a_completed_job_publishes_nothing(
    client: TranslationClient, worker: PlayedWorker, kafka: KafkaBroker, jobs_topic: str
) -> None:
    job = a_job("done")
    worker.claim("done", fingerprint_of(job))
    worker.finish("done", fingerprint_of(job), "Hallo.")
    with pytest.raises(AlreadyCompleted):
        await client.submit(job, resubmit=True)
    assert records(kafka.bootstrap, jobs_topic, 0, timeout_s=1) == []


async def test_resubmitting_an_unknown_job_is_its_first_submission(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    handle = await client.submit(a_job("new"), resubmit=True)
    assert (handle.replay, await handle.status()) == (0, JobStatus.QUEUED)


# --- many ---------------------------------------------------------------------------------------


async def test_many_jobs_are_published_in_order_and_refused_ones_are_reported_at_the_end(
    client: TranslationClient, worker: PlayedWorker, kafka: KafkaBroker, jobs_topic: str
) -> None:
    job = a_job("n-7")
    worker.claim("n-7", fingerprint_of(job))
    worker.finish("n-7", fingerprint_of(job), "Hallo.")
    jobs = [a_job(f"n-{n}", "Hello." if n != 7 else "Not the same.") for n in range(500)]

    seen: list[str] = []

    async def submit_all() -> None:
        async for handle in client.submit_many(jobs, in_flight=50):
            seen.append(handle.job_id)  # noqa: PERF401 - items before the error count too

    with pytest.raises(SomeNotSubmitted) as raised:
        await submit_all()

    expected = [f"n-{n}" for n in range(500) if n != 7]
    assert seen == expected
    assert [refusal.job_id for refusal in raised.value.refused] == ["n-7"]
    published = records(kafka.bootstrap, jobs_topic, 499)
    assert sorted(record.key or b"" for record in published) == sorted(
        job_id.encode() for job_id in expected
    )


async def test_a_slow_source_gets_each_handle_as_soon_as_it_is_published(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    seen = asyncio.Event()

    async def slow_source() -> AsyncIterator[TranslationJob]:
        yield a_job("s-1")
        async with asyncio.timeout(10):
            await seen.wait()
        yield a_job("s-2")

    handles = []
    async for handle in client.submit_many(slow_source()):
        seen.set()
        handles.append(handle.job_id)
    assert handles == ["s-1", "s-2"]


async def test_stubs_survive_a_redis_that_lost_its_scripts(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    await client.submit(a_job("f-0"))
    worker.redis.script_flush()
    await asyncio.gather(*(client.submit(a_job(f"f-{n}")) for n in range(1, 50)))
    assert worker.fields("f-49")["status"] == "queued"


# --- cancelling ---------------------------------------------------------------------------------


async def test_cancelling_a_queued_job_makes_it_terminal(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    job = a_job("c-1")
    handle = await client.submit(job)
    assert await handle.cancel() is JobStatus.CANCELLED
    assert (await handle.result(5)).status == "cancelled"
    assert worker.claim("c-1", fingerprint_of(job)).verdict == "done"


async def test_cancelling_a_running_job_notifies_the_workers(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    job = a_job("c-2")
    handle = await client.submit(job)
    worker.claim("c-2", fingerprint_of(job))
    assert await handle.cancel() is JobStatus.RUNNING
    assert "cancel_requested_at" in worker.fields("c-2")
    assert worker.cancels() == [{b"job_id": b"c-2"}]
    worker.finish("c-2", fingerprint_of(job), None, status="cancelled")
    assert (await handle.result(5)).status == "cancelled"


async def test_cancelling_a_terminal_job_changes_nothing(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    worker.finish("c-3", "f" * 64, "Hallo.")
    assert await client.job("c-3").cancel() is JobStatus.COMPLETED
    assert await client.job("c-3").text(0) == "Hallo."


async def test_cancelling_a_document_writes_its_key_and_notifies_the_workers(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    await client.cancel(document_id="book")
    assert worker.redis.exists("dragoman:document:book:cancel") == 1
    assert worker.cancels() == [{b"document_id": b"book"}]
