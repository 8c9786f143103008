"""Work that every compared program does per job: two scripts and one event in Redis.

Shared by the programs that the worker is measured beside. A batch is claimed in one pipeline and
finished in another, the least number of round trips. Left out of the worker's duties: validation,
sentence and token counts, retries, cancels, duplicates in flight, dead letters. The fingerprint is
that of the record's bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis

KAFKA: Final = os.environ["ECHO_KAFKA"]
REDIS: Final = os.environ["ECHO_REDIS"]
TOPIC: Final = os.environ["ECHO_TOPIC"]
GROUP: Final = f"{TOPIC}-group"
ONE_WRITE: Final = "ECHO_ONE_WRITE" in os.environ
"""Whether jobs are only finished: without a claim, duplicates and crashes go unnoticed."""
BATCH: Final = 500
"""As many records as the worker polls at once."""

_SCRIPTS = Path(__file__).parents[2] / "schemas" / "dragoman_schemas" / "scripts"
_DAY_MS = 86_400_000
_UNCLAIMED: Final = (b"run", 1, 0, b"", b"")


class Store:
    """Store that claims and finishes batches of jobs."""

    def __init__(self) -> None:
        self._redis = Redis.from_url(REDIS)
        self._claim = self._finish = ""

    async def start(self) -> None:
        """Load the scripts."""
        self._claim = await self._redis.script_load((_SCRIPTS / "claim.lua").read_text())
        self._finish = await self._redis.script_load((_SCRIPTS / "finish.lua").read_text())

    async def run(self, values: Sequence[bytes], places: Sequence[str]) -> None:
        """Claim, translate and finish every job; skip finished jobs."""
        jobs = [json.loads(value) for value in values]
        prints = [hashlib.sha256(value).hexdigest() for value in values]
        now = _now()
        replies = [_UNCLAIMED] * len(jobs)
        if not ONE_WRITE:
            pipe = self._redis.pipeline(transaction=False)
            for job, print_, place in zip(jobs, prints, places, strict=True):
                arguments = (os.urandom(16).hex(), print_, place, now, _DAY_MS, 0, 4, 0, now, 0)
                pipe.evalsha(self._claim, 1, _key(job), *arguments)
            replies = await pipe.execute()
        now = _now()
        pipe = self._redis.pipeline(transaction=False)
        for job, fingerprint, reply in zip(jobs, prints, replies, strict=True):
            if reply[0] == b"run":
                end = ("completed", reply[2], _result(job, now), now, _DAY_MS, fingerprint)
                pipe.evalsha(self._finish, 1, _key(job), *end, reply[1], reply[3], reply[4])
                if ONE_WRITE:
                    continue
                event = {"job_id": job["job_id"], "status": "completed"}
                pipe.xadd("dragoman:events", event, maxlen=100_000, approximate=True)
        await pipe.execute()


def _key(job: dict[str, Any]) -> str:
    return f"dragoman:job:{job['job_id']}"


def _result(job: dict[str, Any], now: str) -> str:
    text = f"[{job['target_lang']}] {job['text']}"
    result = {
        "schema": 1,
        "job_id": job["job_id"],
        "status": "completed",
        "translations": [{"text": text, "attempts": 1, "finish_reason": "stop"}],
        "timing": {"finished_at": now},
    }
    return json.dumps(result)


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
