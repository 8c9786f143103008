"""One run of a strategy: its jobs, its driver and its measurements."""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import documents
import drivers
import measure
from residents import KINDS, Dragoman, Resident, Serve, Setting, engine_of, replica_pid
from summary import BASE
from work import Batch, Work

Spec = dict[str, Any]
WARM_UP = 99  # a round that no plan has
DOCUMENTS = "documents"
"""Lengths of runs over folders of documents."""


class Runner:
    """Runner of a plan's runs; `pids` are the processes to watch beside the residents, by name."""

    def __init__(
        self, given: argparse.Namespace, plan: Spec, setting: Setting, pids: Mapping[str, int]
    ) -> None:
        self._given, self._plan, self._setting = given, plan, setting
        self._pids: dict[str, list[int]] = {name: [pid] for name, pid in pids.items()}
        self._work = Work(
            given.model,
            plan["profile"],
            exact=plan["exact_lengths"],
            jobs=given.jobs,
            folder=setting.folder,
        )
        self._folder = setting.folder
        specs = plan["residents"].values()
        self._gpu = {
            gpus: measure.GpuBusy(gpus) for gpus in [None, *(s.get("gpus") for s in specs)]
        }
        for gpu in self._gpu.values():
            gpu.start()

    def close(self) -> None:
        for gpu in self._gpu.values():
            gpu.stop()

    # --- jobs -------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Plan every round's jobs while engines load: the GPU need not wait for that."""
        self._batch("variable", WARM_UP, self._plan.get("warm_up_jobs", 64))
        for phase in self._plan["phases"]:
            for spec in phase["runs"]:
                for number in rounds_of(phase, spec):
                    if spec["lengths"] == DOCUMENTS:  # made by the command, in its run
                        continue
                    self._batch(spec["lengths"], number, self._count(spec))

    def _count(self, spec: Spec) -> int:
        jobs: float = spec["jobs"] * self._given.scale
        return max(1, round(jobs))

    def _batch(self, lengths: str, number: int, jobs: int) -> Batch:
        """Return a prefix of the round's jobs: the longest one is made once."""
        specs = [spec for phase in self._plan["phases"] for spec in phase["runs"]]
        same = [spec["jobs"] for spec in specs if spec["lengths"] == lengths] or [jobs]
        most = jobs if number == WARM_UP else max(jobs, round(max(same) * self._given.scale))
        return self._work.batch(lengths, number, most)

    # --- runs -------------------------------------------------------------------------------------

    async def warm(self, resident: Resident) -> None:
        """Run a few jobs of no round, so that the first round carries no start-up cost."""
        count = self._plan.get("warm_up_jobs", 64)
        for how in ("http", "dragoman", "generate", "in-flight"):
            if _takes(resident, how):
                spec = {"how": how, "jobs": count, "in_flight": count, "lengths": "variable"}
                await self._report(
                    spec, [resident], self._batch("variable", WARM_UP, count), "warm-up"
                )

    async def row(self, spec: Spec, residents: list[Resident], number: int) -> Spec:
        """Run and measure round `number` of a strategy."""
        jobs = self._count(spec)
        if spec["lengths"] == DOCUMENTS:
            return await self._of_documents({**spec, "jobs": jobs}, residents, number)
        batch = self._batch(spec["lengths"], number, jobs)
        for resident in residents:
            if isinstance(resident, Dragoman):
                resident.active = spec.get("active", len(resident.topics))
        return await self._measured({**spec, "jobs": jobs}, residents, batch, number)

    async def _of_documents(self, spec: Spec, residents: list[Resident], number: int) -> Spec:
        """Run the command on a folder, or `LLM.generate` on the segments that it published."""
        if isinstance(residents[0], Dragoman):
            return await self._measured(spec, residents, Batch([], [], self._folder), number)
        batch = await asyncio.to_thread(documents.segments, self._work, self._folder, number)
        row = await self._measured({**spec, "jobs": len(batch.requests)}, residents, batch, number)
        row["jobs_per_s"] *= spec["jobs"] / len(batch.requests)  # documents, not segments
        return {**row, "segments": len(batch.requests)}

    async def _measured(
        self, spec: Spec, residents: list[Resident], batch: Batch, number: int
    ) -> Spec:
        pids = {
            **self._pids,
            **{resident.name: resident.pids for resident in residents},
            **{f"{r.name}.client": r.client.pids for r in residents if isinstance(r, Serve)},
            "driver": [],
        }
        before, own = measure.cpu_now(pids), time.process_time()
        with self._profiled(spec, residents, number), _killed_later(spec, residents):
            report = await self._report(spec, residents, batch, f"{self._given.run_id}-{number}")
        after, own = measure.cpu_now(pids), time.process_time() - own
        start, end = report.pop("start"), report.pop("end")
        gpu = self._gpu[residents[0].gpus if residents else None]
        report |= {"prompt_tokens": batch.prompt_tokens(spec["jobs"]), "jobs": spec["jobs"]}
        figures = measure.row_figures({**report, "start": start, "end": end})
        spare = {"latencies", "tokens", "prompt_tokens", "jobs"}
        return {
            "strategy": spec["strategy"],
            "model": self._plan["name"],
            "lengths": spec["lengths"],
            "run": number,
            "base": spec.get("base", BASE),
            **figures,
            "gpu_busy": gpu.between(start, end),
            "cpu_cores": {
                **measure.cpu_cores(before, after, end - start),
                "driver": round(own / (end - start), 3),
            },
            "settings": self._settings(spec, residents),
            **{name: value for name, value in report.items() if name not in spare},
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "gpu_series": measure.series(gpu, start, end),
        }

    @contextmanager
    def _profiled(self, spec: Spec, residents: list[Resident], number: int) -> Iterator[None]:
        """Sample the threads of a process by py-spy, if the run asks for it.

        `profile` is "loop" for a worker's first replica, "engine" for vLLM's first engine process.
        """
        place = spec.get("profile")
        if place is None:
            yield
            return
        first = residents[0]
        pid = engine_of(first).pid if place == "engine" else replica_pid(first)
        file = self._given.out / f"profile-{place}-{first.name}-{number}.raw"
        argv = ["py-spy", "record", "--format", "raw", "--threads", "--nolineno"]
        argv += ["--rate", "100", "--pid", str(pid), "--output", str(file)]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)  # it writes its file then
            process.wait()

    def _settings(self, spec: Spec, residents: list[Resident]) -> Spec:
        named = {r.name: {**r.options, **_replicas(r)} for r in residents}
        asked = {
            k: v
            for k, v in spec.items()
            if k not in {"strategy", "lengths", "about_s", "on", "base"}
        }
        return {**asked, "engines": named}

    async def _report(
        self, spec: Spec, residents: list[Resident], batch: Batch, tag: str
    ) -> dict[str, Any]:
        """Return the report of the strategy's driver."""
        how = spec["how"]
        first = residents[0] if residents else None
        if how == "documents" and isinstance(first, Dragoman):
            number = int(tag.rpartition("-")[2])
            return await documents.translated(first, self._folder, spec, number)
        if how == "dragoman" and isinstance(first, Dragoman):
            return await drivers.through_dragoman(
                first, batch, spec, _as_id(f"{tag}-{spec.get('strategy', 'all')}-{spec['lengths']}")
            )
        if how == "http" and isinstance(first, Serve):
            return await asyncio.to_thread(drivers.over_http, first, batch, spec)
        if how == "run-batch":
            given = {**spec, "options": {**self._plan["options"], **spec.get("options", {})}}
            place = (self._setting.model, self._setting.folder)
            report, load_s = await asyncio.to_thread(
                drivers.run_batch, self._work, batch, given, *place
            )
            return {**report, "load_s": load_s}
        workers = drivers.children_of(residents)
        if how == "queue":
            return await asyncio.to_thread(drivers.behind_a_queue, workers, batch, spec)
        return await asyncio.to_thread(drivers.timed_by_child, workers[0], how, batch, spec)


