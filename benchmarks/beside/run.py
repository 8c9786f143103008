"""Compare the speed of the present tree with that of another commit, in one run.

usage: make speed-beside COMMIT=sha [ROUNDS=3] [JOBS=30000] [ARGS="--json --formats md,html"]

Both sides are driven by their commands, on the same Kafka and Redis, with fresh topics and an empty
Redis each time. They take turns, and the side that begins changes with every round. Measured are:

- Jobs of one text, then an eighth as many jobs of 64 texts, all published before the worker starts,
  with the echo engine and quality off. The rate comes from the times at which jobs ended, without
  the first third and the last hundredth; CPU is that of the worker's processes in that time.
- `dragoman translate` over a fixed set of documents. Their texts repeat, so the time goes into
  reading and writing, not into jobs: a slower codec shows. CPU is that of the command and its
  children, with their start (about 1 s).

Other work on the machine hits both sides of a round. It disturbs CPU less than the rates.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import documents
import measures
import sides
import table
from documents import Documents
from measures import Services
from sides import Side

_PER_ITEMS_JOB = 8
"""Jobs of one text that take about as long as one of 64."""


def main() -> None:
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends services, removes the worktree
    for name in [each for each in os.environ if each.startswith("DRAGOMAN_")] + ["PYTHONPATH"]:
        os.environ.pop(name, None)  # both sides would read it
    began = time.monotonic()
    with sides.both(given.commit) as (this, that), TemporaryDirectory() as name:
        rounds = _measured((this, that), given, Path(name))
    rows = table.rows(rounds)
    if given.json:
        named = {"this": this.commit, "changed": this.changed, "that": that.commit}
        print(json.dumps({"commits": named, "rows": rows, "rounds": rounds}))
        return
    print(f"\n{table.markdown(rows)}\n")
    print(f"{len(rounds)} rounds, {time.monotonic() - began:.0f} s; median (least-greatest)")
    print(f"this: {this.commit}{' and changes that are not committed' * this.changed}")
    print(f"that: {that.commit}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commit", help="commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=30_000, help="jobs of one text")
    parser.add_argument("--megabytes", type=float, default=16.0, help="of documents")
    parser.add_argument("--formats", default="", help=",".join(documents.FORMATS))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    given.formats = [name for name in given.formats.split(",") if name]
    if unknown := [name for name in given.formats if name not in documents.FORMATS]:
        parser.error(
            f"--formats: {unknown[0]!r} is not valid; choose {', '.join(documents.FORMATS)}"
        )
    if given.rounds < 1 or given.jobs < 1000 or given.megabytes <= 0:
        parser.error("give at least one round, 1000 jobs and some documents")
    return given


def _measured(
    both: tuple[Side, Side], given: argparse.Namespace, folder: Path
) -> list[dict[str, dict[str, float]]]:
    """Return per round what was measured of each side."""
    few = documents.written(folder / "few", 0.1, given.formats)
    many = documents.written(folder / "many", given.megabytes, given.formats)
    rounds = []
    with measures.services() as use:
        for side in both:  # compiles its modules, and fails early where a command does not work
            with TemporaryDirectory() as name:
                measures.documents(side, use, few, Path(name))
        for number in range(given.rounds):
            order = both if number % 2 == 0 else both[::-1]
            rounds.append({each.name: _of(each, use, given.jobs, many) for each in order})
            _tell(number, rounds[-1])
    return rounds


def _of(side: Side, use: Services, jobs: int, source: Documents) -> dict[str, float]:
    """Return all measures of a side in one round."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        found = measures.jobs(side, use, jobs, folder)
        found |= measures.items(side, use, max(100, jobs // _PER_ITEMS_JOB), folder)
        found |= measures.documents(side, use, source, folder)
    return found


def _tell(number: int, found: Mapping[str, Mapping[str, float]]) -> None:
    for name, values in found.items():
        line = ", ".join(f"{value:,.4g} {measure}" for measure, value in values.items())
        print(f"round {number + 1}, {name}: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
