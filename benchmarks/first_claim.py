"""Seconds from the start of a submission to the first claim of an idle worker.

usage: first_claim.py [--services real|embedded] [--jobs 2500] [--rounds 3]

A real broker answers a waiting fetch as soon as a record arrives. The embedded one answers it when
its wait is over, so that runs which begin with an idle worker contain up to half a second of that.
The worker has the echo engine. Prints one JSON line per round; `published_s` is the moment at which
every job was acknowledged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from job_mix import mix
from pipeline import DEAD, services
from worker_process import Worker, working

from dragoman_producer import TranslationClient
from dragoman_schemas.jobs import TranslationJob

TOPIC = "dragoman.jobs"


async def measured(kafka: str, redis: str, jobs: list[TranslationJob]) -> dict[str, Any]:
    """Submit the jobs and wait for all of them; return the seconds of the steps."""
    start = time.time()
    async with TranslationClient(kafka, redis, TOPIC) as client:
        handles = [handle async for handle in client.submit_many(jobs)]
        published = time.time()
        results = [await handle.result(timeout_s=120) for handle in handles]
    claims = [result.timing.started_at for result in results]
    first = min(datetime.fromisoformat(text).timestamp() for text in claims if text)
    return {
        "first_claim_s": round(first - start, 3),
        "published_s": round(published - start, 3),
        "done_s": round(time.time() - start, 3),
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--services", choices=("real", "embedded"), default="real")
    parser.add_argument("--jobs", type=int, default=2_500)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    jobs = [TranslationJob.model_validate(job) for job in mix(given.jobs, seed=1)]
    with tempfile.TemporaryDirectory() as folder:
        async with services(given.services, [TOPIC]) as (kafka, redis, _):
            settings = {
                "kafka.bootstrap_servers": kafka,
                "kafka.dead_letter_topic": DEAD,
                "redis.url": redis,
                "engine.kind": "echo",
            }
            async with working(Worker("first-claim", settings, Path(folder)), 120):
                for number in range(given.rounds):
                    named = {job.job_id: f"{number}-{job.job_id}" for job in jobs}
                    these = [job.model_copy(update={"job_id": named[job.job_id]}) for job in jobs]
                    row = await measured(kafka, redis, these)
                    print(json.dumps({"services": given.services, **row}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
