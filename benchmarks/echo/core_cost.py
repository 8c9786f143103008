"""CPU of the worker's core per job or item, with stand-ins for Kafka and Redis in memory.

usage: core_cost.py [--items 1] [--batch 32] [--rounds 300] [--beside CHECKOUT] [--turns 4]

The echo engine at latency 0, quality off. Every round has `--batch` jobs of `--items` items, from
their delivery to the completion of the last. The row has microseconds of the process' CPU per item:
the smallest round and the 5th percentile, which other programs on the machine disturb least. The
stand-in for Redis answers packed commands at once, so its client's sockets do not count.
With --beside, another checkout of this repository takes turns with this one, each with its own copy
of this program, in processes and round by round, so that what else the machine does disturbs both
alike. The ratio of a turn is the
median over its pairs of rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from hiredis import pack_command
from prometheus_client import CollectorRegistry

from dragoman_connections.redis_access.calls import Answer, Call, Command, Servers
from dragoman_schemas import scripts
from dragoman_worker.engines.starting import open_engine
from dragoman_worker.job.core import Core, Ports
from dragoman_worker.job.outages import Outages
from dragoman_worker.kafka.offsets import PartitionOffsets
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import CancelNotice, Capacity, Delivery
from dragoman_worker.process.event_loop import run_loop, seldom_collected
from dragoman_worker.prompts.table import profile_chooser
from dragoman_worker.quality.judge import ProcessJudge
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.stores.redis import RedisStore
from dragoman_worker.tracing import Tracer

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.fakes.local_kafka import MemoryDeadLetters

PACKAGES = ("connections", "demo", "documents", "producer", "schemas", "text", "worker")
_TIME = b"2030-01-01T00:00:00.000Z"
_CLAIMED = (b"run", 1, 0, _TIME, _TIME, b"running", b"", 0)
_FINISHED = (1, b"completed", 0, 1, b"")


class StandIn:
    """Redis as the store sees it: every claim runs, every finish is written."""

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """Pack the commands and answer them after a turn of the event loop."""
        del confirmation
        b"".join(pack_command(command) for call in calls for command in call.commands)
        await asyncio.sleep(0)
        return [Answer([_reply(command) for command in call.commands]) for call in calls]


def _reply(command: Command) -> Any:
    if command[0] != "EVALSHA":
        return b"1-1"
    return _CLAIMED if command[1] == scripts.CLAIM.sha1 else _FINISHED


class NoCancels(RedisStore):
    """The store without its stream of cancellations."""

    async def cancels(self) -> AsyncIterator[CancelNotice]:
        """Yield nothing."""
        await asyncio.Event().wait()
        return
        yield


class Feed:
    """The Consumer port, fed by the benchmark."""

    def __init__(self) -> None:
        self._waiting: deque[Delivery] = deque()
        self._offsets = PartitionOffsets(generation=1, base=0)
        self._left = 0
        self._all_done = asyncio.Event()

    async def work_off(self, values: Sequence[bytes]) -> None:
        """Deliver records and return when all are completed."""
        now, first = time.time_ns() // 1_000_000, self._offsets.next_offset
        self._left = len(values)
        self._all_done.clear()
        for offset, value in enumerate(values, first):
            self._waiting.append(Delivery("jobs", 0, offset, 1, None, value, (), now))
        await self._all_done.wait()

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        """See the port."""
        await asyncio.sleep(0 if self._waiting and capacity.jobs else 0.001)
        count = min(capacity.jobs, len(self._waiting))
        found = [self._waiting.popleft() for _ in range(count)]
        for delivery in found:
            self._offsets.begin(delivery.offset)
        return found

    def complete(self, delivery: Delivery) -> None:
        """See the port."""
        self._offsets.complete(delivery.offset)
        self._left -= 1
        if not self._left:
            self._all_done.set()

    def still_assigned(self, delivery: Delivery) -> bool:
        """See the port."""
        return delivery.generation == self._offsets.generation


@asynccontextmanager
async def running_core(tracer: Tracer | None = None) -> AsyncIterator[tuple[Core, Feed]]:
    """Run a worker's core with the echo engine and stand-ins, and yield it with its feed."""
    settings = WorkerSettings.model_validate(
        {"engine": {"kind": "echo", "echo": {"faults": False}}, "quality": {"level": "off"}}
    )
    metrics, feed = Metrics(CollectorRegistry()), Feed()
    engine = open_engine(settings.engine, log_level="info")
    await engine.start()
    store = NoCancels(
        settings.redis, cast("Servers", StandIn()), poison_after=4, want_results=False
    )
    ports = Ports(
        engine=engine,
        consumer=feed,
        store=store,
        dead_letters=MemoryDeadLetters(),
        results=None,
        judge=ProcessJudge(timeout_s=10, metrics=metrics),
    )
    choose = profile_chooser(settings.engine)
    core = Core(
        settings, ports, choose_profile=choose, outages=Outages(), metrics=metrics, tracer=tracer
    )
    with seldom_collected():
        running = asyncio.create_task(core.worker.run())
        yield core, feed
        core.worker.stop()
        await running
    core.flow.planning.close()


