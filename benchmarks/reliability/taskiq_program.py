"""The work on taskiq: `taskiq worker taskiq_program:broker --ack-type when_saved ...`.

The broker is taskiq-aio-kafka, which has no acknowledgements of its own: offsets are committed by
the consumer's timer. A formatter, which taskiq lets users write, reads our jobs as calls of the one
task, so that every program reads the same records. A task that raises is sent again, at most ten
times, with growing delays.
"""

from __future__ import annotations

import json
from typing import Any

import work
from taskiq import BrokerMessage, SmartRetryMiddleware, TaskiqEvents, TaskiqMessage, TaskiqState
from taskiq.abc.formatter import TaskiqFormatter
from taskiq_aio_kafka import AioKafkaBroker
from taskiq_redis import RedisAsyncResultBackend


class JobFormatter(TaskiqFormatter):
    """Formatter of records: a record is a job, or a call that the retries have sent."""

    def dumps(self, message: TaskiqMessage) -> BrokerMessage:
        return BrokerMessage(
            task_id=message.task_id,
            task_name=message.task_name,
            message=message.model_dump_json().encode(),
            labels=message.labels,
        )

    def loads(self, message: bytes) -> TaskiqMessage:
        fields = json.loads(message)
        if "task_name" in fields:
            return TaskiqMessage.model_validate(fields)
        return TaskiqMessage(
            task_id=fields["job_id"],
            task_name="translate",
            labels={"retry_on_error": True},
            args=[fields],
            kwargs={},
        )


store = work.open_store()
broker = (
    AioKafkaBroker(bootstrap_servers=work.KAFKA, kafka_topic=work.TOPIC)
    .with_result_backend(RedisAsyncResultBackend(work.REDIS, result_ex_time=86_400))
    .with_formatter(JobFormatter())
    .with_middlewares(
        SmartRetryMiddleware(
            default_retry_count=10, default_delay=1, use_jitter=True, use_delay_exponent=True
        )
    )
)
broker.configure_producer(acks="all", enable_idempotence=True)
broker.configure_consumer(
    group_id=work.GROUP,
    auto_offset_reset="earliest",
    session_timeout_ms=work.SESSION_TIMEOUT_MS,
)


@broker.task(task_name="translate", retry_on_error=True)
async def translate(job: dict[str, Any]) -> None:
    await work.translate(store, job)


@broker.on_event(TaskiqEvents.WORKER_STARTUP)
async def started(state: TaskiqState) -> None:
    del state
    work.ready()
