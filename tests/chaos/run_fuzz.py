"""Fuzzer: random records beside bystanders on a live worker, round after round.

`make fuzz ARGS="--minutes 60 --seed 7 --out fuzz.md"`. After every round each bystander must be
completed, each record must have its end, nothing may have restarted or stalled, and memory must be
flat. A round that fails is narrowed down to one record, which is kept in a file for `--replay`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from support.odd.cases import Case
from support.odd.field import Field, Round
from support.odd.kept import keep, kept
from support.odd.random_records import Draws
from support.odd.shrinking import smallest
from support.odd.table import line_of, markdown, say, summary
from support.processes.unwinding import unwind_on_sigterm
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

_REPORT_EVERY = 20
_GROWTH = 1.25
_GROWTH_MIB = 64
_SAMPLES = 12


class Fuzzer:
    """One run: its workers one after another, the rounds and the failures."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self.rounds: list[Round] = []
        self.failed: list[Round] = []
        self.records = 0

    def run(self, kafka: KafkaBroker, server: RedisServer) -> None:
        """Run rounds until the time is over or too many have failed."""
        draws = Draws(self._options.seed)
        until = time.monotonic() + 60 * self._options.minutes
        while time.monotonic() < until and len(self.failed) < self._options.failures:
            with self.field(kafka, server) as field:
                memory: list[int] = []
                cases = self._well(field, draws, until, memory)
                self._judge_memory(memory)
            if cases is not None:
                self._narrow(kafka, server, cases)

    def replay(self, kafka: KafkaBroker, server: RedisServer, cases: list[Case]) -> None:
        """Run one round of kept cases."""
        with self.field(kafka, server) as field:
            self._round(field, "replayed", cases)

    def field(self, kafka: KafkaBroker, server: RedisServer) -> Field:
        """Return a new topic and worker."""
        return Field(kafka, server, self._folder, package_path=self._options.package_path)

    def _well(
        self, field: Field, draws: Draws, until: float, memory: list[int]
    ) -> list[Case] | None:
        """Run rounds until one fails; return its cases."""
        while time.monotonic() < until:
            cases = draws.cases(self._options.records)
            row = self._round(field, f"round {len(self.rounds) + 1}", cases)
            memory.append(row.peak_mib)
            if row.problems:
                return cases
        return None

    def _round(self, field: Field, name: str, cases: Sequence[Case]) -> Round:
        row = field.run(name, *cases)
        row.judge(by_clock=self._options.by_clock)
        self.rounds.append(row)
        self.records += row.records
        if row.problems:
            self.failed.append(row)
        if row.problems or len(self.rounds) % _REPORT_EVERY == 0:
            say(f"{self.records} records; {line_of(row)}")
        return row

    def _judge_memory(self, memory: list[int]) -> None:
        if len(memory) < 4 * _SAMPLES:
            return
        early, late = median(memory[_SAMPLES : 2 * _SAMPLES]), median(memory[-_SAMPLES:])
        if late > early * _GROWTH + _GROWTH_MIB:
            row = self.rounds[-1]
            row.problems.append(f"peak memory grew from {early} to {late} MiB")
            self.failed.append(row)

    def _narrow(self, kafka: KafkaBroker, server: RedisServer, cases: list[Case]) -> None:
        number = len(self.failed)
        file = self._options.keep / f"fuzz-{self._options.seed}-{number}.json"
        about = {"seed": self._options.seed, "problems": self.failed[-1].problems}
        keep(file, cases, **about)
        say(f"kept in {file}; looking for the smallest record")

        def fails(some: Sequence[Case]) -> bool:
            with self.field(kafka, server) as field:
                row = field.run("narrowing", *some)
                row.judge(by_clock=self._options.by_clock)
                return bool(row.problems)

        found = smallest(cases, fails)
        keep(file, found, **about)
        sizes = [len(one.value or b"") for case in found for one in case.records]
        say(f"fails with {len(sizes)} records of {sizes} bytes: --replay {file}")


def main(arguments: list[str]) -> int:
    """Run the fuzzer."""
    unwind_on_sigterm()
    options = _parser().parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as folder,
        KafkaBroker() as kafka,
        RedisServer() as server,
    ):
        fuzzer = Fuzzer(options, Path(folder))
        if options.replay is None:
            fuzzer.run(kafka, server)
        else:
            fuzzer.replay(kafka, server, kept(options.replay))
    words = _verdict(fuzzer, options)
    say(words)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(words + "\n", encoding="utf-8")
    return 1 if fuzzer.failed else 0


def _verdict(fuzzer: Fuzzer, options: argparse.Namespace) -> str:
    rounds = fuzzer.rounds
    peaks = [row.peak_mib for row in rounds]
    lines = (
        f"Seed {options.seed}: {fuzzer.records} random records in {len(rounds)} rounds beside "
        f"{140 * len(rounds)} bystanders, {len(fuzzer.failed)} rounds failed.\n"
        f"{summary(rounds).replace('kinds', 'rounds')}\n"
        f"Median peak RSS of a round, MiB: first quarter {_quarter(peaks, 0)}, "
        f"last quarter {_quarter(peaks, 3)}."
    )
    return f"{lines}\n\n{markdown(fuzzer.failed)}" if fuzzer.failed else lines


def _quarter(values: Sequence[int], number: int) -> float:
    size = max(1, len(values) // 4)
    return median(values[number * size : (number + 1) * size] or [0])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests/chaos/run_fuzz.py", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=8, help="batches per round")
    parser.add_argument("--failures", type=int, default=5, help="end after this many")
    parser.add_argument("--out", type=Path, help="the Markdown file of the verdict")
    parser.add_argument("--keep", type=Path, default=Path(".cache/fuzz"), help="failed records")
    parser.add_argument("--replay", type=Path, help="publish what such a file holds, once")
    parser.add_argument("--package-path", default="", help="put before the worker's packages")
    parser.add_argument(
        "--by-clock", action="store_true", help="judge stalls by time, on a quiet machine"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
