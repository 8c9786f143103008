"""Memory of the gateway with thousands of held requests, and with connections that send nothing.

usage: held.py [--count 4096]

A real Kafka and Redis, one echo worker. First `--count` connections send half of their headers,
while a caller asks for new texts. Then as many requests are held at once, each with a text of its
own. Prints a row each: resident memory, and how long the caller waited at most.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from typing import Any

import aiohttp
import psutil
from started import HEADERS, site

from support.processes.gateway_process import GatewayProcess


def _body(text: str) -> dict[str, str]:
    return {"text": text, "source_lang": "EN", "target_lang": "DE"}


async def held(gateway: GatewayProcess, count: int) -> dict[str, Any]:
    """Hold requests whose texts take 5 s; return their statuses and the memory meanwhile."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(gateway.url, connector=connector, headers=HEADERS) as http:

        async def ask(number: int) -> int:
            body = _body(f"#!sleep 5\nText {number}.")
            async with http.post("/v2/translate", json=body) as response:
                return response.status

        asked = [asyncio.create_task(ask(number)) for number in range(count)]
        most = 0
        while any(not each.done() for each in asked):
            await asyncio.sleep(0.5)
            most = max(most, psutil.Process(gateway.pid).memory_info().rss >> 20)
        statuses = [each.result() for each in asked]
    return {
        "held": count,
        "statuses": {s: statuses.count(s) for s in set(statuses)},
        "rss_mb": most,
    }


async def slow(gateway: GatewayProcess, count: int) -> dict[str, Any]:
    """Open connections that never finish their headers, and ask beside them."""
    began = time.monotonic()
    pairs = []
    worst = 0.0
    async with aiohttp.ClientSession(gateway.url, headers=HEADERS) as http:
        for number in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(b"POST /v2/translate HTTP/1.1\r\nHost: x\r\n")
            pairs.append((reader, writer))
            if number % 100 == 0:
                at = time.monotonic()
                async with http.post("/v2/translate", json=_body(f"New {number}.")) as response:
                    if response.status != 200:
                        raise SystemExit(f"{response.status}: {await response.text()}")
                worst = max(worst, time.monotonic() - at)
        rss = psutil.Process(gateway.pid).memory_info().rss >> 20
        await asyncio.gather(*(reader.read() for reader, _ in pairs), return_exceptions=True)
        for _, writer in pairs:
            writer.close()
    seconds = round(time.monotonic() - began, 1)
    return {"silent": count, "rss_mb": rss, "worst_s": round(worst, 2), "all_closed_s": seconds}


def main() -> None:
    """Start everything, measure, and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4096)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with site("gateway-held", worker={"limits.max_in_flight_jobs": 8000}) as started:
        for measured in (slow, held):
            row = asyncio.run(measured(started.gateway, options.count))
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
