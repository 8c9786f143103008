"""Cost of judging: CPU per item on the event loop and in the judge process, and delays.

usage: judge.py --tatoeba DIR [--rates 200 1000 3000] [--seconds 10] [--modes process inline none]

Answers arrive at an even rate and are judged by the project's gates. Per mode and rate: answers
judged per second, µs of CPU per answer on the loop (that of the mode `none`, which judges nothing,
is the cost of the measurement) and in the process, the time until a judgement is there, and the
delay of a timer on the loop. On a machine with other work the CPU figures hold, the delays do not.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle
from pathlib import Path

import psutil
from corpora import add_options, sampled
from prometheus_client import CollectorRegistry

from dragoman_text.verdicts import Candidate, Judgement
from dragoman_worker.metrics import Metrics
from dragoman_worker.process.event_loop import run_loop, seldom_collected
from dragoman_worker.quality.judge import ProcessJudge

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.fakes.inline_judge import InlineJudge

TICK_S = 0.005
Judging = Callable[[Candidate], Awaitable[Judgement | None]]


class Load:
    """Answers at an even rate, and what their judging costs."""

    def __init__(self, judging: Judging, candidates: Sequence[Candidate]) -> None:
        self._judging = judging
        self._candidates = cycle(candidates)
        self._running: set[asyncio.Task[None]] = set()
        self.latencies: list[float] = []
        self.lags: list[float] = []
        self.unjudged = 0

    async def run(self, rate: float, seconds: float) -> None:
        """Hand over `rate` answers per second, and wait for the last judgement."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        sent, due = 0, began
        while (now := loop.time()) < began + seconds:
            self.lags.append(now - due)
            while sent < (now - began) * rate:
                task = loop.create_task(self._one(next(self._candidates)))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
                sent += 1
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
        while self._running:
            await asyncio.wait(self._running)

    async def _one(self, candidate: Candidate) -> None:
        began = time.perf_counter()
        if await self._judging(candidate) is None:
            self.unjudged += 1
        self.latencies.append(time.perf_counter() - began)


async def measured(
    mode: str, candidates: Sequence[Candidate], rate: float, seconds: float
) -> dict[str, float]:
    """Return the figures of one mode at one rate."""
    judge = ProcessJudge(timeout_s=60, metrics=Metrics(CollectorRegistry()))
    inline = InlineJudge()

    async def nothing(candidate: Candidate) -> Judgement:
        return Judgement(candidate.target)

    judging: Judging = {"process": judge.judge, "inline": inline.judge, "none": nothing}[mode]
    if mode == "process":
        await judge.ready()
    await Load(judging, candidates).run(min(rate, 200), 1)
    load, child = Load(judging, candidates), psutil.Process().children()
    cpu, child_cpu, began = time.thread_time(), _cpu(child), time.perf_counter()
    with seldom_collected():
        await load.run(rate, seconds)
    elapsed, done = time.perf_counter() - began, len(load.latencies)
    figures = {
        "per_s": done / elapsed,
        "loop_us": (time.thread_time() - cpu) / done * 1e6,
        "child_us": (_cpu(child) - child_cpu) / done * 1e6,
        "p50_ms": _quantile(load.latencies, 0.5) * 1e3,
        "p99_ms": _quantile(load.latencies, 0.99) * 1e3,
        "lag_p99_ms": _quantile(load.lags, 0.99) * 1e3,
        "unjudged": load.unjudged,
    }
    await judge.close()
    return figures


def _cpu(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--rates", type=float, nargs="+", default=[200, 1_000, 3_000])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--modes", nargs="+", default=["none", "process", "inline"])
    given = parser.parse_args()
    candidates = [
        Candidate(pair.source, pair.target, pair.target_lang, pair.source_lang)
        for pair in sampled(given)
    ]
    print(
        f"{'mode':8} {'rate':>6} {'per s':>7} {'µs on the loop':>14} {'in the process':>14}"
        f" {'p50 ms':>7} {'p99 ms':>7} {'loop lag p99 ms':>15}  unjudged"
    )
    for rate in given.rates:
        for mode in given.modes:
            row = run_loop(measured(mode, candidates, rate, given.seconds))
            print(
                f"{mode:8} {rate:6.0f} {row['per_s']:7.0f} {row['loop_us']:14.0f}"
                f" {row['child_us']:14.0f} {row['p50_ms']:7.1f} {row['p99_ms']:7.1f}"
                f" {row['lag_p99_ms']:15.1f}  {row['unjudged']:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
