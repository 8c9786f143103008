"""Comparison of the ways of feeding one engine: same jobs, same GPU, in turns.

usage: run.py PLAN.json --model DIR --out DIR [--jobs jobs.jsonl] [--seconds 500]
              [--services embedded|real] [--only NAME ...] [--phases NAME ...] [--scale 1.0]
              [--set SETTING=VALUE ...]

A plan has residents (engines that stay loaded, an idle one costs nothing), and phases: lists of
runs that take turns for so many rounds. Every run appends a row to OUT/rows.jsonl at once, and a
row that is there is not run again. After `--seconds` no run is begun that would not end in time.
Round r of every strategy gets the same jobs; the next round's have other words, so that no prefix
cache helps. `--scale` multiplies every number of jobs. `--set` gives every worker a setting that
its plan does not give, such as `engine.prefill_share=0`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # pipeline.py and its neighbours

from one_run import Runner, Spec, rounds_of
from pinning import pin
from pipeline import services
from residents import (
    KINDS,
    SPAWN,
    Dragoman,
    Resident,
    Serve,
    Setting,
    StartFailed,
    engines_of,
    topics_of,
)
from summary import summary

LEAST_S = 15  # no use of an engine that is ready later
KEY = ("strategy", "model", "lengths", "run")


class OutOfTime(Exception):
    """Raised when the next run would not finish in time."""


class Bench:
    """Residents, rows and clock of one call."""

    def __init__(self, given: argparse.Namespace, plan: Spec, setting: Setting, pids: Any) -> None:
        self._given, self._plan, self._setting = given, plan, setting
        self._runner = Runner(given, plan, setting, pids)
        self._residents: dict[str, Resident] = {}
        self._rows_file = given.out / "rows.jsonl"
        self._rows = _read_rows(self._rows_file)
        self._took: dict[str, float] = {}
        self._failed: set[str] = set()

    # --- phases -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run every phase in turn, until the time is up."""
        try:
            for phase in self._plan["phases"]:
                if not self._given.phases or phase["name"] in self._given.phases:
                    await self._phase(phase)
        except OutOfTime as why:
            _say(f"time is up: {why}")
        finally:
            self._stop(list(self._residents))
            self._runner.close()
            print(self._write_summary(), flush=True)

    async def _phase(self, phase: Spec) -> None:
        runs = [spec for spec in phase["runs"] if self._wanted(spec)]
        if all(self._done(spec, number) for spec in runs for number in rounds_of(phase, spec)):
            return
        self._stop(phase.get("stop", []))
        await self._start({name for spec in runs for name in spec.get("on", [])}, phase)
        for number in sorted({number for spec in runs for number in rounds_of(phase, spec)}):
            forward = number % 2 == 0 or phase.get("keep_order", False)
            ordered = runs if forward else runs[::-1]
            for spec in ordered:
                if number in rounds_of(phase, spec) and not self._done(spec, number):
                    await self._tried(spec, number)
            self._write_summary()
        for name in phase.get("kill", []):
            await self._killed(name)

    async def _killed(self, name: str) -> None:
        """Kill one engine of a worker, and report the seconds until it works again."""
        resident = self._residents.get(name)
        if not isinstance(resident, Dragoman):
            return
        self._in_time(LEAST_S, f"a killed engine of {name}")
        began, working = time.time(), resident.working
        resident.kill_engine()
        while resident.working == working:
            self._in_time(0, f"a killed engine of {name}")
            await asyncio.sleep(0.1)
        line = {"resident": name, "model": self._plan["name"], "back_s": time.time() - began}
        print("KILL " + json.dumps(line), flush=True)
        with (self._given.out / "kills.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _wanted(self, spec: Spec) -> bool:
        return not self._given.only or spec["strategy"] in self._given.only

    # --- residents --------------------------------------------------------------------------------

    async def _start(self, names: set[str], phase: Spec) -> None:
        """Load missing residents: together, or the first alone so that it fills the caches.

        Workers whose engine is another resident's server start once that is ready. A phase's `load`
        names what later phases need too. What fails to start fails its own runs.
        """
        specs = self._plan["residents"]
        wanted = {*names, *phase.get("load", [])} & self._used()
        wanted |= {server for name in wanted for server in specs[name].get("servers", [])}
        wanted -= {*self._residents, *self._failed}
        missing = [name for name in specs if name in wanted]
        if not missing:
            return
        self._in_time(phase.get("start_s", 30), "loading " + ", ".join(missing))
        own = [name for name in missing if "servers" not in specs[name]]
        served = [name for name in missing if "servers" in specs[name]]
        alone = 1 if self._plan.get("first_alone") else len(own)
        for group in (own[:alone], own[alone:], served):
            started = [resident for name in group if (resident := self._launched(name))]
            await asyncio.to_thread(self._runner.prepare)
            await self._until_ready(started)
        for name in missing:
            if name in self._residents:
                await self._warmed(name)
                self._pin(name)

    def _launched(self, name: str) -> Resident | None:
        try:
            self._residents[name] = resident = self._resident(name)
        except StartFailed as why:
            self._fail(name, str(why))
            return None
        resident.start()
        return resident

    def _pin(self, name: str) -> None:
        """Give a resident's engines a core each of their own, if the plan says so."""
        if self._plan["residents"][name].get("pinned") and name in self._residents:
            cpus = pin(engines_of(self._residents[name]))
            _say(f"the engines of {name} have the CPUs {[sorted(each) for each in cpus]}")

    def _used(self) -> set[str]:
        """Return the residents of the runs that `--phases` and `--only` leave."""
        return {
            name
            for phase in self._plan["phases"]
            if not self._given.phases or phase["name"] in self._given.phases
            for spec in phase["runs"]
            if self._wanted(spec)
            for name in spec.get("on", [])
        }

    def _resident(self, name: str) -> Resident:
        spec = self._plan["residents"][name]
        options = {**self._plan["options"], **spec.get("options", {})}
        resident = KINDS[spec["kind"]](name, self._setting, options)
        resident.gpus = spec.get("gpus")
        if isinstance(resident, Dragoman):
            resident.replicas = spec.get("replicas", 1)
            resident.supervised = spec.get("supervised", resident.replicas == 1)
            for_all = dict(text.split("=", 1) for text in self._given.set)
            resident.settings = {**for_all, **spec.get("settings", {})}
            resident.tree = Path(spec["tree"]) if "tree" in spec else None
            resident.servers = [self._server(each) for each in spec.get("servers", [])]
        return resident

    def _server(self, name: str) -> Serve:
        server = self._residents.get(name)
        if not isinstance(server, Serve):
            raise StartFailed(f"{name} is not a server that runs")
        return server

    async def _until_ready(self, loading: list[Resident]) -> None:
        while loading:
            self._in_time(LEAST_S, "loading")
            loading = [resident for resident in loading if self._still_loads(resident)]
            await asyncio.sleep(0.1)

    def _still_loads(self, resident: Resident) -> bool:
        try:
            if not resident.ready():
                return True
        except StartFailed as why:
            self._fail(resident.name, str(why))
            return False
        _say(f"{resident.name} is ready after {time.time() - resident.started:.1f} s")
        return False

    def _fail(self, name: str, why: str) -> None:
        _say(f"FAILED {name}: {why}")
        self._failed.add(name)
        self._stop([name])

    async def _warmed(self, name: str) -> None:
        try:
            await self._runner.warm(self._residents[name])
        except Exception as error:  # noqa: BLE001  it is this resident's alone
            self._fail(name, f"{type(error).__name__}: {error}")

    def _stop(self, names: list[str]) -> None:
        for name in names:
            if resident := self._residents.pop(name, None):
                resident.stop()

    # --- one run ----------------------------------------------------------------------------------

    async def _tried(self, spec: Spec, number: int) -> None:
        """Run once; report a failure and let the others go on."""
        if gone := {*spec.get("on", [])} - {*self._residents}:
            _say(f"left out: {spec['strategy']} needs {', '.join(sorted(gone))}")
            return
        try:
            await self._one(spec, number)
        except OutOfTime:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is this run's alone
            _say(f"FAILED {spec['strategy']}: {type(error).__name__}: {error}")

    async def _one(self, spec: Spec, number: int) -> None:
        name = spec["strategy"]
        about_s: float = spec.get("about_s", 20)
        self._in_time(self._took.get(name, about_s), name)
        began = time.time()
        residents = [self._residents[name] for name in spec.get("on", [])]
        row = await self._runner.row(spec, residents, number)
        self._took[name] = time.time() - began
        self._keep(row)

    # --- rows -------------------------------------------------------------------------------------

    def _done(self, spec: Spec, number: int) -> bool:
        key = (spec["strategy"], self._plan["name"], spec["lengths"], number)
        return any(tuple(row[name] for name in KEY) == key for row in self._rows)

    def _keep(self, row: Spec) -> None:
        self._rows.append(row)
        with self._rows_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        short = {name: value for name, value in row.items() if name != "gpu_series"}
        short["settings"] = {k: v for k, v in row["settings"].items() if k != "engines"}
        print("ROW " + json.dumps(short), flush=True)

    def _write_summary(self) -> str:
        text = summary(self._rows)
        (self._given.out / "summary.md").write_text(text, encoding="utf-8")
        return text

    def _in_time(self, needed_s: float, what: str) -> None:
        left = self._given.seconds - (time.time() - self._given.begun)
        if needed_s > left:
            raise OutOfTime(f"{what} needs {needed_s:.0f} s, {left:.0f} s are left")


def _read_rows(file: Path) -> list[Spec]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def _prepare_environment() -> None:
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB, as the worker sets it on CPUs


async def _main(given: argparse.Namespace, plan: Spec) -> None:
    main_task = asyncio.current_task()
    if main_task is not None:  # a stop request terminates the residents too
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, main_task.cancel)
    topics = [
        topic
        for name, spec in plan["residents"].items()
        if spec["kind"] == "dragoman"
        for topic in topics_of(name, spec.get("replicas", 1))
    ]
    async with AsyncExitStack() as stack:
        kafka, redis, pids = "", "", dict[str, int]()
        if topics:
            entered = services(given.services, topics)
            kafka, redis, pids = await stack.enter_async_context(entered)
        folder = given.work or given.out / "work"
        folder.mkdir(parents=True, exist_ok=True)
        queues = SPAWN.Queue(), SPAWN.Queue()
        setting = Setting(
            given.model, plan["profile"], plan["exact_lengths"], folder, kafka, redis, *queues
        )
        await Bench(given, plan, setting, pids).run()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="where logs and requests go, if not in --out")
    parser.add_argument("--jobs", type=Path)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--begun", type=float, default=time.time(), help="a time(): the clock's 0")
    parser.add_argument("--services", choices=("real", "embedded"), default="embedded")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--phases", nargs="*")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    given = parser.parse_args()
    given.run_id = f"{time.time():.0f}"
    given.out.mkdir(parents=True, exist_ok=True)
    _prepare_environment()
    try:
        asyncio.run(_main(given, json.loads(given.plan.read_text(encoding="utf-8"))))
    except asyncio.CancelledError:
        raise SystemExit("stopped by a signal") from None


if __name__ == "__main__":
    main()
