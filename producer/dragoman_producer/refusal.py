"""Failure of a job whose record is too large to publish, as if a worker had rejected it.

Pollers in other processes must find a terminal state. So the job is ``failed`` with
``invalid_job`` in Redis, and its dead letter has headers only (docs/explanation/internals.md).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from dragoman_connections.kafka_producer import Headers
from dragoman_connections.settings import KafkaSettings
from dragoman_producer.publisher import Publisher
from dragoman_producer.store import JobStore
from dragoman_schemas import names
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import DEFAULT_TTL_S, TranslationJob
from dragoman_schemas.results import TranslationResult
from dragoman_schemas.wire import encode_result, now_rfc3339, open_record

_MAX_MESSAGE_BYTES: Final = 1024
_STAGE: Final = "submit"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job, its record's value, its intended topic, and why it was not published."""

    job: TranslationJob
    value: bytes
    topic: str
    why: str


async def record_refusal(
    refusal: Refusal, kafka: KafkaSettings, publisher: Publisher, store: JobStore
) -> None:
    """Publish the dead letter, write ``failed`` to Redis, then publish to the results topic.

    Raises the errors of publisher and store. The caller owns the id: it wrote the stub.
    """
    key = refusal.job.job_id.encode()
    await publisher.publish(kafka.dead_letter_topic, key, None, _headers(refusal, kafka))
    result = _result(refusal)
    ttl_ms = (refusal.job.ttl_s or DEFAULT_TTL_S) * 1000
    if await store.fail(result, ttl_ms=ttl_ms) and kafka.results_topic:
        await publisher.publish(kafka.results_topic, key, encode_result(result), [])


def _headers(refusal: Refusal, kafka: KafkaSettings) -> Headers:
    """Return the dead letter's headers, without partition and offset: the record has none."""
    now_ms = str(time.time_ns() // 1_000_000)
    values = {
        names.HEADER_ORIGINAL_TOPIC: refusal.topic,
        names.HEADER_ORIGINAL_TIMESTAMP: now_ms,
        names.HEADER_CONSUMER_GROUP: kafka.group_id,
        names.HEADER_JOB_ID: refusal.job.job_id,
        names.HEADER_ERROR_CODE: FailureCode.INVALID_JOB.value,
        names.HEADER_ERROR_MESSAGE: refusal.why[:_MAX_MESSAGE_BYTES],
        names.HEADER_ATTEMPTS: "0",
        names.HEADER_DELIVERIES: "0",
        names.HEADER_FIRST_SEEN: now_rfc3339(),
        names.HEADER_WORKER: "dragoman-client",
        names.HEADER_ORIGINAL_SHA256: sha256(refusal.value).hexdigest(),
        names.HEADER_ORIGINAL_SIZE: str(len(refusal.value)),
    }
    return [(name, value.encode()) for name, value in values.items()]


def _result(refusal: Refusal) -> TranslationResult:
    job, now = refusal.job, now_rfc3339()
    error = {"code": FailureCode.INVALID_JOB, "message": refusal.why, "stage": _STAGE}
    return TranslationResult.model_validate(
        {
            "job_id": job.job_id,
            "status": "failed",
            "fingerprint": open_record(refusal.value).fingerprint,
            "translations": [{"id": item.id, "error": error} for item in job.items],
            "error": error,
            "timing": {"queued_at": now, "finished_at": now},
            "metadata": job.metadata,
            "document": job.document,
        }
    )
