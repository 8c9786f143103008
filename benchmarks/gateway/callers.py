"""What the gateway adds to a job: closed loops of callers, directly and through it, in one run.

usage: callers.py [--callers 1,64,1000] [--texts 1] [--requests 2000] [--rounds 3]

A real Kafka and Redis, one echo worker and one gateway, on this machine. Direct is `submit` and
`result` of a TranslationClient in the process of the callers. Rounds of both alternate. Each row
has the medians over the rounds; `ratio` is the gateway's to the direct client's, `cpu_ms` the
gateway's CPU per request. On few cores the callers, the worker, the broker and the gateway share
them, so that only the ratios say something.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import psutil
from started import HEADERS, site

from dragoman_producer.client import TranslationClient
from dragoman_schemas.jobs import TranslationJob
from support.processes.gateway_process import GatewayProcess

Ask = Callable[[list[str]], Awaitable[None]]
_WORDS = "The quick brown fox number {} jumps over the lazy dog {} today."


async def loop(ask: Ask, callers: int, texts: int, requests: int) -> dict[str, float]:
    """Return requests/s and percentiles of closed loops; every text is new."""
    left = iter(range(requests))
    took: list[float] = []
    tag = time.monotonic_ns()

    async def call() -> None:
        for number in left:
            some = [_WORDS.format(f"{tag}.{number}", each) for each in range(texts)]
            began = time.perf_counter()
            await ask(some)
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    seconds = time.perf_counter() - began
    cuts = statistics.quantiles(took, n=100)
    return {"per_s": requests / seconds, "p50_ms": 1000 * cuts[49], "p99_ms": 1000 * cuts[98]}


def directly(client: TranslationClient) -> Ask:
    """Return a caller without the gateway."""

    async def ask(texts: list[str]) -> None:
        fields: dict[str, Any] = {
            "job_id": f"direct.{hash(texts[0]):x}".replace("-", "n"), "text": texts,
            "target_lang": "de", "source_lang": "en", "ttl_s": 600,
        }  # fmt: skip
        await (await client.submit(TranslationJob.model_validate(fields))).texts(60)

    return ask


def through(http: aiohttp.ClientSession) -> Ask:
    """Return a caller of the gateway."""

    async def ask(texts: list[str]) -> None:
        body = {"text": texts, "source_lang": "EN", "target_lang": "DE"}
        async with http.post("/v2/translate", json=body) as response:
            if response.status != 200:
                raise SystemExit(f"{response.status}: {await response.text()}")
            await response.read()

    return ask


async def measure(options: argparse.Namespace, gateway: GatewayProcess, settings: Any) -> None:
    """Print a row for each number of callers."""
    process = psutil.Process(gateway.pid)
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        TranslationClient(settings=settings) as client,
        aiohttp.ClientSession(gateway.url, connector=connector, headers=HEADERS) as http,
    ):
        sides = {"direct": directly(client), "gateway": through(http)}
        for ask in sides.values():
            await loop(ask, 8, options.texts, 200)  # warm
        for callers in map(int, options.callers.split(",")):
            found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
            cpu = 0.0
            for _ in range(options.rounds):
                for side, ask in sides.items():
                    before = sum(process.cpu_times()[:2])
                    found[side].append(await loop(ask, callers, options.texts, options.requests))
                    if side == "gateway":
                        cpu += sum(process.cpu_times()[:2]) - before
            row: dict[str, Any] = {"callers": callers, "texts": options.texts}
            for what in ("per_s", "p50_ms", "p99_ms"):
                one, other = (statistics.median(r[what] for r in found[s]) for s in sides)
                row |= {f"direct_{what}": round(one, 1), f"gateway_{what}": round(other, 1),
                        f"ratio_{what}": round(other / one, 2)}  # fmt: skip
            row["cpu_ms"] = round(1000 * cpu / options.rounds / options.requests, 2)
            row["rss_mb"] = process.memory_info().rss >> 20
            print(json.dumps(row), flush=True)


def main() -> None:
    """Start everything, measure, and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--callers", default="1,64,1000")
    parser.add_argument("--texts", type=int, default=1)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with site("gateway-bench", worker={"quality.level": "off"}) as started:
        asyncio.run(measure(options, started.gateway, started.settings))


if __name__ == "__main__":
    main()
