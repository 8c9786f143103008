"""Tokens that the memory saves: repeated segments, a kill at half, and two replicas on one text.

usage: repetition.py --tatoeba DIR [--jobs 2000] [--items 10] [--repeated 0.6] [--latency 0]

Real Kafka and Redis. The echo engine answers English segments with their human translations into
German (mode `table`), so that the gates judge real text; tokens are its words. Segments are drawn
so that `--repeated` of them occurred before. Rows: the tokens that were generated without the
memory, for each text once, and with the memory; after a SIGKILL at half, the same jobs under new
ids, and how many answers were generated twice; one text in 200 jobs at once for two replicas.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corpora import Pair, add_options, sampled

sys.path.insert(0, str(Path(__file__).parents[1] / "echo"))
from harness import Harness, services

from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.plain_clients import job as state_of
from support.services.plain_clients import publish

Job = dict[str, Any]
LONGEST_RUN_S = 600.0


def drawn(pairs: Sequence[Pair], given: argparse.Namespace) -> list[list[str]]:
    """Return the segments of each job, of which the share `repeated` occurred before."""
    chance = random.Random(1)
    fresh, seen = iter(pairs), [pairs[0].source]
    jobs: list[list[str]] = []
    for _ in range(given.jobs):
        texts = []
        for _ in range(given.items):
            again = chance.random() < given.repeated
            texts.append(chance.choice(seen) if again else next(fresh).source)
            seen.append(texts[-1])
        jobs.append(texts)
    return jobs


def records(jobs: Sequence[Sequence[str]], run: str) -> list[Job]:
    """Return the jobs' records with ids of this run."""
    fields = {"source_lang": "en", "target_lang": "de"}
    return [
        {"job_id": f"{run}-{number}", "text": list(texts), **fields}
        for number, texts in enumerate(jobs)
    ]


def paid(harness: Harness, jobs: Sequence[Job]) -> int:
    """Return the tokens that were generated for these jobs, as far as they are terminal."""
    states = (state_of(harness.client, job["job_id"]) for job in jobs)
    results = (state["result"] for state in states if "result" in state)
    return sum(result["usage"]["completion_tokens"] for result in results)


@contextmanager
def worker(
    harness: Harness, folder: Path, topic: str, settings: Mapping[str, Any]
) -> Iterator[WorkerProcess]:
    """Run a worker that judges and answers from the table."""
    chosen = {
        "engine.echo.mode": "table",
        "engine.echo.table": str(folder / "table.tsv"),
        "engine.echo.faults": False,
        "quality.level": "basic",
        "quality.on_fail": "best_effort",
        "memory.enabled": True,
        **settings,
    }
    where = {"kafka": harness.broker.bootstrap, "redis": harness.server.url, "topic": topic}
    with WorkerProcess(folder, **where, settings=chosen, name=topic) as running:
        yield running.ready(timeout_s=90)


def terminal(harness: Harness, jobs: Sequence[Job]) -> int:
    """Return how many of the jobs have a result."""
    with harness.client.pipeline(transaction=False) as pipeline:
        for job in jobs:
            pipeline.hexists(f"dragoman:job:{job['job_id']}", "result")
        return sum(pipeline.execute())


def run(harness: Harness, folder: Path, jobs: Sequence[Job], **settings: Any) -> float:
    """Run the jobs to their end on warm replicas; return the seconds that took."""
    topic = harness.fresh_topic(4) if settings.pop("clear", True) else _topic(harness)
    replicas = settings.get("engine.replicas", 1)
    with worker(harness, folder, topic, settings) as running:
        wait_until(
            lambda: running.metric("dragoman_ready") == replicas, timeout_s=90, what="replicas"
        )
        _wait_until_all_take_jobs(harness, topic, replicas)
        publish(harness.broker.bootstrap, topic, jobs)
        began = time.monotonic()
        wait_until(
            lambda: terminal(harness, jobs) == len(jobs), timeout_s=LONGEST_RUN_S, what="all jobs"
        )
        _say_trouble(running)
        return time.monotonic() - began


def _say_trouble(running: WorkerProcess) -> None:
    """Print how many look-ups and writes of the memory failed: on a busy machine they cost hits."""
    lines = running.get("/metrics")[1].splitlines()
    errors = [
        float(line.rsplit(" ", 1)[1])
        for line in lines
        if line.startswith("dragoman_memory_total{") and 'result="error"' in line
    ]
    if failed := sum(errors):
        print(f"({failed:.0f} look-ups or writes of the memory failed)", flush=True)


def _wait_until_all_take_jobs(harness: Harness, topic: str, replicas: int) -> None:
    """Publish other jobs until each replica has finished some: all have their partitions then."""
    takers: set[str] = set()
    for attempt in range(60):
        jobs = records([[f"Warm-up {attempt} {number}"] for number in range(16)], f"warm-{attempt}")
        publish(harness.broker.bootstrap, topic, jobs)
        wait_until(
            lambda jobs=jobs: terminal(harness, jobs) == len(jobs), timeout_s=60, what="warm-up"
        )
        takers |= by_worker(harness, jobs).keys()
        if len(takers) == replicas:
            return
    raise RuntimeError(f"only {sorted(takers)} of {replicas} replicas take jobs")


