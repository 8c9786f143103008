"""What does a worker do to Redis and what does a topic hold? For tests of clients without workers.

It follows contract section 3 by the shipped scripts and translates nothing: the texts are given.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from confluent_kafka import Consumer, TopicPartition

from dragoman_schemas import names, scripts
from dragoman_schemas.results import TranslationResult
from dragoman_schemas.scripts import ClaimAnswer, Script
from dragoman_schemas.wire import encode_result, now_rfc3339

_LIVE_TTL_MS = 60_000


class PlayedWorker:
    """Takes and finishes jobs in one Redis, as often and in whichever order a test says."""

    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url)
        self._keys = names.Keys()

    def close(self) -> None:
        """Close the connection."""
        self.redis.close()

    def key(self, job_id: str) -> str:
        """The key of a job."""
        return self._keys.job(job_id)

    def fields(self, job_id: str) -> dict[str, str]:
        """All that a job's key holds."""
        held: dict[Any, Any] = self.redis.hgetall(self.key(job_id))
        return {name.decode(): value.decode() for name, value in held.items()}

    def ttl_s(self, job_id: str) -> int:
        """How long a job's key still lives; -1 for ever."""
        ttl: Any = self.redis.ttl(self.key(job_id))
        return int(ttl)

    def cancels(self) -> list[dict[bytes, bytes]]:
        """What the stream of cancels tells the workers."""
        entries: Any = self.redis.xrange(self._keys.cancels)
        return [fields for _, fields in entries]

    def claim(self, job_id: str, fingerprint: str, *, replay: int = 0) -> ClaimAnswer:
        """Take a job up."""
        arguments = scripts.claim_args(
            nonce=uuid.uuid4().hex,
            fingerprint=fingerprint,
            place="topic/0/0",
            now=now_rfc3339(),
            live_ttl_ms=_LIVE_TTL_MS,
            queued_at=now_rfc3339(),
            replay=replay,
        )
        return scripts.parse_claim(self._run(scripts.CLAIM, job_id, arguments))

    def finish(
        self,
        job_id: str,
        fingerprint: str,
        *texts: str | None,
        status: str = "completed",
        replays: int = 0,
        hint: bool = True,
    ) -> bool:
        """Write the terminal state, then the event, unless the hint is to be lost."""
        translations = [_item(text) for text in texts]
        error = None if status == "completed" else {"code": "engine_failed", "message": "played"}
        result = TranslationResult.model_validate(
            {
                "job_id": job_id,
                "status": status,
                "fingerprint": fingerprint,
                "translations": translations,
                "error": error,
            }
        )
        arguments = scripts.finish_args(
            status=status,
            replays=replays,
            result=encode_result(result),
            finished_at=now_rfc3339(),
            ttl_ms=_LIVE_TTL_MS,
            fingerprint=fingerprint,
            deliveries=1,
        )
        answer = scripts.parse_finish(self._run(scripts.FINISH, job_id, arguments))
        if hint:
            event: dict[Any, Any] = {"job_id": job_id, "status": status}
            self.redis.xadd(self._keys.events, event)
        return answer.written

    def _run(self, script: Script, job_id: str, arguments: Sequence[str | bytes]) -> scripts.Reply:
        reply: Any = self.redis.eval(script.text, 1, self.key(job_id), *arguments)
        return list(reply)


def _item(text: str | None) -> dict[str, object]:
    if text is None:
        return {"error": {"code": "engine_failed", "message": "played"}}
    return {"text": text}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


def records(bootstrap: str, topic: str, count: int, *, timeout_s: float = 20.0) -> list[Record]:
    """The first ``count`` records of a topic of one partition; fewer if there are no more in time.

    Waits a moment longer than the last one, so that one too many is seen.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Record] = []
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            message = consumer.poll(0.5 if len(found) >= count else 1.0)
            if message is None and len(found) >= count:
                break
            if message is not None and message.error() is None:
                headers: dict[str, Any] = dict(message.headers() or [])
                found.append(Record(message.key(), message.value(), headers))
        return found
    finally:
        consumer.close()