async def measure(given: argparse.Namespace) -> list[float]:
    """Return the CPU seconds of each round."""
    rounds: list[float] = []
    async with running_core() as (_, feed):
        for number in range(given.rounds):
            values = list(values_from(number * given.batch, given.batch, given.items))
            if given.in_step:
                sys.stdin.readline()
            begun = time.process_time()
            await feed.work_off(values)
            rounds.append(time.process_time() - begun)
            if given.in_step:
                print(rounds[-1], flush=True)
    return rounds


def values_from(first: int, batch: int, items: int = 1) -> Iterator[bytes]:
    """Yield records like those of the other echo benchmarks, or of several such items."""
    for number in range(first, first + batch):
        texts = [f"This is sentence number {number}-{n} of many that wait." for n in range(items)]
        job = {
            "job_id": f"e-{number}",
            "text": texts if len(texts) > 1 else texts[0],
            "source_lang": "en",
            "target_lang": "de",
            "quality": {"level": "off"},
        }
        yield json.dumps(job).encode()


def compare(given: argparse.Namespace) -> None:
    """Measure this checkout and another in turns, and print the ratio of each pair."""
    checkouts = (given.beside, Path(__file__).parents[2])
    ratios: list[float] = []
    for _ in range(given.turns):
        other, own = _rounds_in_step(checkouts, given)
        ratios.append(statistics.median(a / b for a, b in zip(own, other, strict=True)))
        row = {"beside": _row(other, given), "this": _row(own, given)}
        print(json.dumps({**row, "ratio": round(ratios[-1], 3)}), flush=True)
    print(f"median {statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})")


def _rounds_in_step(checkouts: Sequence[Path], given: argparse.Namespace) -> list[list[float]]:
    """Return the CPU seconds of each checkout's rounds, which were run in turns."""
    with ExitStack() as stack:
        programs = [
            stack.enter_context(
                subprocess.Popen(
                    _command(given, checkout),
                    env=_environment(checkout),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            for checkout in checkouts
        ]
        found: list[list[float]] = [[] for _ in programs]
        for _ in range(given.rounds):
            for program, rounds in zip(programs, found, strict=True):
                rounds.append(_next_round(program))
    return found


def _next_round(program: subprocess.Popen[str]) -> float:
    if program.stdin is None or program.stdout is None:
        raise RuntimeError("the pipes of the program are missing")
    program.stdin.write("\n")
    program.stdin.flush()
    return float(program.stdout.readline())


def _command(given: argparse.Namespace, checkout: Path) -> list[str]:
    options = [f"--{name}={getattr(given, name)}" for name in ("items", "batch", "rounds")]
    program = checkout / Path(__file__).relative_to(Path(__file__).parents[2])
    return [sys.executable, str(program), *options, "--in-step"]


def _environment(checkout: Path) -> dict[str, str]:
    path = os.pathsep.join(str(checkout.resolve() / package) for package in PACKAGES)
    return {**os.environ, "PYTHONPATH": path}


def _row(rounds: Sequence[float], given: argparse.Namespace) -> dict[str, float]:
    us = sorted(1e6 * cpu / given.batch / given.items for cpu in rounds)
    row = {"least_us": us[0], "p5_us": us[len(us) // 20]}
    row |= {"median_us": statistics.median(us), "mean_us": statistics.fmean(us)}
    return {name: round(value, 2) for name, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--in-step", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.beside is not None:
        compare(given)
        return
    print(json.dumps({"items": given.items, **_row(run_loop(measure(given)), given)}))


if __name__ == "__main__":
    main()
