"""The work on FastStream: `faststream_program.py partitions N` or `batches N`.

`partitions`: N consumers in the process, each with one message at a time, which is what its
documentation calls reliable at-least-once processing. `batches`: one consumer, N messages at once,
all acknowledged together. Both with AckPolicy.NACK_ON_ERROR, "if you want to retry on error".
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import work
from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker

mode, width = sys.argv[1], int(sys.argv[2])
broker = KafkaBroker(work.KAFKA.split(","), graceful_timeout=work.GRACE_S)
app = FastStream(broker)
store = work.open_store()
safe: dict[str, Any] = {
    "group_id": work.GROUP,
    "ack_policy": AckPolicy.NACK_ON_ERROR,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": work.SESSION_TIMEOUT_MS,
}

if mode == "partitions":

    @broker.subscriber(work.TOPIC, max_workers=width, **safe)
    async def one(job: dict[str, Any]) -> None:
        await work.translate(store, job)

else:

    @broker.subscriber(work.TOPIC, batch=True, max_records=width, **safe)
    async def many(jobs: list[dict[str, Any]]) -> None:
        await asyncio.gather(*(work.translate(store, job) for job in jobs))


@app.after_startup
async def started() -> None:
    work.ready()


if __name__ == "__main__":
    asyncio.run(app.run())
