"""Cost of planning: CPU of the event loop's thread and of others, and the loop's longest stall.

usage: planning.py [--tokenizers DIR ...] [--rounds 5] [--items 1,8,64] [--rate 300] [--busy 0.7]

Jobs of 1, 8 and 64 items of 20 to 400 tokens each, planned as the worker does: profile, chat
template, tokenising, budgets. No GPU and no vLLM. `loop` plans on the event loop; `thread` does
each item in its thread, in turns, as the worker does with a tokenizer; `batches` does there at
once what has arrived since its last batch. With --rate, jobs arrive evenly at so many items per
second; 0 is a burst. With --busy, other work keeps the loop busy for that share of the time, 3 ms
at a time, as the front end of vLLM does; its CPU is not counted. The ways take turns. CPU and wall
time are in microseconds per item, the smallest of the rounds. A stall is CPU time of the loop's
thread between two of its rounds, so that a busy machine adds none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from job_mix import source
from transformers import AutoTokenizer

from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.flow.planning import Planning
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.planner import Planner
from dragoman_worker.ports import EngineLimits, Prompt
from dragoman_worker.prompts import tokens
from dragoman_worker.prompts.table import PROFILES

TOTAL_ITEMS = 640
_BURN_S = 0.003


class TokenizerEngine:
    """The parts of the vLLM engine that planning uses."""

    limits = EngineLimits(512, 8_192, 4_096, 400_000)

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """See the port."""
        return tokens.encode(prompt, self.tokenizer)

    def count_tokens(self, text: str) -> int:
        """See the port."""
        return tokens.count(text, self.tokenizer)


class Batches:
    """One thread that plans at once all items that wait for it."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[tuple[Plan, asyncio.Future[None]]] = deque()
        self._running = False

    async def step(self, plan: Plan) -> None:
        """Plan the next item."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((plan, done))
        if not self._running:
            self._running = True
            await self._flush()
        await done

    async def _flush(self) -> None:
        while self._waiting:
            batch = list(self._waiting)
            self._waiting.clear()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._plan, batch)
            for _, done in batch:
                done.set_result(None)
        self._running = False

    def _plan(self, batch: list[tuple[Plan, asyncio.Future[None]]]) -> None:
        for plan, _ in batch:
            self._planner.step(plan)


def ways(planner: Planner) -> dict[str, Callable[[Plan], Awaitable[None]]]:
    gate = Planning(10**9, tokenises=True)

    async def on_the_loop(plan: Plan) -> None:
        planner.step(plan)
        await asyncio.sleep(0)

    async def in_the_thread(plan: Plan) -> None:
        size = planner.size(plan)
        async with gate.turn(size, plan) as turn:
            await turn.plan(size, partial(planner.step, plan))

    return {"loop": on_the_loop, "thread": in_the_thread, "batches": Batches(planner).step}


def jobs(items: int, seed: int) -> list[TranslationJob]:
    """Return jobs of so many items, of 20 to 400 tokens in equal shares of the logarithm."""
    draw = random.Random(seed)

    def text() -> str:
        return source(round(math.exp(draw.uniform(math.log(18), math.log(360)))), draw)

    return [
        TranslationJob(
            job_id=f"p-{number}",
            text=[text() for _ in range(items)],
            source_lang="en",
            target_lang="de",
        )
        for number in range(TOTAL_ITEMS // items)
    ]


async def measure(
    planner: Planner,
    way: Callable[[Plan], Awaitable[None]],
    work: list[TranslationJob],
    given: argparse.Namespace,
) -> dict[str, float]:
    """Plan all jobs, at `rate` items per second or at once, and return the costs per item."""

    async def one(job: TranslationJob) -> None:
        plan = planner.open(job)
        while not plan.complete:
            await way(plan)

    stalls: list[float] = []
    burnt, rate = [0.0], given.rate
    watching = [asyncio.create_task(_watch(stalls))]
    if given.busy:
        watching.append(asyncio.create_task(_burn(given.busy, burnt)))
    loop_s, all_s, begun = time.thread_time(), time.process_time(), time.perf_counter()
    running: list[asyncio.Task[None]] = []
    for number, job in enumerate(work):
        due = begun + number * len(job.items) / rate if rate else 0.0
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        running.append(asyncio.create_task(one(job)))
    await asyncio.gather(*running)
    seconds = time.perf_counter() - begun
    loop_s, all_s = time.thread_time() - loop_s, time.process_time() - all_s
    for task in watching:
        task.cancel()
    return {
        "loop_us": 1e6 * (loop_s - burnt[0]) / TOTAL_ITEMS,
        "other_us": 1e6 * (all_s - loop_s) / TOTAL_ITEMS,
        "stall_ms": 1e3 * max(stalls, default=0.0),
        "wall_us": 1e6 * seconds / TOTAL_ITEMS,
    }


async def _watch(stalls: list[float]) -> None:
    """Note the CPU time between two turns of this task, which runs every few milliseconds."""
    last = time.thread_time()
    while True:
        await asyncio.sleep(0.002)
        now = time.thread_time()
        stalls.append(now - last)
        last = now


async def _burn(share: float, burnt: list[float]) -> None:
    """Keep the loop busy for a share of the time."""
    while True:
        begun = time.thread_time()
        while time.thread_time() - begun < _BURN_S:
            pass
        burnt[0] += time.thread_time() - begun
        await asyncio.sleep(_BURN_S / share - _BURN_S)


async def main_of(given: argparse.Namespace) -> None:
    for folder in given.tokenizers:
        engine = TokenizerEngine(folder)
        profile = PROFILES["chat" if engine.tokenizer.chat_template else "demo"]
        planner = Planner(
            engine=engine,  # type: ignore[arg-type]
            choose_profile=lambda _, profile=profile: profile,
            max_tokens=1_024,
        )
        for items in map(int, given.items.split(",")):
            await _compare(given, planner, items, f"{len(engine.tokenizer)} tokens")


async def _compare(given: argparse.Namespace, planner: Planner, items: int, name: str) -> None:
    rows: dict[str, list[dict[str, float]]] = {}
    for number in range(given.rounds + 1):
        for way, step in ways(planner).items():
            row = await measure(planner, step, jobs(items, number), given)
            if number:  # the first warms caches
                rows.setdefault(way, []).append(row)
    for way, found in rows.items():
        least = {key: round(min(row[key] for row in found), 1) for key in found[0]}
        print(json.dumps({"tokenizer": name, "items": items, "way": way, **least}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    demo = Path(__file__).parents[1] / "demo" / "model"
    parser.add_argument("--tokenizers", type=Path, nargs="+", default=[demo])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--items", default="1,8,64")
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--busy", type=float, default=0.0)
    uvloop.run(main_of(parser.parse_args()))


if __name__ == "__main__":
    main()
