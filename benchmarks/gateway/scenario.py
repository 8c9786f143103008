"""The published scenario on one GPU: HTTP callers of `vllm serve`, and of a box with its gateway.

usage: scenario.py --model DIR --profile NAME --out DIR [--callers 25,250,1000] [--requests 4000]

Closed loops of callers with texts of 10 to 200 words, no two alike. The weights may be random:
`engine.exact_lengths` gives each answer 0.3 tokens per character, and `vllm serve` is asked for the
same token ids and lengths. One side runs after the other, each alone on the GPU. Prints requests/s,
p50 and p99 of each, and the ratio of the box to `vllm serve`. `--options` are vLLM's, as JSON; on a
CPU with the demonstration's model: '{"enforce_eager": true, "gpu_memory_utilization": 0.1}'.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from transformers import AutoTokenizer

from dragoman_worker.prompts import tokens
from dragoman_worker.prompts.base import PromptInput
from dragoman_worker.prompts.table import PROFILES

TOKENS_PER_CHARACTER = 0.3
OPTIONS = {"load_format": "dummy", "generation_config": "vllm", "max_num_seqs": 512,
           "max_num_batched_tokens": 16384, "max_model_len": 4096}  # fmt: skip
WORDS = ["red", "blue", "warm", "soft", "shirt", "hat", "with", "a", "long", "fine", "wool", "made"]
_START_S = 1_200.0
Ask = Callable[[str], Awaitable[None]]


def texts(count: int, seed: int) -> list[str]:
    """Return texts of 10 to 200 words, no two alike."""
    chance = random.Random(seed)
    return [
        f"Text {seed} {n}: {' '.join(chance.choices(WORDS, k=chance.randint(7, 197)))}."
        for n in range(count)
    ]


async def loop(ask: Ask, callers: int, asked: list[str]) -> dict[str, float]:
    """Return requests/s and percentiles of closed loops."""
    left, took = iter(asked), []

    async def call() -> None:
        for text in left:
            began = time.perf_counter()
            await ask(text)
            took.append(1000 * (time.perf_counter() - began))

    began = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    seconds = time.perf_counter() - began
    cuts = statistics.quantiles(took, n=100)
    return {"per_s": len(took) / seconds, "p50_ms": cuts[49], "p99_ms": cuts[98]}


async def measured(side: str, given: argparse.Namespace, url: str, key: str) -> dict[int, Any]:
    """Return the row of each number of callers."""
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    render = PROFILES[given.profile].render
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Authorization": f"Bearer {key}"}
    patient = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(
        url, connector=connector, headers=headers, timeout=patient
    ) as http:

        async def post(path: str, body: Mapping[str, Any]) -> None:
            async with http.post(path, json=body) as response:
                if response.status != 200:
                    raise SystemExit(f"{side}: {response.status}: {await response.text()}")
                await response.read()

        async def directly(text: str) -> None:
            ids = tokens.encode(render(PromptInput(text, "de", "en")).prompt, tokenizer)
            length = max(1, round(TOKENS_PER_CHARACTER * len(text)))
            await post("/v1/completions", {
                "model": "m", "prompt": list(ids), "max_tokens": length, "ignore_eos": True,
                "temperature": 0,
            })  # fmt: skip

        async def through(text: str) -> None:
            body = {"text": text, "source_lang": "EN", "target_lang": "DE"}
            await post("/v2/translate", body)

        ask = directly if side == "vllm serve" else through
        rows = {}
        await loop(ask, 25, texts(100, 0))  # warm
        for callers in given.callers:
            count = max(given.requests, 4 * callers)
            rows[callers] = await loop(ask, callers, texts(count, callers))
            print(json.dumps({side: callers} | _rounded(rows[callers])), flush=True)
    return rows


@contextlib.contextmanager
def served(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Start `vllm serve`; yield its URL and key."""
    options = [part for name, value in given.options.items() for part in _option(name, value)]
    argv = [sys.executable, "-P", "-m", "vllm.entrypoints.openai.api_server", "--port", "8650"]
    argv += ["--model", str(given.model), "--served-model-name", "m", *options]
    with _running(argv, given.out / "vllm.log", {}):
        yield _reached("http://127.0.0.1:8650", "/health"), "none"


@contextlib.contextmanager
def box(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Start a box; yield the URL of its gateway and the key."""
    log = given.out / "box.log"
    argv = [sys.executable, "-m", "dragoman_producer", "up", "--model", str(given.model)]
    argv += ["--profile", given.profile, "--data", str(given.out / "box"), "--json"]
    settings = {
        "DRAGOMAN_ENGINE__OPTIONS": json.dumps(given.options),
        "DRAGOMAN_ENGINE__EXACT_LENGTHS": str(TOKENS_PER_CHARACTER),
        "DRAGOMAN_QUALITY__LEVEL": "off",
    }
    with _running(argv, log, settings):
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            for line in log.read_text().splitlines():
                if line.startswith("{") and "gateway_url" in line:
                    found = json.loads(line)
                    yield _reached(found["gateway_url"], "/health"), found["gateway_key"]
                    return
            time.sleep(0.5)
        raise SystemExit(f"the box does not start: {log}")


@contextlib.contextmanager
def _running(argv: list[str], log: Path, settings: Mapping[str, str]) -> Iterator[None]:
    with (
        log.open("w") as out,
        subprocess.Popen(argv, env=os.environ | settings, stdout=out, stderr=out) as process,
    ):
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)


def _reached(url: str, path: str) -> str:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}{path}", timeout=5):  # noqa: S310
            return url
        time.sleep(0.5)
    raise SystemExit(f"{url} does not answer")


def _option(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    return [flag] if value is True else [flag, str(value)]


def _rounded(row: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 1) for name, value in row.items()}


def main() -> None:
    """Run both, one after the other, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--callers", default="25,250,1000")
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--options", type=json.loads, default=OPTIONS)
    given = parser.parse_args()
    given.callers = [int(each) for each in given.callers.split(",")]
    given.out.mkdir(parents=True)
    found: dict[str, dict[int, Any]] = {}
    for side, started in (("vllm serve", served), ("box", box)):
        with started(given) as (url, key):
            found[side] = asyncio.run(measured(side, given, url, key))
    for callers in given.callers:
        one, other = found["vllm serve"][callers], found["box"][callers]
        ratios = {name: round(other[name] / one[name], 3) for name in one}
        print(json.dumps({"callers": callers, "box / vllm serve": ratios}), flush=True)
    (given.out / "figures.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
