"""Bytes per entry, look-ups per second and round trips per job of the memory, on a real Redis.

    PYTHONPATH=tests:. python benchmarks/quality/memory.py [--entries 100000] [--jobs 2000]

Starts a redis-server of its own. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from dragoman_connections.settings import RedisSettings
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Remembered
from dragoman_worker.settings import MemorySettings
from dragoman_worker.stores.connection import redis_servers
from dragoman_worker.stores.redis_memory import RedisMemory
from support.services.redis_clients import client_of
from support.services.redis_server import RedisServer

PAYLOAD = 142
"""Bytes of a value: a sentence of 141 letters."""
AT_ONCE = 256
"""Jobs that look their items up at the same time."""


async def filled(memory: RedisMemory, keys: Sequence[bytes]) -> None:
    """Remember a sentence under each key."""
    for number, key in enumerate(keys):
        memory.remember(key, Remembered(f"{number:0{PAYLOAD - 1}d}"))
        if number % 5_000 == 0:
            await drained(memory)
    await drained(memory)


async def drained(memory: RedisMemory) -> None:
    """Wait until nothing is queued."""
    while memory.waiting:  # noqa: ASYNC110  a measurement needs no event
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)


async def recalled(memory: RedisMemory, jobs: Sequence[Sequence[bytes]]) -> tuple[int, float]:
    """Recall the keys of all jobs, AT_ONCE at a time; return the hits and the seconds."""
    waiting, hits = iter(jobs), 0

    async def work() -> None:
        nonlocal hits
        for keys in waiting:
            found = await memory.recall(keys)
            hits += sum(one is not None for one in found)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return hits, time.perf_counter() - started


async def measured(server: RedisServer, entries: int, jobs: int) -> dict[str, object]:
    """Return all figures."""
    keys = [os.urandom(32) for _ in range(entries)]
    settings, client = RedisSettings(url=server.url), client_of(server.url)
    async with redis_servers(settings) as servers:
        metrics = Metrics(CollectorRegistry())
        memory = RedisMemory(settings, servers, MemorySettings(max_mb=4_096), metrics)
        await memory.start()
        return await figures_of(memory, client, keys, jobs)


async def figures_of(
    memory: RedisMemory, client: Any, keys: list[bytes], jobs: int
) -> dict[str, object]:
    """Return the figures of a started memory, and close it."""
    entries = len(keys)
    before = client.info("memory")["used_memory"]
    await filled(memory, keys)
    used = client.info("memory")["used_memory"] - before
    figures: dict[str, object] = {
        "redis": client.info("server")["redis_version"],
        "payload": PAYLOAD,
        "bytes_per_entry": round(used / entries, 1),
    }
    for items in (1, 20):
        asked = [
            [keys[(job * items + item) % entries] for item in range(items)] for job in range(jobs)
        ]
        reads = client.info("stats")["total_reads_processed"]
        cpu = time.process_time()
        hits, seconds = await recalled(memory, asked)
        figures[f"jobs_of_{items}"] = {
            "look_ups_per_s": round(jobs * items / seconds),
            "cpu_us_per_look_up": round((time.process_time() - cpu) / jobs / items * 1e6, 1),
            "hits": hits,
            "round_trips_per_job": round(
                (client.info("stats")["total_reads_processed"] - reads - 1) / jobs, 3
            ),
        }
    await memory.close()
    client.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=20_000)
    given = parser.parse_args()
    with RedisServer() as server:
        print(json.dumps(asyncio.run(measured(server, given.entries, given.jobs)), indent=1))


if __name__ == "__main__":
    main()
