"""A dead letter or result is published in some form, or the publisher reports an outage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman_schemas.results import ItemResult, TranslationResult
from dragoman_schemas.wire import decode_result
from dragoman_worker import tracing
from dragoman_worker.errors import Unavailable
from dragoman_worker.kafka import publisher
from dragoman_worker.kafka.publisher import (
    KafkaDeadLetters,
    KafkaPublisher,
    KafkaResults,
    TooLarge,
    Unsendable,
)
from dragoman_worker.ports import DeadLetter, Delivery

Sent = dict[str, Any]


class Topic:
    """Topic that accepts records of at most `limit` bytes that aiokafka can encode."""

    def __init__(self, limit: int = 1_000_000) -> None:
        self.limit = limit
        self.sent: list[Sent] = []

    async def send(self, _: str, *, key: Any, value: Any, headers: Any = ()) -> None:
        size = publisher._size(key, value, headers)
        for name, _content in headers:
            name.encode()
        if size > self.limit:
            raise TooLarge
        self.sent.append({"key": key, "value": value, "headers": dict(headers)})


def delivery(value: bytes | None = b"{}", **more: Any) -> Delivery:
    given: dict[str, Any] = {"key": b"k", "headers": (), "timestamp_ms": 7, **more}
    return Delivery(topic="t", partition=1, offset=2, generation=1, value=value, **given)


async def publish_dead_letter(topic: Topic, record: Delivery, message: str = "why") -> Sent:
    dead_letters = KafkaDeadLetters(topic, topic="dead", group_id="g", worker_id="w")  # type: ignore[arg-type]
    await dead_letters.publish(DeadLetter(record, code="internal", message=message))
    return topic.sent[0]


async def test_a_header_without_a_value_is_published_without_one() -> None:
    sent = await publish_dead_letter(Topic(), delivery(headers=(("odd", None), ("x", b"1"))))
    assert sent["headers"]["odd"] is None
    assert sent["headers"]["x"] == b"1"
    assert sent["headers"]["x-original-offset"] == b"2"


@pytest.mark.parametrize("timestamp_ms", [-1, 2**63 - 1])
async def test_any_timestamp_is_published_unchanged(timestamp_ms: int) -> None:
    sent = await publish_dead_letter(Topic(), delivery(timestamp_ms=timestamp_ms))
    assert sent["headers"]["x-original-timestamp"] == str(timestamp_ms).encode()


TRACED = f"00-{7:032x}-{7:016x}-01"


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        ((), TRACED.encode()),
        ((("traceparent", b"its own"),), b"its own"),
        ((("traceparent", None),), None),
    ],
)
async def test_a_dead_letter_has_the_trace_of_its_record_or_else_of_the_worker(
    headers: tuple[tuple[str, bytes | None], ...], kept: bytes | None
) -> None:
    async def publish() -> Sent:
        tracing.enter(tracing.Trace(TRACED))
        return await publish_dead_letter(Topic(), delivery(headers=headers))

    sent = await asyncio.create_task(publish())
    assert sent["headers"]["traceparent"] == kept


async def test_a_result_is_published_with_its_trace() -> None:
    for traceparent, headers in ((TRACED, {"traceparent": TRACED.encode()}), (None, {})):
        topic = Topic()
        results = KafkaResults(topic, topic="results")  # type: ignore[arg-type]
        result = TranslationResult(job_id="a", status="completed", traceparent=traceparent)
        await results.publish(result)
        assert topic.sent[0]["headers"] == headers


async def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    sent = await publish_dead_letter(
        Topic(), delivery(headers=(("a\udcffb", b"1"),)), message="\ud800!"
    )
    assert sent["headers"]["a?b"] == b"1"
    assert sent["headers"]["x-error-message"] == b"?!"
    assert sent["value"] == b"{}"


class Compacted(Topic):
    """Compacted topic: it refuses a record without a key."""

    async def send(self, _: str, *, key: Any, value: Any, headers: Any = ()) -> None:
        if key is None:
            raise Unsendable
        await super().send(_, key=key, value=value, headers=headers)


async def test_a_compacted_topic_gets_the_place_as_key_of_a_record_without_one() -> None:
    topic = Compacted(limit=3_000)
    await publish_dead_letter(topic, delivery(key=None))
    await publish_dead_letter(topic, delivery(b"v" * 5_000, key=None))
    await publish_dead_letter(topic, delivery(headers=(("own", b"1" * 5_000),)))
    kept = [(one["key"], one["value"]) for one in topic.sent]
    assert kept == [(b"t/1/2", b"{}"), (b"t/1/2", None), (b"t/1/2", None)]


async def test_a_record_too_large_is_replaced_by_its_headers_and_then_by_its_origin() -> None:
    record = delivery(value=b"v" * 5_000, headers=(("own", b"1"),))
    sent = await publish_dead_letter(Topic(limit=3_000), record)
    assert (sent["key"], sent["value"], sent["headers"]["own"]) == (b"k", None, b"1")
    sent = await publish_dead_letter(Topic(limit=3_000), delivery(headers=(("own", b"1" * 5_000),)))
    assert (sent["key"], sent["value"]) == (None, None)
    assert "own" not in sent["headers"]
    assert sent["headers"]["x-original-size"] == b"2"


async def test_a_topic_that_refuses_the_smallest_form_is_an_outage() -> None:
    """Returning instead would commit the offset of a record that is published nowhere."""
    with pytest.raises(Unavailable, match=r"max\.message\.bytes"):
        await publish_dead_letter(Topic(limit=100), delivery())


async def test_a_result_too_large_goes_without_translations_then_without_metadata() -> None:
    result = TranslationResult(
        job_id="a1",
        status="completed",
        translations=[ItemResult(text="x" * 5_000)],
        metadata={"k": "v" * 2_000},
    )
    for limit, metadata in ((4_000, {"k": "v" * 2_000}), (1_500, None)):
        topic = Topic(limit)
        await KafkaResults(topic, topic="results").publish(result)  # type: ignore[arg-type]
        published = decode_result(topic.sent[0]["value"])
        assert (published.truncated, published.translations, published.metadata) == (
            True,
            [],
            metadata,
        )
    with pytest.raises(Unavailable):
        await KafkaResults(Topic(100), topic="results").publish(result)  # type: ignore[arg-type]


class Refusing:
    """A started producer whose encoder accepts nothing."""

    async def started(self) -> Refusing:
        return self

    async def send_and_wait(self, *_: object, **__: object) -> None:
        raise TypeError


async def test_a_record_that_aiokafka_cannot_encode_is_unsendable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = KafkaPublisher(None, client_id="w")  # type: ignore[arg-type]
    monkeypatch.setattr(one, "_producer", Refusing())
    with pytest.raises(publisher.Unsendable):
        await one.send("t", key=b"k", value=b"v")
