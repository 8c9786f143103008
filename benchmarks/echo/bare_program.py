"""Plain aiokafka loop: two pipelines per batch, offsets committed behind them.

At least once: a batch is committed after its results are written, at most twice per second. Batches
run one after another, so a slow job would delay the 499 beside it; at latency 0 none is slow.
"""

from __future__ import annotations

import asyncio
import signal
import time

import uvloop
import work
from aiokafka import AIOKafkaConsumer

COMMIT_EVERY_S = 0.5


async def main() -> None:
    store = work.Store()
    await store.start()
    consumer = AIOKafkaConsumer(
        work.TOPIC,
        bootstrap_servers=work.KAFKA,
        group_id=work.GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    stopping, committed_at = asyncio.Event(), time.monotonic()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    while not stopping.is_set():
        batches = await consumer.getmany(timeout_ms=250, max_records=work.BATCH)
        records = [record for batch in batches.values() for record in batch]
        if records:
            places = [f"{each.topic}/{each.partition}/{each.offset}" for each in records]
            await store.run([each.value for each in records], places)
        if time.monotonic() - committed_at >= COMMIT_EVERY_S:
            await consumer.commit()
            committed_at = time.monotonic()
    await consumer.stop()


if __name__ == "__main__":
    uvloop.run(main())
