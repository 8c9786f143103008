"""Mutation tests: small defects in the code, each of which a test must notice.

`make mutants ARGS="[--jobs N] [NAME ...]"` prints a table: the mutant, its file, the first test
that failed, and the seconds it took. Each mutant is applied to a copy of its package; its tests and
every process that they start run on that copy. Exit status 1 if a mutant survives or no longer
applies.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
SOURCES = ("schemas", "text", "connections", "producer", "worker", "demo", "tests")
TIMEOUT_S = 900
RED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one mutant: the test that caught it, or the problem."""

    mutant: Mutant
    caught_by: str
    seconds: float
    problem: str = ""


def tried(mutant: Mutant) -> Trial:
    """Break a copy, run the tests on it, and return the first one that failed."""
    started = time.monotonic()
    red, problem = "", ""
    try:
        with tempfile.TemporaryDirectory(prefix="dragoman-mutant-") as folder:
            _break(folder, mutant)
            status, red = _tests_on(folder, mutant.tests.split())
        if status not in {0, 1}:
            problem = f"BROKEN: pytest exited with {status}"
        elif status == 0:
            problem = "SURVIVED"
    except (ValueError, subprocess.TimeoutExpired) as error:
        problem = f"BROKEN: {error}"
    return Trial(mutant, red, time.monotonic() - started, problem)


def red_without(mutants: Sequence[Mutant]) -> str:
    """Return the first test that fails without any mutant, where a failure proves nothing."""
    tests = sorted({test for each in mutants for test in each.tests.split()})
    status, red = _tests_on(str(ROOT), tests)
    return red or f"pytest exited with {status}" if status else ""


def _break(folder: str, mutant: Mutant) -> None:
    package, _, inside = mutant.file.removeprefix(f"{Path(mutant.file).parts[0]}/").partition("/")
    original = ROOT / Path(mutant.file).parts[0] / package
    copy = shutil.copytree(original, Path(folder) / package)
    file = copy / inside
    text = file.read_text(encoding="utf-8")
    if (found := text.count(mutant.old)) != 1:
        raise ValueError(f"{mutant.file} holds the text {found} times")
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def _tests_on(folder: str, tests: Sequence[str]) -> tuple[int, str]:
    """Return pytest's exit status and the first test that failed."""
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
        *("--timeout", "120", "-o", f"pythonpath={' '.join((folder, *SOURCES))}"),
    ]
    done = subprocess.run(
        [*command, *(str(ROOT / "tests" / test) for test in tests)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        # Workers and commands started by the tests import the broken copy first, too.
        env={**os.environ, "PYTHONPATH": folder, "DRAGOMAN_CHART": _chart(folder)},
    )
    red = RED.search(done.stdout)
    return done.returncode, red[1].removeprefix("tests/") if red else ""


def _chart(folder: str) -> str:
    """Return the folder of the Helm chart, which is no package that could be imported."""
    copy = Path(folder) / "chart"
    return str(copy if copy.is_dir() else ROOT / "deploy" / "chart")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the named mutants, or all of them."""
    parser = argparse.ArgumentParser(description="Mutation tests of Dragoman.")
    parser.add_argument("names", nargs="*", help="mutants to try; all of them if none is named")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at a time")
    asked = parser.parse_args(arguments)
    known = {mutant.name for mutant in MUTANTS}
    if unknown := set(asked.names) - known:
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in MUTANTS if not asked.names or mutant.name in asked.names]
    if red := red_without(chosen):
        _say(f"red without any mutant: {red}")
        return 1
    survivors = 0
    _say("| mutant | file | caught by | seconds |\n|---|---|---|---|")
    with ThreadPoolExecutor(asked.jobs) as pool:
        for trial in pool.map(tried, chosen):
            survivors += bool(trial.problem)
            verdict = trial.problem or f"`{trial.caught_by}`"
            row = (trial.mutant.name, trial.mutant.file, verdict, f"{trial.seconds:.0f}")
            _say(f"| {' | '.join(row)} |")
    _say(f"{len(chosen) - survivors} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
