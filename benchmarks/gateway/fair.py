"""What a key with one caller notices of a key with a thousand: its times alone and beside them.

usage: fair.py [--crowd 1000] [--requests 300] [--rounds 3]

A real Kafka and Redis, one echo worker and one gateway, on this machine. Key `one` has one caller
with `--requests` new texts; key `crowd` has the default limits and `--crowd` callers with texts
that never end to come, who ask again after a 429. Rounds alternate between alone and beside. Prints
medians over the rounds, and the ratio, whose goal is 2 at the 99th percentile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import time
from collections import Counter
from typing import Any

import aiohttp
from started import WIDE, site


def _asked(text: str) -> dict[str, str]:
    return {"text": text, "source_lang": "EN", "target_lang": "DE"}


async def one(http: aiohttp.ClientSession, requests: int) -> dict[str, float]:
    """Return the percentiles of one caller with new texts."""
    took, tag = [], time.monotonic_ns()
    for number in range(requests):
        began = time.perf_counter()
        async with http.post("/v2/translate", json=_asked(f"One {tag} {number}.")) as response:
            if response.status != 200:
                raise SystemExit(f"one: {response.status}: {await response.text()}")
            await response.read()
        took.append(1000 * (time.perf_counter() - began))
    cuts = statistics.quantiles(took, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}


@contextlib.asynccontextmanager
async def crowd(http: aiohttp.ClientSession, callers: int, statuses: Counter[int]) -> Any:
    """Keep callers asking while this is open."""

    async def call(number: int) -> None:
        turn = 0
        while True:
            turn += 1
            text = f"Crowd {number} {turn} {time.monotonic_ns()}."
            async with http.post("/v2/translate", json=_asked(text)) as response:
                statuses[response.status] += 1
                if response.status == 429:
                    await asyncio.sleep(float(response.headers["Retry-After"]))

    tasks = [asyncio.create_task(call(number)) for number in range(callers)]
    await asyncio.sleep(3)  # until all are connected
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure(url: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the row."""
    rounds: dict[str, list[dict[str, float]]] = {"alone": [], "beside": []}
    statuses: Counter[int] = Counter()
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(url, headers={"Authorization": "Bearer one"}) as own,
        aiohttp.ClientSession(
            url, connector=connector, headers={"Authorization": "Bearer crowd"}
        ) as others,
    ):
        await one(own, 50)  # warm
        for _ in range(options.rounds):
            rounds["alone"].append(await one(own, options.requests))
            async with crowd(others, options.crowd, statuses):
                rounds["beside"].append(await one(own, options.requests))
    row: dict[str, Any] = {"crowd": options.crowd, "statuses_of_the_crowd": dict(statuses)}
    for what in ("p50_ms", "p99_ms"):
        alone, beside = (statistics.median(r[what] for r in rounds[s]) for s in rounds)
        row |= {f"alone_{what}": round(alone, 1), f"beside_{what}": round(beside, 1),
                f"ratio_{what}": round(beside / alone, 2)}  # fmt: skip
    return row


def main() -> None:
    """Start everything, measure, and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crowd", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that a text takes")
    options = parser.parse_args()
    worker = {"quality.level": "off", "engine.echo.latency_s": options.latency}
    with site("gateway-fair", worker=worker, keys={"one": WIDE, "crowd": ""}) as started:
        print(json.dumps(asyncio.run(measure(started.gateway.url, options))))


if __name__ == "__main__":
    main()