def by_worker(harness: Harness, jobs: Sequence[Job]) -> Counter[str]:
    """Return the number of these terminal jobs by the replica that finished them."""
    return Counter(state_of(harness.client, job["job_id"])["result"]["worker_id"] for job in jobs)


def _topic(harness: Harness) -> str:
    topic = f"again-{time.time_ns()}"
    harness.broker.create_topic(topic, 4)
    harness.broker.create_topic(f"{topic}-dead")
    return topic


def distinct(harness: Harness, jobs: Sequence[Job]) -> int:
    """Return the tokens of these jobs if each text were generated once."""
    tokens: dict[str, int] = {}
    for job in jobs:
        items = state_of(harness.client, job["job_id"])["result"]["translations"]
        used = (item["usage"]["completion_tokens"] for item in items)
        tokens.update(zip(job["text"], used, strict=True))
    return sum(tokens.values())


def saved(harness: Harness, folder: Path, jobs: list[list[str]], latency_s: float) -> None:
    """Print the tokens without and with the memory, and those of the distinct texts."""
    off, on = records(jobs, "off"), records(jobs, "on")
    latency = {"engine.echo.latency_s": latency_s}
    seconds = run(harness, folder, off, **latency, **{"memory.enabled": False})
    without, least = paid(harness, off), distinct(harness, off)
    print(f"without the memory: {without} tokens, {seconds:.1f} s", flush=True)
    print(f"each text once: {least} tokens ({least / without:.1%})", flush=True)
    seconds = run(harness, folder, on, **latency)
    tokens = paid(harness, on)
    print(f"with the memory: {tokens} tokens ({tokens / without:.1%}), {seconds:.1f} s", flush=True)


def killed(harness: Harness, folder: Path, jobs: list[list[str]]) -> None:
    """Print what a kill at half costs, if all jobs are submitted again under new ids."""
    first, second = records(jobs, "first"), records(jobs, "second")
    topic = harness.fresh_topic(4)
    publish(harness.broker.bootstrap, topic, first)
    with worker(harness, folder, topic, {"engine.echo.latency_s": 0.05}) as running:
        half = len(first) // 2
        wait_until(lambda: terminal(harness, first) >= half, timeout_s=600, what="half of them")
        _say_trouble(running)
        before = round(running.metric("dragoman_decode_seconds_per_token_count"))
        for replica in running.replicas():
            replica.kill()
        running.kill()
    seconds = run(harness, folder, second, clear=False)
    after = attempts(harness, second)
    unique = len({text for texts in jobs for text in texts})
    twice = before + after - unique
    print(
        f"killed at half: {before} answers generated before, {after} after ({seconds:.1f} s), "
        f"{unique} different texts: {twice} twice ({twice / unique:.1%})",
        flush=True,
    )


def attempts(harness: Harness, jobs: Sequence[Job]) -> int:
    """Return how many answers were generated for these terminal jobs."""
    states = (state_of(harness.client, job["job_id"]) for job in jobs)
    items = (item for state in states for item in state["result"]["translations"])
    return sum(item["attempts"] for item in items)


def crowd(harness: Harness, folder: Path, text: str) -> None:
    """Print how often one text is generated that 200 jobs bring at once."""
    jobs = records([[text]] * 200, "crowd")
    for replicas in (1, 2):
        settings = {"engine.replicas": replicas, "engine.echo.latency_s": 0.5}
        run(harness, folder, jobs, **settings)
        generated = attempts(harness, jobs)
        taken = " and ".join(str(count) for count in by_worker(harness, jobs).values())
        print(
            f"one text in 200 jobs, {replicas} replicas that took {taken} of them: generated "
            f"{generated} times",
            flush=True,
        )


def main() -> None:
    """Measure by the command-line arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--items", type=int, default=10)
    parser.add_argument("--repeated", type=float, default=0.6)
    parser.add_argument("--latency", type=float, default=0.0, help="of an item, in seconds")
    given = parser.parse_args()
    pairs = [
        pair for pair in sampled(given) if (pair.source_lang, pair.target_lang) == ("en", "de")
    ]
    by_source = {pair.source: pair for pair in pairs}
    jobs = drawn(list(by_source.values()), given)
    with TemporaryDirectory() as name, services() as harness:
        folder = Path(name)
        rows = (f"{pair.source}\tde\t{pair.target}\n" for pair in by_source.values())
        (folder / "table.tsv").write_text("".join(rows), encoding="utf-8")
        saved(harness, folder, jobs, given.latency)
        killed(harness, folder, jobs)
        crowd(harness, folder, jobs[0][0])


if __name__ == "__main__":
    main()
