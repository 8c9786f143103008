"""Plain aiokafka loop with its defaults, which commit by a timer."""

from __future__ import annotations

import asyncio
import json
import signal
import traceback

import work
from aiokafka import AIOKafkaConsumer, ConsumerRecord


async def main() -> None:
    store, slots = work.open_store(), asyncio.Semaphore(work.IN_FLIGHT)
    consumer = AIOKafkaConsumer(
        work.TOPIC,
        bootstrap_servers=work.KAFKA,
        group_id=work.GROUP,
        auto_offset_reset="earliest",
        session_timeout_ms=work.SESSION_TIMEOUT_MS,
    )
    running: set[asyncio.Task[None]] = set()

    async def one(record: ConsumerRecord) -> None:
        try:
            await work.translate(store, json.loads(record.value))
        except Exception:  # noqa: BLE001  what a loop does that nobody wrote for this
            traceback.print_exc()
        finally:
            slots.release()

    async def read() -> None:
        async for record in consumer:
            await slots.acquire()
            task = asyncio.create_task(one(record))
            running.add(task)
            task.add_done_callback(running.discard)

    await consumer.start()
    reading = asyncio.create_task(read())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, reading.cancel)
    work.ready()
    await asyncio.wait({reading})
    if running:
        await asyncio.wait(running, timeout=work.GRACE_S)
    await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
