"""Every kind of odd record beside 140 bystanders on a live worker, with a table.

`make odd ARGS="--out odd.md"` prints a line per kind and writes the table. Exit status 1 if any
kind broke a limit: bystanders done within 20 s, no restart, no stall of the event loop over 100 ms,
and the end that the record must come to.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from support.odd.cases import cases
from support.odd.field import Field, Round
from support.odd.table import line_of, markdown, say, summary, write
from support.processes.unwinding import unwind_on_sigterm
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer


def main(arguments: list[str]) -> int:
    """Run the kinds, one after the other."""
    unwind_on_sigterm()
    options = _parser().parse_args(arguments)
    chosen = {
        name: make
        for name, make in cases().items()
        if not options.kinds or any(part in name for part in options.kinds)
    }
    rounds: list[Round] = []
    with (
        tempfile.TemporaryDirectory(prefix="odd-") as folder,
        KafkaBroker() as kafka,
        RedisServer() as server,
    ):
        names = iter(chosen)
        name = next(names, None)
        while name is not None:
            with Field(kafka, server, Path(folder), package_path=options.package_path) as field:
                while name is not None:
                    row = field.run(name, chosen[name]())
                    row.judge(by_clock=options.by_clock)
                    rounds.append(row)
                    say(line_of(row))
                    write(rounds, options.out)
                    name = next(names, None)
                    if not row.healthy:
                        break
    say(markdown(rounds) if options.out is None else f"{summary(rounds)} Table: {options.out}")
    return 1 if any(row.problems for row in rounds) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests/chaos/run_odd.py", description=__doc__)
    parser.add_argument("kinds", nargs="*", help="only kinds whose name holds one of these")
    parser.add_argument("--out", type=Path, help="the Markdown file of the table")
    parser.add_argument("--package-path", default="", help="put before the worker's packages")
    parser.add_argument(
        "--by-clock", action="store_true", help="judge stalls by time, on a quiet machine"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
