"""Measure what a request costs the worker's process: to a server, and to the echo engine in it.

usage: server_cost.py [--requests 20000] [--in-flight 2000] [--latency 0.5]

Both engines are asked through the port, without Kafka, Redis and plans: what differs is the
engine's adapter. The server is a process of its own that answers after `--latency` and says that it
runs all it gets: one that says nothing would be tried with ever more, from 8. CPU is that of this
process per request, memory its resident growth at `--in-flight` open requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from dragoman_worker.engines.starting import open_engine
from dragoman_worker.ports import Decoding, Engine, GenerationRequest, Message, Prompt
from dragoman_worker.process.event_loop import run_loop
from dragoman_worker.settings import EngineSettings

_TESTS = Path(__file__).parents[1] / "tests"
_TEXT = "The train to the coast leaves at seven, and nobody has bought the tickets yet. " * 4


async def cost(engine: Engine, requests: int, in_flight: int) -> dict[str, float]:
    """Return the CPU per request and the memory of so many open ones."""
    process = psutil.Process()
    await _asked(engine, in_flight, in_flight)  # warm
    before, cpu, began = process.memory_info().rss, time.process_time(), time.monotonic()
    most = await _asked(engine, requests, in_flight)
    seconds = time.process_time() - cpu
    return {
        "cpu_us_per_request": round(seconds / requests * 1e6, 1),
        "requests_per_s": round(requests / (time.monotonic() - began)),
        "rss_mib": round(most / 2**20, 1),
        "rss_growth_mib": round((most - before) / 2**20, 1),
    }


async def _asked(engine: Engine, requests: int, in_flight: int) -> int:
    process, left, most = psutil.Process(), iter(range(requests)), 0
    prompt = Prompt(messages=(Message("user", f"de\n{_TEXT}"),))

    async def work() -> None:
        nonlocal most
        for number in left:
            ids = engine.encode(prompt)
            given = GenerationRequest(f"j{number}", ids, Decoding(max_tokens=128), _TEXT, "de", 1)
            await engine.generate(given)
            if number % 500 == 0:
                most = max(most, process.memory_info().rss)

    await asyncio.gather(*(work() for _ in range(in_flight)))
    return most


async def measured(settings: EngineSettings, requests: int, in_flight: int) -> dict[str, float]:
    """Return the costs of one engine."""
    engine = open_engine(settings, wait_s=20)
    await engine.start()
    try:
        return await cost(engine, requests, in_flight)
    finally:
        await engine.close()


def main() -> None:
    """Print one JSON object per engine: one of them, or both in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=2_000)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--only", choices=("echo", "openai"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is None:
        for kind in ("echo", "openai"):
            subprocess.run([sys.executable, *sys.argv, "--only", kind], check=True)
        return
    more: dict[str, Any] = {"echo": {"latency_s": given.latency}}
    server = None
    if given.only == "openai":
        argv = [sys.executable, "-m", "support.chaos.served", "18984", str(given.latency), "counts"]
        paths = f"{_TESTS}:{os.environ.get('PYTHONPATH', '')}"
        server = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": paths})
        more = {"url": "http://127.0.0.1:18984", "model": "m"}
    settings = EngineSettings(
        kind=given.only, profile="chat", options={"max_num_seqs": given.in_flight}, **more
    )
    try:
        row = run_loop(measured(settings, given.requests, given.in_flight))
    finally:
        if server is not None:
            server.kill()
            server.wait()
    sys.stdout.write(json.dumps({"engine": given.only, **row}) + "\n")


if __name__ == "__main__":
    main()
