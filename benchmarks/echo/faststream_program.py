"""The same work on FastStream: one subscriber of batches, acknowledged when they are done.

AckPolicy.NACK_ON_ERROR commits a batch after the handler has returned, and seeks back if it fails:
at least once, one commit per batch.
"""

from __future__ import annotations

from typing import Any

import uvloop
import work
from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker

broker = KafkaBroker(work.KAFKA.split(","))
app = FastStream(broker)
store = work.Store()


async def as_it_is(message: Any) -> Any:
    """Return the record's bytes: work.py decodes them, as it does for the bare loop."""
    return [record.value for record in message.raw_message]


@broker.subscriber(
    work.TOPIC,
    batch=True,
    max_records=work.BATCH,
    decoder=as_it_is,
    group_id=work.GROUP,
    ack_policy=AckPolicy.NACK_ON_ERROR,
    auto_offset_reset="earliest",
)
async def translate(values: list[bytes]) -> None:
    await store.run(values, [work.TOPIC] * len(values))


@app.on_startup
async def prepare() -> None:
    await store.start()


if __name__ == "__main__":
    uvloop.run(app.run())