@contextmanager
def _killed_later(spec: Spec, residents: list[Resident]) -> Iterator[None]:
    """Kill the first engine of a worker `kill_after_s` seconds into the run, if it asks for it."""
    first = residents[0] if residents else None
    if "kill_after_s" not in spec or not isinstance(first, Dragoman):
        yield
        return
    later = asyncio.get_running_loop().call_later(spec["kill_after_s"], first.kill_engine)
    try:
        yield
    finally:
        later.cancel()


def rounds_of(phase: Spec, spec: Spec) -> range:
    """Return the numbers of a run's rounds: `rounds` of them, from `first_round` on."""
    given = {"rounds": 1, "first_round": 0, **phase, **spec}
    return range(given["first_round"], given["first_round"] + given["rounds"])


def _takes(resident: Resident, how: str) -> bool:
    kinds = {"llm": "generate", "async": "in-flight", "serve": "http", "dragoman": "dragoman"}
    return any(isinstance(resident, KINDS[kind]) for kind, takes in kinds.items() if takes == how)


def _replicas(resident: Resident) -> Spec:
    if not isinstance(resident, Dragoman):
        return {}
    return {
        "replicas": resident.replicas if resident.supervised else resident.active,
        "supervised": resident.supervised,
        "settings": dict(resident.settings),
    }


def _as_id(words: str) -> str:
    """Return a strategy's name in the characters of a job id."""
    return re.sub(r"[^A-Za-z0-9._:-]+", "-", words)
