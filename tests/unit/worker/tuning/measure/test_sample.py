"""Samples of jobs from a file or a topic, read without any effect on the workers."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnsupportedCodecError,
)

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt, Unreachable
from dragoman_worker.kafka.recent import Recent, recent_records
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.sample import from_file, from_records, from_topic
from support.services.mock_broker import Api, MockBroker


def job(number: int, **more: Any) -> dict[str, Any]:
    return {"job_id": f"j{number}", "text": f"Number {number}.", "target_lang": "de", **more}


def lines(place: Path, *jobs: object) -> Path:
    place.write_text(
        "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in jobs)
    )
    return place


def ids(sample: Any) -> set[str]:
    return {one.job_id for one in sample.jobs}


def test_a_file_is_sampled_from_all_of_it_always_the_same(tmp_path: Path) -> None:
    place = lines(tmp_path / "jobs.jsonl", *(job(n) for n in range(200)), "")
    sample = from_file(place, 50)
    assert len(sample.jobs) == 50
    assert any(int(name[1:]) >= 150 for name in ids(sample))
    assert from_file(place, 50).digest == sample.digest
    assert from_file(place, 49).digest != sample.digest
    assert ids(from_file(place, 1000)) == {f"j{n}" for n in range(200)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([""], "it contains no job"),
        ([job(1), {"job_id": "x", "target_lang": "de"}], r"line 2: .*text"),
        ([job(1), "{"], "line 2: "),
        ([job(1, colour="red")], r"line 1: .*colour"),
    ],
)
def test_an_invalid_file_names_the_line_and_the_problem(
    tmp_path: Path, content: list[object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        from_file(lines(tmp_path / "jobs.jsonl", *content), 10)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--jobs .*none.jsonl: there is no such file"):
        from_file(tmp_path / "none.jsonl", 10)


BEYOND_SPLITLINES = "\u2028 \u2029 \u0085"
"""Line ends for str.splitlines, but not for JSON Lines."""


@pytest.mark.parametrize(("start", "end"), [("", "\n"), ("\ufeff", "\n"), ("", "\r\n")])
def test_lines_end_as_in_json_lines(tmp_path: Path, start: str, end: str) -> None:
    texts = [f"One.{BEYOND_SPLITLINES}Still one.", "Two."]
    lines = [json.dumps({**job(n), "text": t}, ensure_ascii=False) for n, t in enumerate(texts)]
    place = tmp_path / "jobs.jsonl"
    place.write_bytes((start + end.join([*lines, "\f", ""])).encode())
    assert sorted(str(one.text) for one in from_file(place, 10).jobs) == sorted(texts)
    place.write_bytes((start + end.join([*lines, "", "{", ""])).encode())
    with pytest.raises(SettingsError, match="line 4: "):
        from_file(place, 10)


def test_a_full_disk_is_named_and_no_part_of_the_texts_remains(tmp_path: Path) -> None:
    sample = from_file(lines(tmp_path / "jobs.jsonl", job(1)), 10)
    place = tmp_path / "sample.jsonl"
    place.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        sample.write(place)
    assert caught.value.filename == str(place)
    assert not place.is_symlink()


def test_the_sample_file_is_readable_by_the_owner_alone(tmp_path: Path) -> None:
    sample = from_file(lines(tmp_path / "jobs.jsonl", job(1), job(2)), 10)
    sample.write(tmp_path / "sample.jsonl")
    assert stat.S_IMODE((tmp_path / "sample.jsonl").stat().st_mode) == 0o600
    assert (
        from_file(tmp_path / "sample.jsonl", 10).jobs
        == from_file(tmp_path / "sample.jsonl", 10).jobs
    )
    assert ids(from_file(tmp_path / "sample.jsonl", 10)) == {"j1", "j2"}


def test_invalid_records_are_counted_and_the_rest_has_a_rate() -> None:
    good = [Recent(json.dumps(job(n)).encode(), 1_000 * n) for n in range(20)]
    bad = [Recent(b"nothing", 30_000), Recent(json.dumps({"job_id": "x"}).encode(), 30_000)]
    sample = from_records([*good, *bad], "jobs", 10)
    assert len(sample.jobs) == 10
    assert sample.left_out == 2
    assert sample.arrivals is not None
    assert sample.arrivals.jobs_per_s == pytest.approx(1.0)
    with pytest.raises(SettingsError, match=r"holds no job .* --jobs"):
        from_records(bad, "jobs", 10)


async def test_the_topics_last_jobs_are_read_without_joining_the_group() -> None:
    with MockBroker() as broker:
        broker.create_topic("tuned-jobs", partitions=3)
        await produce(broker.bootstrap, [json.dumps(job(n)).encode() for n in range(90)])
        settings = worker_settings(broker.bootstrap, "tuned-jobs")
        broker.track_requests()
        sample = await from_topic(settings, 30, Deadline.after(20))
        assert ids(sample) == {f"j{n}" for n in range(60, 90)}
        joined = (Api.FIND_COORDINATOR, Api.JOIN_GROUP, Api.SYNC_GROUP, Api.OFFSET_COMMIT)
        assert [broker.count(api) for api in joined] == [0, 0, 0, 0]
        assert broker.count(Api.FETCH) > 0


async def test_empty_and_missing_topics_have_different_errors() -> None:
    with MockBroker() as broker:
        broker.create_topic("empty-jobs", partitions=2)
        assert await recent_records(kafka(broker, "empty-jobs"), 10, Deadline.after(20)) == []
        with pytest.raises(Unreachable, match="there is no topic other-jobs"):
            await recent_records(kafka(broker, "other-jobs"), 10, Deadline.after(20))


@pytest.mark.parametrize(
    ("call", "error", "ends", "message"),
    [
        ("beginning_offsets", TopicAuthorizationFailedError("jobs"), Halt, "rights to read"),
        ("end_offsets", KafkaTimeoutError("offsets"), Unreachable, r"kafka.topics: .* --jobs"),
        ("getmany", UnsupportedCodecError("zstd"), Unreachable, r"kafka.topics: .*zstd.* --jobs"),
    ],
)
async def test_a_refusal_of_kafka_while_reading_is_reported(
    call: str, error: KafkaError, ends: type[Halt], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise error

    with MockBroker() as broker:
        broker.create_topic("tuned-jobs", partitions=3)
        await produce(broker.bootstrap, [json.dumps(job(1)).encode()])
        monkeypatch.setattr(AIOKafkaConsumer, call, refused)
        with pytest.raises(ends, match=message):
            await recent_records(kafka(broker, "tuned-jobs"), 10, Deadline.after(20))


def kafka(broker: MockBroker, topic: str) -> Any:
    return worker_settings(broker.bootstrap, topic).kafka


def worker_settings(bootstrap: str, topic: str) -> WorkerSettings:
    options = {"kafka.bootstrap_servers": bootstrap, "kafka.topics": topic, "engine.kind": "echo"}
    return load_settings(WorkerSettings, None, options)


async def produce(bootstrap: str, values: list[bytes]) -> None:
    """Write records round-robin, one per millisecond, so that time identifies the newest."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        for number, value in enumerate(values):
            await producer.send_and_wait(
                "tuned-jobs", value, partition=number % 3, timestamp_ms=1_700_000_000_000 + number
            )
    finally:
        await producer.stop()
