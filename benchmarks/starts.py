"""Seconds of a worker's start, its speed with all engines, and the way back after a killed engine.

usage: starts.py --model DIR [--profile demo] [--options '{"load_format": "dummy"}']
                 [--settings '{"engine.replicas": 4}'] [--exact-lengths] [--gpus 0 all] [--cold]
                 [--no-kill] [--steady-s 20] [--backlog 20000] [--services embedded|real]
                 [--kind vllm|echo] [--out rows.json]

One GPU, cold caches, then a kill:
  starts.py --model DIR --options JSON --exact-lengths --cold
Two GPUs beside one of them:
  starts.py --model DIR --options JSON --exact-lengths --gpus 0 all
Without a GPU, to try the script:
  starts.py --kind echo --settings '{"engine.replicas": 2, "engine.echo.latency_s": 0.2}'
            --backlog 2000

Each of `--gpus` (engine.gpus) is a start of `dragoman-worker run` over a backlog that is published
before and kept filled. With `--cold` the first start has empty compile caches (vLLM, Inductor,
Triton), which the later ones use. Seconds count from the start of the command: until it is ready,
until its first job is done, until all engines are ready, and until full speed, which is the end of
the first ten seconds with at least 0.9 of the steady jobs/s. The steady jobs/s are those of
`--steady-s` seconds that begin ten seconds after all engines are ready. `steps_s` says where the
time went from the first replica's process until its engine worked, by the log, and `import_s` how
long the process that replicas are forked from took before that, or why there is none.

After the last start one engine gets SIGKILL (with the echo engine its replica). Seconds count from
the kill, until all engines are ready again and until full speed. `others` is the share of the
steady jobs/s during the outage. Prints one JSON line per start, and the ratio of the last to the
first. Needs nothing of tests/ with embedded services.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

import psutil
from job_mix import mix
from pipeline import DEAD, exact_lengths, services
from prometheus_client.parser import text_string_to_metric_families
from worker_process import Worker, engine_processes

from dragoman_producer import TranslationClient
from dragoman_schemas.jobs import TranslationJob

LOOK_EVERY_S: Final = 0.5
WINDOW_S: Final = 10.0
FULL: Final = 0.9
"""Share of the steady jobs/s that counts as full speed."""
CHUNK: Final = 500
STEPS: Final = ("replica_started", "engine_starting", "engine_ready", "working")
"""Log events: our imports and connections, the engine, its place in the group."""
CACHES: Final = ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the metrics page; `at` is in seconds of the monotonic clock."""

    at: float
    done: float
    ready: int
    replicas: int
    restarts: float


@dataclass(slots=True)
class Progress:
    """Looks at the page so far. Counters of a replica that starts again begin at zero."""

    looks: list[Look] = field(default_factory=list)
    _counted: dict[str, float] = field(default_factory=dict)
    _done: float = 0.0

    def add(self, page: str) -> None:
        """Add a look at a metrics page; none without a replica that answers."""
        jobs: dict[str, float] = {}
        ready, replicas, restarts = 0, 0, 0.0
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name == "dragoman_jobs_total":
                    name = sample.labels["replica"]
                    jobs[name] = jobs.get(name, 0.0) + sample.value
                elif sample.name == "dragoman_replica_up":
                    replicas += 1
                elif sample.name == "dragoman_ready":
                    ready += int(sample.value)
                elif sample.name == "dragoman_replica_restarts_total":
                    restarts += sample.value
        for name, now in jobs.items():
            before = self._counted.get(name, 0.0)
            self._done += now - before if now >= before else now
            self._counted[name] = now
        self.looks.append(Look(time.monotonic(), self._done, ready, replicas, restarts))

    @property
    def done(self) -> float:
        """Jobs done so far."""
        return self._done

    def rate(self, start: float, end: float) -> float:
        """Return the jobs/s between two moments, by the looks in that time."""
        inside = [look for look in self.looks if start <= look.at <= end]
        if len(inside) < 2:
            return 0.0
        return (inside[-1].done - inside[0].done) / (inside[-1].at - inside[0].at)

    def full_speed_at(self, after: float, steady: float) -> float | None:
        """Return the end of the first window after a moment that has full speed."""
        ends = [look.at for look in self.looks if look.at >= after + WINDOW_S]
        fast = (end for end in ends if self.rate(end - WINDOW_S, end) >= FULL * steady)
        return next(fast, None)


