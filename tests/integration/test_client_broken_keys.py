"""Integration tests of Redis keys that another program wrote, which fail their own job only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import pytest

from dragoman_producer import (
    BrokenKey,
    DragomanError,
    DragomanSettings,
    ReplaysUsedUp,
    SomeNotSubmitted,
    SubmitFailed,
    TranslationClient,
    TranslationJob,
    TranslationRejected,
    Unreadable,
    load_settings,
)
from dragoman_schemas.wire import encode_job, open_record
from support.fakes.played_worker import PlayedWorker
from support.processes.installation import Installation, a_job
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

LARGEST: Final = 2**53 - 1
BROKEN: Final[dict[str, dict[str, bytes] | None]] = {
    "another-type": None,
    "status-no-text": {"status": b"\xff\xfe"},
    "owner-no-text": {"status": b"completed", "fingerprint": b"\xff"},
    "replays-no-number": {"status": b"queued", "replays": b"many"},
    "unknown-status": {"status": b"sleeping"},
    "result-no-json": {"status": b"completed", "result": b"{"},
    "result-no-text": {"status": b"completed", "result": b'{"job_id": "\xff"}'},
    "result-of-another-kind": {"status": b"completed", "result": b'["SECRET"]'},
}


def job_of(job_id: str, **fields: Any) -> TranslationJob:
    return TranslationJob.model_validate(a_job(job_id, **fields))


def fingerprint_of(job: TranslationJob) -> str:
    return open_record(encode_job(job)).fingerprint


def hold(worker: PlayedWorker, job_id: str, **fields: str | bytes | int) -> None:
    for name, value in fields.items():
        worker.redis.hset(worker.key(job_id), name, value)


@pytest.fixture
def worker(redis_server: RedisServer) -> Iterator[PlayedWorker]:
    """Provide Redis with one key of every broken kind."""
    played = PlayedWorker(redis_server.url)
    played.redis.flushall()
    for job_id, fields in BROKEN.items():
        if fields is None:
            played.redis.rpush(played.key(job_id), "x")
        else:
            hold(played, job_id, **fields)
    yield played
    played.redis.flushall()  # foreign keys have no TTL
    played.close()


@pytest.fixture
async def client(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], worker: PlayedWorker
) -> AsyncIterator[TranslationClient]:
    del worker
    options = {
        "kafka.bootstrap_servers": kafka.bootstrap,
        "kafka.topics": topic(),
        "kafka.dead_letter_topic": topic(),
        "redis.url": redis_server.url,
    }
    settings = load_settings(DragomanSettings, options=options)
    async with TranslationClient(settings=settings) as opened:
        yield opened


async def test_a_broken_key_fails_only_its_own_wait(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    good = [asyncio.create_task(client.job(f"good-{number}").text(30)) for number in range(5)]
    broken = [asyncio.create_task(client.job(job_id).result(30)) for job_id in BROKEN]
    worker.redis.xadd("dragoman:events", {"job_id": b"\xff", "status": b"completed"})
    for job_id, error in zip(
        BROKEN, await asyncio.gather(*broken, return_exceptions=True), strict=True
    ):
        assert isinstance(error, BrokenKey | Unreadable), job_id
        assert job_id in str(error)
        assert "SECRET" not in str(error)
        assert "\n" not in str(error)
    for number in range(5):
        worker.finish(f"good-{number}", "f" * 64, "Gut.")
    assert await asyncio.gather(*good) == ["Gut."] * 5


async def test_a_broken_key_does_not_keep_other_jobs_of_a_batch_from_being_submitted(
    client: TranslationClient,
) -> None:
    submitted: list[str] = []
    refused: tuple[SubmitFailed, ...] = ()
    jobs = [job_of(name) for pair in zip(BROKEN, "abcdefgh", strict=True) for name in pair]
    try:
        async for handle in client.submit_many(jobs):
            submitted.append(handle.job_id)  # noqa: PERF401  it ends with an exception
    except SomeNotSubmitted as some:
        refused = some.refused
    assert set(submitted) >= set("abcdefgh")
    assert {"another-type", "status-no-text", "owner-no-text"} <= {
        error.job_id for error in refused if isinstance(error, BrokenKey)
    }


@pytest.mark.parametrize("job_id", ["another-type", "status-no-text", "unknown-status"])
async def test_cancelling_a_broken_key_names_it_and_changes_nothing(
    client: TranslationClient, worker: PlayedWorker, job_id: str
) -> None:
    before = worker.redis.dump(worker.key(job_id))
    with pytest.raises(DragomanError, match=job_id):
        await client.job(job_id).cancel()
    assert worker.redis.dump(worker.key(job_id)) == before


async def test_a_completed_job_without_a_stored_text_has_no_texts(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    worker.redis.hset(worker.key("empty"), "status", "completed")
    with pytest.raises(TranslationRejected, match="no text is stored"):
        await client.job("empty").texts(1)


async def test_a_resubmission_beyond_the_largest_replay_number_is_refused(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    job = job_of("often")
    key = worker.key("often")
    hold(worker, "often", status="failed", replays=LARGEST, fingerprint=fingerprint_of(job))
    with pytest.raises(ReplaysUsedUp, match="often"):
        await client.submit(job, resubmit=True)
    worker.redis.hset(key, "replays", str(LARGEST - 1))
    assert (await client.submit(job, resubmit=True)).replay == LARGEST


async def test_invalid_job_and_document_ids_are_refused(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    for job_id in ("", "a b", "x" * 129, "\udcff", "a\n"):
        with pytest.raises(ValueError, match="not a job id"):
            client.job(job_id)
        with pytest.raises(ValueError, match="not a document id"):
            await client.cancel(document_id=job_id)
    assert worker.redis.keys("dragoman:document:*") == []


async def test_a_cancelled_document_that_is_submitted_again_is_not_cancelled(
    client: TranslationClient, worker: PlayedWorker
) -> None:
    def page(number: int) -> TranslationJob:
        return job_of(
            f"book.{number}", document={"document_id": "book", "index": number, "total": 9}
        )

    await client.cancel(document_id="book")
    assert worker.redis.exists("dragoman:document:book:cancel") == 1
    await client.submit(page(0))
    assert worker.redis.exists("dragoman:document:book:cancel") == 0
    await client.cancel(document_id="book")
    submitting = client.submit_many([page(number) for number in range(1, 9)], in_flight=1)
    assert (await anext(submitting)).job_id == "book.1"
    assert worker.redis.exists("dragoman:document:book:cancel") == 0
    # A cancellation that arrives during a submission stays.
    await client.cancel(document_id="book")
    assert len([handle async for handle in submitting]) == 7
    assert worker.redis.exists("dragoman:document:book:cancel") == 1


@pytest.fixture
def installation(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: Callable[..., str],
    worker: PlayedWorker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    worker.finish("good", "f" * 64, "Gut.")
    made = Installation(kafka, redis_server, topic(), tmp_path_factory.mktemp("commands"))
    yield made
    made.redis.close()


@pytest.mark.parametrize("name", ["status", "result", "cancel"])
def test_the_commands_print_every_other_job(installation: Installation, name: str) -> None:
    ids = ["another-type", "good", "unknown-status", "good"]
    done = installation(name, *ids, "--json")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["job_id"] for one in objects] == ids
    assert [one["status"] for one in objects] == ["unreadable", "completed"] * 2
    assert done.returncode == (3 if name == "cancel" else 1)
    assert len(done.stderr.splitlines()) == 2
    assert "dragoman:job:another-type is not a hash" in done.stderr
    plain = installation(name, *ids)
    assert (plain.returncode, len(plain.stdout.splitlines())) == (done.returncode, 2)


def test_awaited_jobs_are_printed_beside_a_broken_key(
    installation: Installation, worker: PlayedWorker
) -> None:
    job = job_of("waits")
    worker.finish("waits", fingerprint_of(job), "[de] Hello.")
    lines = installation.folder / "jobs.jsonl"
    lines.write_text("".join(json.dumps(a_job(name)) + "\n" for name in ("another-type", "waits")))
    done = installation("submit", str(lines), "--wait")
    assert (done.returncode, done.stdout) == (3, "waits\t[de] Hello.\n")
    assert "job another-type: the Redis key" in done.stderr


def test_a_command_refuses_an_invalid_job_id(installation: Installation) -> None:
    for name in ("status", "result", "cancel"):
        done = installation(name, "good", "a b")
        assert (done.returncode, done.stdout) == (2, "")
        assert "'a b' is not a job id" in done.stderr
    assert installation("cancel", "--document", "a b").returncode == 2
