"""A backlog of ten minutes: how fast new texts are refused, and whether the rest is still answered.

usage: shed.py [--requests 500]

A real Kafka and Redis, one echo worker and one gateway, on this machine. The worker takes one job
at a time, for a second each, and 600 jobs of another client wait. Once the gateway sees the
backlog, new texts, languages and a known text are asked for in turn. Prints statuses and
percentiles of each; the goal is 503 within 50 ms, and languages as fast as without the backlog.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from started import HEADERS, Site, site

from dragoman_producer.client import TranslationClient
from dragoman_schemas.jobs import TranslationJob

_WAITING = 600
Ask = Callable[[int], Awaitable[str]]


async def times(ask: Ask, requests: int) -> dict[str, Any]:
    """Return statuses and percentiles of requests in turn."""
    took, statuses = [], Counter[str]()
    for number in range(requests):
        began = time.perf_counter()
        statuses[await ask(number)] += 1
        took.append(1000 * (time.perf_counter() - began))
    cuts = statistics.quantiles(took, n=100)
    return {
        "statuses": dict(statuses),
        "p50_ms": round(cuts[49], 1),
        "p99_ms": round(cuts[98], 1),
        "most_ms": round(max(took), 1),
    }


async def measure(started: Site, requests: int) -> None:
    """Print a row each for languages before, and for all kinds of requests with the backlog."""
    async with (
        aiohttp.ClientSession(started.gateway.url, headers=HEADERS) as http,
        TranslationClient(settings=started.settings) as client,
    ):

        async def translated(text: str) -> str:
            body = {"text": text, "source_lang": "EN", "target_lang": "DE"}
            async with http.post("/v2/translate", json=body) as response:
                said = await response.text()
                return "shed" if "are waiting" in said else str(response.status)

        async def languages(_: int) -> str:
            async with http.get("/v2/languages?type=target") as response:
                await response.read()
                return str(response.status)

        asks: dict[str, Ask] = {
            "languages": languages,
            "new text": lambda number: translated(f"New {number}."),
            "known text": lambda _: translated("Known."),
        }
        await translated("Known.")
        print(json.dumps({"without": "languages"} | await times(languages, requests)), flush=True)
        for number in range(_WAITING):
            await client.submit(
                TranslationJob(
                    job_id=f"waiting.{number}",
                    text=f"Waiting {number}.",
                    source_lang="en",
                    target_lang="de",
                )
            )
        began = time.monotonic()
        while await translated(f"Probe {time.monotonic_ns()}.") != "shed":
            pass
        print(json.dumps({"seconds until it sheds": round(time.monotonic() - began)}), flush=True)
        for name, ask in asks.items():
            row = {"with a backlog": name} | await times(ask, requests)
            print(json.dumps(row), flush=True)


def main() -> None:
    """Start everything, measure, and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=500)
    options = parser.parse_args()
    worker = {"engine.echo.latency_s": 1, "limits.max_in_flight_jobs": 1}
    with site("gateway-shed", worker=worker, hold_s=2) as started:
        asyncio.run(measure(started, options.requests))


if __name__ == "__main__":
    main()