@dataclass(slots=True)
class Trial:
    """A worker, the jobs it is fed with, and what its page showed."""

    worker: Worker
    client: TranslationClient
    given: argparse.Namespace
    progress: Progress = field(default_factory=Progress)
    published: int = 0

    async def publish(self, jobs: Iterator[TranslationJob], wanted: int) -> None:
        """Publish that many jobs."""
        chunk = [next(jobs) for _ in range(wanted)]
        async for _ in self.client.submit_many(chunk):
            self.published += 1

    async def keep_backlog(self, jobs: Iterator[TranslationJob]) -> None:
        """Keep the backlog filled until cancelled."""
        while True:
            if self.published - self.progress.done < self.given.backlog:
                await self.publish(jobs, CHUNK)
            else:
                await asyncio.sleep(0.05)

    async def look(self) -> None:
        """Read the metrics page until cancelled."""
        while True:
            status, page = await asyncio.to_thread(self.worker.page, "/metrics")
            if status == 200:
                self.progress.add(page)
            await asyncio.sleep(LOOK_EVERY_S)

    async def until(self, what: str, seen: Any) -> float:
        """Return when a look satisfies `seen`; exit if none does within `--timeout-s`."""
        deadline = time.monotonic() + self.given.timeout_s
        while not (self.progress.looks and seen(self.progress.looks[-1])):
            process = self.worker.process
            if time.monotonic() > deadline or process is None or process.poll() is not None:
                log = self.worker.folder / f"{self.worker.name}.log"
                raise SystemExit(f"no {what}:\n{log.read_text()[-6000:]}")
            await asyncio.sleep(0.05)
        return self.progress.looks[-1].at


async def trial(given: argparse.Namespace, gpus: str, *, kill: bool) -> dict[str, Any]:
    """Start a worker, measure its start and its speed, and kill an engine if wanted."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        kafka, redis, _ = await stack.enter_async_context(services(given.services))
        client = TranslationClient(bootstrap_servers=kafka, redis_url=redis)
        await stack.enter_async_context(client)
        worker = Worker("starts", settings_of(given, gpus, kafka, redis), folder)
        stack.callback(worker.end)
        made, jobs = Trial(worker, client, given), endless_jobs()
        await made.publish(jobs, given.backlog)
        worker.start()
        await stack.enter_async_context(beside(made.look(), made.keep_backlog(jobs)))
        row = {"gpus": gpus, **await measured_start(made)}
        if kill:
            row["kill"] = await measured_kill(made, row["jobs_per_s"])
    return row


async def measured_start(made: Trial) -> dict[str, Any]:
    """Return the seconds of the start and the steady speed."""
    began, given = made.worker.began, made.given
    ready = await made.worker.ready(given.timeout_s)
    first = await made.until("job done", lambda look: look.done > 0) - began
    every = await made.until("engine ready", lambda look: look.ready == look.replicas)
    await asyncio.sleep(WINDOW_S + given.steady_s)
    steady = made.progress.rate(every + WINDOW_S, every + WINDOW_S + given.steady_s)
    full = made.progress.full_speed_at(began, steady)
    return {
        "engines": made.progress.looks[-1].replicas,
        "ready_s": round(ready, 1),
        "first_job_s": round(first, 1),
        "all_engines_s": round(every - began, 1),
        "full_speed_s": round(full - began, 1) if full else None,
        "jobs_per_s": round(steady, 1),
        "import_s": import_of(made.worker.folder / f"{made.worker.name}.log"),
        "steps_s": steps_of(made.worker.folder / f"{made.worker.name}.log"),
    }


def import_of(log: Path) -> float | str | None:
    """Return the seconds of the fork server's start, or why there is none."""
    for line in log.read_text(errors="replace").splitlines():
        if '"fork_server_ready"' in line:
            return float(json.loads(line)["seconds"])
        if '"fork_server_unavailable"' in line:
            return str(json.loads(line)["reason"])
    return None


def steps_of(log: Path) -> dict[str, float]:
    """Return the seconds from the first replica's process until each step was first logged."""
    first: dict[str, float] = {}
    for line in log.read_text(errors="replace").splitlines():
        try:
            row = json.loads(line)
            name, at = row["event"], datetime.fromisoformat(row["timestamp"]).timestamp()
        except (ValueError, TypeError, KeyError):  # a line of another program
            continue
        if name in STEPS:
            first.setdefault(name, at)
    began = first.get(STEPS[0], 0.0)
    return {name: round(at - began, 1) for name, at in first.items() if name != STEPS[0]}


