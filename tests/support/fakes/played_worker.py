"""A stand-in for a worker, for tests of clients: its effects on Redis, and records of a topic.

It follows contract section 3 by the shipped scripts and writes given texts.
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
    """Claims and finishes jobs in one Redis, in any number and order."""

    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url)
        self._keys = names.Keys()

    def close(self) -> None:
        """Close the connection."""
        self.redis.close()

    def key(self, job_id: str) -> str:
        """Return the key of a job."""
        return self._keys.job(job_id)

    def fields(self, job_id: str) -> dict[str, str]:
        """Return all fields of a job's key."""
        held: dict[Any, Any] = self.redis.hgetall(self.key(job_id))
        return {name.decode(): value.decode() for name, value in held.items()}

    def ttl_s(self, job_id: str) -> int:
        """Return the TTL of a job's key in seconds, -1 without one."""
        ttl: Any = self.redis.ttl(self.key(job_id))
        return int(ttl)

    def cancels(self) -> list[dict[bytes, bytes]]:
        """Return the entries of the stream of cancellations."""
        entries: Any = self.redis.xrange(self._keys.cancels)
        return [fields for _, fields in entries]

    def claim(self, job_id: str, fingerprint: str, *, replay: int = 0) -> ClaimAnswer:
        """Claim a job."""
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
        """Write the terminal state and, with `hint`, the event; return whether it was written."""
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
    """Return the first `count` records of a topic with one partition, fewer after `timeout_s`.

    Polls once more after the last one, so that a surplus record is seen.
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
