"""Many storms in a row: `make chaos ARGS="--seeds 1-30"` prints the table.

All storms of a call share three brokers; topic, group and Redis are new for each. One row per storm
is appended to `--table` as a JSON line. Exit status 1 if a storm broke a guarantee. On SIGTERM and
Ctrl-C it first repairs all faults and stops all processes, which takes a while.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from support.chaos.brokers import Brokers
from support.chaos.plan import Action
from support.chaos.row import Row
from support.chaos.served import ServedDragoman
from support.chaos.silent_faults import SilentDragoman
from support.chaos.storm import Options, storm
from support.chaos.system import Dragoman
from support.processes.unwinding import unwind_on_sigterm

_COLUMNS = (
    "seed", "records", "jobs", "seconds", "kills", "stops", "drains", "joins", "broker_blows",
    "moves", "redis_outages", "server_blows", "idle", "skipped", "failed", "own_deaths",
    "struck_in_flight", "redeliveries", "duplicate_computations", "duplicate_letters", "lost",
    "wrong", "condemned",
    "changed", "beyond", "uncommitted", "immortal", "slow", "still", "untold", "audit",
    "rest_s", "cached",
)  # fmt: skip
_SHORT = {
    "broker_blows": "broker", "redis_outages": "redis", "server_blows": "server",
    "own_deaths": "died",
    "struck_in_flight": "struck", "redeliveries": "redel", "duplicate_computations": "dup",
    "duplicate_letters": "dupdl", "condemned": "condem", "uncommitted": "uncom",
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the storms."""
    unwind_on_sigterm()
    options = _parser().parse_args(arguments)
    only, mix = (
        tuple(part.strip() for part in words.split(",") if part.strip())
        for words in (options.only, options.mix)
    )
    options.out.mkdir(parents=True, exist_ok=True)
    table = options.table or options.out / "table.jsonl"
    kind = SilentDragoman if options.silent else Dragoman
    kind = ServedDragoman if options.served else kind
    system = kind(package_path=options.package_path, mixed=options.mixed, trust=options.trust)
    jobs = round(options.minutes * 60 * options.rate) if options.minutes else options.jobs
    broken = 0
    rows: list[Row] = []
    with Brokers() as brokers:
        _say(_line(_SHORT.get(name, name) for name in _COLUMNS))
        for seed in _seeds(options.seeds):
            row = storm(
                brokers,
                system,
                Options(
                    seed=seed,
                    jobs=jobs,
                    rate=options.rate,
                    latency_s=options.latency,
                    partitions=options.partitions,
                    workers=options.workers,
                    only=only,
                    spared=("w0",) if options.minutes else (),
                    replay=options.replay,
                    mix=mix,
                    trust=options.trust,
                    documents=options.mixed,
                    silent=options.silent,
                    served=options.served,
                    loud=options.loud,
                    folder=options.out / f"seed-{seed}",
                ),
            )
            rows.append(row)
            with table.open("a", encoding="utf-8") as file:
                file.write(row.as_json() + "\n")
            _say(_line(getattr(row, name) for name in _COLUMNS))
            for trend in row.trends:
                _say(f"  {trend}")
            if row.broken:
                broken += 1
                _say("\n".join(row.problems))
    _say(_line("all" if name == "seed" else _sum(rows, name) for name in _COLUMNS))
    _say(f"{len(rows)} storms, {broken} of them broke a guarantee; rows in {table}")
    return 1 if broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests/chaos/run.py", description=__doc__)
    parser.add_argument("--seeds", default="1", help="such as 7, 1-30 or 1,4,9")
    parser.add_argument("--jobs", type=int, default=6_000, help="records per storm")
    parser.add_argument(
        "--minutes", type=float, help="a soak of this length; w0 is observed and never killed"
    )
    parser.add_argument("--rate", type=float, default=150.0, help="records per second")
    parser.add_argument("--latency", type=float, default=0.6, help="mean seconds per job")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument(
        "--only", default="", help=f"only these actions, separated by commas: {', '.join(Action)}"
    )
    parser.add_argument("--mix", default="odd,poison", help="additional records; '' for none")
    parser.add_argument(
        "--trust", action="store_true", help="texts that repeat; gates, memory and coalescing on"
    )
    parser.add_argument(
        "--silent",
        action="store_true",
        help="faults that a probe does not see by itself: of logs, replies, tasks and the engine",
    )
    parser.add_argument(
        "--served",
        action="store_true",
        help="the engine is a server of OpenAI's API, which is killed and stopped too",
    )
    parser.add_argument("--replay", type=Path, help="a timeline whose faults are repeated")
    parser.add_argument("--package-path", type=Path, help="precedes the workers' packages")
    parser.add_argument(
        "--mixed", action="store_true", help="only of every second worker: an upgrade half-way"
    )
    parser.add_argument("--out", type=Path, default=Path(".cache/chaos"), help="timelines, logs")
    parser.add_argument("--table", type=Path, help="JSON lines; default OUT/table.jsonl")
    parser.add_argument("--loud", action="store_true", help="print the timeline as it happens")
    return parser


def _seeds(words: str) -> Iterable[int]:
    for part in words.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _sum(rows: list[Row], name: str) -> float:
    return round(sum(getattr(row, name) or 0 for row in rows), 1)


def _line(values: Iterable[object]) -> str:
    return " ".join(f"{value!s:>7}" for value in values)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