async def measured_kill(made: Trial, steady: float) -> dict[str, Any]:
    """Kill an engine; return the seconds until all are ready and until full speed."""
    restarts = made.progress.looks[-1].restarts
    killed, at = kill_engine(made.worker, made.given.kind), time.monotonic()
    back = await made.until(
        "engine back",
        lambda look: look.restarts > restarts and look.ready == look.replicas,
    )
    deadline = back + made.given.timeout_s
    # A window that ends soon after the kill still has the speed of before.
    while (full := made.progress.full_speed_at(back - WINDOW_S, steady)) is None:
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return {
        "killed": killed,
        "all_engines_s": round(back - at, 1),
        "full_speed_s": round(full - at, 1) if full else None,
        "others": round(made.progress.rate(at, back) / steady, 3) if steady else None,
    }


def kill_engine(worker: Worker, kind: str) -> str:
    """Kill the engine process of one replica, with the echo engine the replica; return its name."""
    if worker.process is None:
        raise RuntimeError("the worker is not started")
    below = psutil.Process(worker.process.pid).children(recursive=True)
    if kind == "vllm":
        found = engine_processes(worker.process.pid)
    else:
        found = [each for each in below if "replica" in " ".join(each.cmdline()).split()]
    if not found:
        names = ", ".join(each.name() for each in below)
        raise SystemExit(f"no engine to kill among the worker's processes: {names}")
    os.kill(found[0].pid, signal.SIGKILL)
    return f"{found[0].pid}"


def settings_of(given: argparse.Namespace, gpus: str, kafka: str, redis: str) -> dict[str, Any]:
    """Return the worker's settings by dotted name."""
    model = {"engine.model": given.model} if given.model else {}
    if given.services == "embedded":  # its rebalances last as long as the session timeout
        model["kafka.session_timeout_s"] = 6
    return {
        "kafka.bootstrap_servers": kafka,
        "redis.url": redis,
        "engine.kind": given.kind,
        "engine.profile": given.profile,
        **exact_lengths(given.exact_lengths),
        "engine.gpus": gpus,
        "kafka.dead_letter_topic": DEAD,
        "quality.level": "off",
        **model,
        **{f"engine.options.{name}": value for name, value in given.options.items()},
        **given.settings,
    }


def endless_jobs() -> Iterator[TranslationJob]:
    """Yield jobs of realistic lengths, each with an id of its own."""
    run = uuid4().hex[:8]
    for number in count():
        for job in mix(2_000, seed=number):
            named = {**job, "job_id": f"{run}-{number}-{job['job_id']}"}
            yield TranslationJob.model_validate(named)


@asynccontextmanager
async def beside(*tasks: Any) -> AsyncIterator[None]:
    """Run tasks inside the context, and cancel them at its end."""
    started = [asyncio.create_task(task) for task in tasks]
    try:
        yield
    finally:
        for task in started:
            task.cancel()
        failures = await asyncio.gather(*started, return_exceptions=True)
        for failure in failures:
            if isinstance(failure, Exception):
                print(f"a task beside the measurement failed: {failure!r}", flush=True)


@contextmanager
def empty_caches() -> Iterator[None]:
    """Give vLLM, Inductor and Triton empty cache folders inside the context."""
    before = {name: os.environ.get(name) for name in CACHES}
    with TemporaryDirectory() as folder:
        os.environ.update({name: f"{folder}/{name.lower()}" for name in CACHES})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


async def measure(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run one trial after another; return their rows."""
    rows = []
    for number, gpus in enumerate(given.gpus):
        last = number == len(given.gpus) - 1
        row = await trial(given, gpus, kill=last and given.kill)
        rows.append({"cold": given.cold and number == 0, **row})
        print("ROW " + json.dumps(rows[-1]), flush=True)
        if given.out:
            given.out.write_text(json.dumps(rows, indent=1) + "\n")
    if len(rows) > 1 and rows[0]["jobs_per_s"]:
        ratio = rows[-1]["jobs_per_s"] / rows[0]["jobs_per_s"]
        print(f"RATIO {given.gpus[-1]} to {given.gpus[0]}: {ratio:.3f}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--exact-lengths", action="store_true")
    parser.add_argument("--gpus", nargs="+", default=["all"])
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--kill", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--steady-s", type=float, default=20.0)
    parser.add_argument("--backlog", type=int, default=20_000)
    parser.add_argument("--services", choices=("real", "embedded"), default="embedded")
    parser.add_argument("--kind", choices=("vllm", "echo"), default="vllm")
    parser.add_argument("--timeout-s", type=float, default=600.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.cold:
        with empty_caches():
            asyncio.run(measure(given))
    else:
        asyncio.run(measure(given))


if __name__ == "__main__":
    main()
