"""Mutation tests: small defects in the code, each of which a test must notice.

`make mutants ARGS="[--jobs N] [NAME ...]"` prints a table: the mutant, its place, the first test
that failed, and the seconds it took. Each mutant is applied to a copy of its package; its tests and
every process that they start run on that copy. Exit status 1 if a mutant survives or no longer
applies.
"""

from __future__ import annotations

import argparse
import ast
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
from functools import cache
from pathlib import Path

from mutants import lua
from mutants.breaks import apply, functions, only
from mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PRODUCT = ("schemas", "text", "documents", "connections", "producer", "worker")
SOURCES = (*PRODUCT, "demo", "tests")
TIMEOUT_S = 900
RED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one mutant: the test that caught it, or the problem."""

    mutant: Mutant
    caught_by: str
    seconds: float
    problem: str = ""


def broken(mutant: Mutant) -> tuple[Path, str]:
    """Return the mutant's file and its broken text. Raises ValueError if it does not apply."""
    if mutant.place.endswith(".lua"):
        script = only((file for file in _files() if file.name == mutant.place), mutant.place)
        return script, lua.broken(script.read_text(encoding="utf-8"), mutant.how)
    found = (
        (file, *place)
        for file in _files()
        if file.suffix == ".py"
        for place in functions(file.read_text(encoding="utf-8"), mutant.place)
    )
    file, module, function = only(found, mutant.place)
    apply(function, mutant.how)
    return file, ast.unparse(ast.fix_missing_locations(module))


@cache
def _files() -> tuple[Path, ...]:
    return tuple(
        file
        for package in PRODUCT
        for suffix in ("py", "lua")
        for file in (ROOT / package).rglob(f"*.{suffix}")
    )


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
    file, text = broken(mutant)
    package = ROOT / Path(*file.relative_to(ROOT).parts[:2])
    copy = shutil.copytree(package, Path(folder) / package.name)
    (copy / file.relative_to(package)).write_text(text, encoding="utf-8")


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
        env={**os.environ, "PYTHONPATH": folder},
    )
    red = RED.search(done.stdout)
    return done.returncode, red[1].removeprefix("tests/") if red else ""


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
    _say("| mutant | place | caught by | seconds |\n|---|---|---|---|")
    with ThreadPoolExecutor(asked.jobs) as pool:
        for trial in pool.map(tried, chosen):
            survivors += bool(trial.problem)
            verdict = trial.problem or f"`{trial.caught_by}`"
            row = (trial.mutant.name, trial.mutant.place, verdict, f"{trial.seconds:.0f}")
            _say(f"| {' | '.join(row)} |")
    _say(f"{len(chosen) - survivors} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
