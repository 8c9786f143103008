"""What tracing costs the worker's core: the ratio of CPU per job with and without it.

usage: tracing_cost.py [--blocks 300] [--batch 100]

One core works on small batches of jobs, as in core_cost.py, and its tracer is replaced from batch
to batch: none, tracing off, 1 % of the jobs recorded (exactly one per hundred), and none again,
which shows the method's own error. A block has every kind twice, in a random order and in reverse,
so that a steady change of the machine adds nothing. CPU is the event loop's thread alone. Printed
is the median over the blocks of each ratio to none, with the interval that holds the true
median with 95 % and the interval of the blocks' middle half.
The export has a thread of its own, which sends the spans to a collector in another process. Its CPU
per recorded job is counted by its own clock and added at the end.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from random import sample
from typing import Any, Final
from unittest.mock import patch

from core_cost import Feed, running_core, values_from

from dragoman_worker.ports import Delivery
from dragoman_worker.process.event_loop import run_loop
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tracing import Trace, Tracer, open_tracer, spans

KINDS: Final = ("none", "off", "recorded", "none again")
ONE_IN: Final = 100
WARM_UP: Final = 50
"""Batches before the first block."""


class NoTracer(Tracer):
    """A worker without the look for a trace."""

    def begin(self, delivery: Delivery) -> Trace | None:
        """Return no trace."""
        del delivery
        return None


def collect(pipe: Connection) -> None:
    """Receive spans in a process of its own, and answer how many arrived."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from support.services.span_receiver import SpanReceiver  # noqa: PLC0415  needs an extra

    with SpanReceiver() as receiver:
        pipe.send(receiver.endpoint)
        while pipe.recv():
            pipe.send(len(receiver.spans))


@contextmanager
def collector() -> Iterator[tuple[str, Connection]]:
    """Start the collector; yield its address and the pipe to ask it."""
    context = multiprocessing.get_context("spawn")
    own, other = context.Pipe()
    process = context.Process(target=collect, args=(other,))
    process.start()
    try:
        yield own.recv(), own
    finally:
        own.send(False)
        process.join()


def export_cpu_s() -> float:
    """Return the CPU time of the thread that exports."""
    [thread] = [one for one in threading.enumerate() if "BatchSpan" in one.name]
    if thread.ident is None:
        raise RuntimeError("the export has not begun")
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


async def measure(given: argparse.Namespace, endpoint: str, received: Any) -> dict[str, Any]:
    """Return the CPU seconds per block and kind, and what the export costs."""
    traced = {"enabled": True, "endpoint": endpoint, "sample_ratio": 1 / ONE_IN}
    settings = WorkerSettings.model_validate({"engine": {"kind": "echo"}, "tracing": traced})
    recording, none, used = open_tracer(settings), NoTracer(), Tracer()
    tracers = {"none": none, "off": Tracer(), "recorded": recording, "none again": none}
    chance = cycle([1.0] * (ONE_IN // 2) + [0.0] + [1.0] * (ONE_IN - ONE_IN // 2 - 1)).__next__
    blocks: list[dict[str, float]] = []
    with patch.object(spans, "random", chance):
        async with running_core(used) as (_, feed):
            number = 0
            for kind in KINDS * (WARM_UP // len(KINDS)):
                used.begin = tracers[kind].begin
                await _batch(feed, number := number + 1, given.batch)
            for _ in range(given.blocks):
                block = dict.fromkeys(KINDS, 0.0)
                order = sample(KINDS, len(KINDS))
                for kind in (*order, *reversed(order)):
                    used.begin = tracers[kind].begin
                    block[kind] += await _batch(feed, number := number + 1, given.batch)
                blocks.append(block)
    cpu_s, exported = export_cpu_s(), received()
    await recording.close()
    jobs = (2 * given.blocks + WARM_UP // len(KINDS)) * given.batch // ONE_IN
    spans_per_job = received() / jobs
    return {"blocks": blocks, "spans_per_job": spans_per_job, "export_s": cpu_s / exported}


async def _batch(feed: Feed, number: int, size: int) -> float:
    values = list(values_from(number * size, size))
    begun = time.thread_time()
    await feed.work_off(values)
    return time.thread_time() - begun


def row(found: dict[str, Any], batch: int) -> dict[str, Any]:
    """Return the row that is printed."""
    blocks = found["blocks"]
    job_s = statistics.median(block["none"] for block in blocks) / 2 / batch
    export_s = found["export_s"] * found["spans_per_job"]
    ratios = {
        kind: _spread([block[kind] / block["none"] for block in blocks]) for kind in KINDS[1:]
    }
    share = export_s / ONE_IN / job_s
    spent_s = (ratios["recorded"]["median"] - 1) * job_s * ONE_IN
    return {
        "blocks": len(blocks),
        "job_us": round(job_s * 1e6, 1),
        "ratios": ratios,
        "us_per_recorded_job": round(spent_s * 1e6, 1),
        "spans_per_recorded_job": round(found["spans_per_job"], 1),
        "export_us_per_recorded_job": round(export_s * 1e6, 1),
        "recorded_with_export": round(ratios["recorded"]["median"] + share, 4),
    }


def _spread(ratios: Sequence[float]) -> dict[str, Any]:
    ordered, count = sorted(ratios), len(ratios)
    reach = round(0.98 * count**0.5)  # ranks of the median's interval, by the binomial distribution
    low, high = ordered[max(count // 2 - reach, 0)], ordered[min(count // 2 + reach, count - 1)]
    return {
        "median": round(statistics.median(ordered), 4),
        "interval": [round(low, 4), round(high, 4)],
        "middle_half": [round(ordered[count // 4], 4), round(ordered[count * 3 // 4], 4)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--blocks", type=int, default=300)
    parser.add_argument("--batch", type=int, default=100)
    given = parser.parse_args()
    if given.batch % ONE_IN:
        parser.error(f"--batch: give a multiple of {ONE_IN}, so that every batch has its share")
    with collector() as (endpoint, pipe):

        def received() -> int:
            pipe.send(True)
            return int(pipe.recv())

        found = run_loop(measure(given, endpoint, received))
    print(json.dumps(row(found, given.batch), indent=1))


if __name__ == "__main__":
    main()
