"""Losses of other programs under the timeline that Dragoman is tested with.

usage: compare.py --python VENV/bin/python [--seeds 1,2] [--jobs 6000] [--rate 100]
       [--systems dragoman,faststream-partitions,...] [--out rows.jsonl]

Every system gets the same load, the same disturbances at the same times, as many workers, and
three real brokers and a Redis of its own; the ledger of tests/support/chaos judges all of them.
VENV has requirements.txt. Nothing here runs in CI: a loss is a figure, not a failure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.chaos.brokers import Brokers
from support.chaos.foreign_system import Foreign, ForeignWorker
from support.chaos.storm import Options, Row, storm
from support.chaos.system import TERMINAL, Dragoman, End, Place, System

HERE = Path(__file__).parent
WIDTH = 256
"""Most jobs in flight per worker: what the echo engine admits."""


class Ours(Dragoman):
    """`dragoman-worker` on the load that all programs understand."""

    @property
    def kinds(self) -> frozenset[str]:
        return Foreign.kinds


class Program(Foreign):
    """One of the programs beside this file; it counts how often a job was computed."""

    def worker(self, place: Place, name: str) -> ForeignWorker:
        """Return a worker whose SIGKILL reaches all its processes, as with `dragoman-worker run`.

        taskiq runs tasks in children of its command, which would survive.
        """
        made = super().worker(place, name)
        kill = made.kill
        made.kill = lambda **_: kill(everything=True)
        return made

    def ends(self, client: redis.Redis, job_ids: Sequence[str]) -> list[End | None]:
        pipeline = client.pipeline(transaction=False)
        for job_id in job_ids:
            pipeline.hmget(f"dragoman:job:{job_id}", "status", "text", "runs")
        return [_end(*fields) for fields in pipeline.execute()]


def _end(status: bytes | None, text: bytes | None, runs: bytes | None) -> End | None:
    if status is None or status.decode() not in TERMINAL:
        return None
    stored = None if text is None else text.decode()
    return End(status.decode(), stored, None, seen=(status, text), deliveries=int(runs or 1))


def systems(python: str, workers: int) -> dict[str, Callable[[], System]]:
    """Return each system by its name; `python` is the interpreter with the packages."""

    def faststream(mode: str) -> Callable[[], System]:
        def argv(place: Place) -> list[str]:
            # Its documentation: as many consumers in all as there are partitions.
            width = -(-place.partitions // workers) if mode == "partitions" else WIDTH
            return [python, str(HERE / "faststream_program.py"), mode, str(width)]

        return lambda: Program(f"faststream-{mode}", argv)

    taskiq = [python, "-m", "taskiq", "worker", "taskiq_program:broker", "--app-dir", str(HERE)]
    taskiq += ["--workers", "1", "--ack-type", "when_saved", "--max-async-tasks", str(WIDTH)]
    return {
        "dragoman": Ours,
        "faststream-partitions": faststream("partitions"),
        "faststream-batches": faststream("batches"),
        "taskiq": lambda: Program("taskiq", lambda _: taskiq),
        "bare": lambda: Program("bare", lambda _: [python, str(HERE / "bare_program.py")]),
    }


@dataclass(slots=True)
class Account:
    """One system over all seeds. `unfinished`: records not committed when the wait was over."""

    storms: int = 0
    acknowledged: int = 0
    lost: int = 0
    wrong: int = 0
    changed: int = 0
    committed_early: int = 0
    computed_again: int = 0
    unfinished: int = 0
    blows: int = 0
    own_deaths: int = 0
    seconds: float = 0.0

    def add(self, row: Row) -> None:
        unfinished = max(0, row.uncommitted)
        self.storms += 1
        self.acknowledged += row.records
        # A job without an end whose record is not committed will be done some day: it is not lost.
        self.lost += max(0, row.lost - unfinished)
        self.wrong += row.wrong
        self.changed += row.changed
        self.committed_early += row.beyond
        self.computed_again += row.duplicate_computations
        self.unfinished += unfinished
        self.blows += row.kills + row.stops + row.drains + row.joins
        self.blows += row.broker_blows + row.moves + row.redis_outages
        self.own_deaths += row.own_deaths
        self.seconds += row.seconds


def table(accounts: dict[str, Account]) -> str:
    """Return the table in Markdown."""
    names = Account.__slots__
    heads = [name.replace("_", " ") for name in names]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for system, account in accounts.items():
        cells = [f"{getattr(account, name):,.0f}" for name in names]
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=str(HERE / ".venv" / "bin" / "python"))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--jobs", type=int, default=6_000)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--latency-s", type=float, default=0.45)
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--systems")
    parser.add_argument("--logs", type=Path, help="Where timelines and logs stay.")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    known = systems(given.python, given.workers)
    chosen = given.systems.split(",") if given.systems else list(known)
    accounts = {name: Account() for name in chosen}
    with Brokers() as brokers:
        for seed in map(int, given.seeds.split(",")):
            for name in chosen:
                options = Options(
                    seed=seed,
                    jobs=given.jobs,
                    rate=given.rate,
                    latency_s=given.latency_s,
                    partitions=given.partitions,
                    workers=given.workers,
                    folder=given.logs / f"{name}-{seed}" if given.logs else None,
                )
                row = storm(brokers, known[name](), options)
                accounts[name].add(row)
                print(row.as_json() if given.logs else name, flush=True)
                if given.out:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(row.as_json() + "\n")
                print(table(accounts), flush=True)


if __name__ == "__main__":
    main()
