"""Would the tests notice? Breaks the worker's core in small ways and expects a red test each time.

``python tests/mutants.py [NAME ...]``: each mutant is applied to a copy of the package, and its
tests run against that copy. Exit status 1 if a mutant survives or no longer applies.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "worker" / "dragoman_worker"
SOURCES = ("schemas", "text", "producer", "demo", "tests")
TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break: in `file` of the package, `old` (found exactly once) becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: str


WORKER, EXECUTOR, SOURCE = "test_worker.py", "test_executor.py", "test_kafka_source.py"
TRANSLATION, PERMITS, RETRY = "test_translation.py", "test_permits.py", "test_retry.py"

MUTANTS = (
    Mutant(
        "complete before write",
        "worker.py",
        "        match outcome:\n            case Completed(result, take):\n",
        "        self._source.complete(delivery)\n"
        "        match outcome:\n            case Completed(result, take):\n",
        WORKER,
    ),
    Mutant(
        "finish before dead letter",
        "worker.py",
        "        failure, result, take = outcome.failure, outcome.result, outcome.take\n",
        "        failure, result, take = outcome.failure, outcome.result, outcome.take\n"
        "        if result is not None and take is not None:\n"
        "            await until_available(lambda: self._store.finish(take, result))\n",
        WORKER,
    ),
    Mutant(
        "result told before it is written",
        "worker.py",
        "                if take is None:\n",
        "                await self._publish(result)\n                if take is None:\n",
        WORKER,
    ),
    Mutant(
        "released is completed",
        "worker.py",
        "place=delivery.place, reason=reason)\n                return\n",
        "place=delivery.place, reason=reason)\n",
        WORKER,
    ),
    Mutant(
        "release after halt",
        "worker.py",
        "        if takes and not isinstance(self._halt, EngineDead):",
        "        if takes:",
        WORKER,
    ),
    Mutant(
        "no release after drain",
        "worker.py",
        "        if takes and not isinstance(self._halt, EngineDead):",
        "        if takes and isinstance(self._halt, EngineDead):",
        WORKER,
    ),
    Mutant(
        "watermark is the position",
        "offsets.py",
        "return self._unfinished[0] if self._unfinished else self.next_offset",
        "return self.next_offset",
        f"test_offsets.py {SOURCE}",
    ),
    Mutant(
        "a record is delivered twice in an epoch",
        "offsets.py",
        "        if offset < self.next_offset:\n            return False\n",
        "",
        f"test_offsets.py {SOURCE}",
    ),
    Mutant(
        "skip the gate",
        "kafka/source.py",
        "        await self._assigned.wait()\n",
        "",
        SOURCE,
    ),
    Mutant(
        "no resync after an error",
        "kafka/source.py",
        "                self._consumer.seek(partition, offsets.next_offset)\n\n    # --- complete",
        "                pass\n\n    # --- complete",
        SOURCE,
    ),
    Mutant(
        "old epochs complete",
        "kafka/source.py",
        "        if offsets is None or offsets.epoch != delivery.epoch:",
        "        if offsets is None:",
        SOURCE,
    ),
    Mutant(
        "a failed commit counts as committed",
        "kafka/source.py",
        '            if outcome == "ok":',
        "            if outcome:",
        SOURCE,
    ),
    Mutant(
        "retained partitions start anew",
        "kafka/source.py",
        "            if offsets is None or offsets.committed != start:",
        "            if True:",
        SOURCE,
    ),
    Mutant(
        "generate without permit",
        "translation.py",
        "            permit = await self._permits.acquire(plan.job.job_id, unit.tokens)",
        "            permit = self._permits._take(plan.job.job_id, unit.tokens)",
        TRANSLATION,
    ),
    Mutant(
        "length counts as success",
        "translation.py",
        'if generation.finish_reason == "stop" or',
        'if generation.finish_reason in {"stop", "length"} or',
        TRANSLATION,
    ),
    Mutant(
        "the engine's death is a job's failure",
        "executor.py",
        "if isinstance(error, Halt) or held.take is None:",
        "if held.take is None:",
        f"{EXECUTOR} {WORKER}",
    ),
    Mutant(
        "run without asking who owns the partition",
        "executor.py",
        "            if not self._owned(execution.delivery):\n"
        '                return Released("partition revoked")\n',
        "",
        EXECUTOR,
    ),
    Mutant(
        "a suspect runs in company",
        "executor.py",
        "        async with self._permits.alone(execution.envelope.job_id):\n    ",
        "        if True:\n    ",
        EXECUTOR,
    ),
    Mutant(
        "the claim is known only after the reply",
        "executor.py",
        "        execution.held.take = take  # before the call",
        "        # before the call",
        EXECUTOR,
    ),
    Mutant(
        "duplicates run beside each other",
        "executor.py",
        "        key = (envelope.job_id, envelope.fingerprint, replay)",
        "        key = (envelope.job_id, uuid4().hex, replay)",
        EXECUTOR,
    ),
    Mutant(
        "lines take no turns",
        "permits.py",
        "                self._lines.move_to_end(line)",
        "                pass",
        PERMITS,
    ),
    Mutant(
        "a cancelled waiter keeps its permit",
        "permits.py",
        "                self.release(waiter.granted.result())",
        "                pass",
        PERMITS,
    ),
    Mutant(
        "an outage consumes an attempt",
        "retry.py",
        "isinstance(error, JobError) and error.disposition is Disposition.RETRY",
        "isinstance(error, JobError | Unavailable)",
        RETRY,
    ),
    Mutant(
        "what a lambda returns is not awaited",
        "retry.py",
        "    return await retrying(again)",
        "    return await retrying(call)",
        f"{RETRY} {WORKER}",
    ),
)


def caught(mutant: Mutant) -> bool:
    """Whether a test turns red; raises ValueError if the mutant no longer applies."""
    with tempfile.TemporaryDirectory(prefix="dragoman-mutant-") as folder:
        file = _copied(folder) / mutant.file
        text = file.read_text(encoding="utf-8")
        if (found := text.count(mutant.old)) != 1:
            raise ValueError(f"{mutant.file} holds the text {found} times")
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        status = _tests_on(folder, mutant.tests.split())
    if status not in {0, 1}:
        raise ValueError(f"pytest ended with {status}")
    return status == 1


def green_without(mutants: Sequence[Mutant]) -> bool:
    """Whether the same tests pass on an unbroken copy: else a red one proves nothing."""
    with tempfile.TemporaryDirectory(prefix="dragoman-mutant-") as folder:
        _copied(folder)
        return _tests_on(folder, sorted({t for each in mutants for t in each.tests.split()})) == 0


def _copied(folder: str) -> Path:
    return Path(shutil.copytree(PACKAGE, Path(folder) / PACKAGE.name))


def _tests_on(folder: str, tests: list[str]) -> int:
    paths = [str(ROOT / "tests" / "unit" / "worker" / test) for test in tests]
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
        *("--timeout", "60", "-o", f"pythonpath={' '.join((folder, *SOURCES))}"),
    ]
    done = subprocess.run(
        [*command, *paths], cwd=ROOT, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    return done.returncode


def main(names: list[str]) -> int:
    """Try the named mutants, or all."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if not green_without(chosen):
        _say("the tests are red without any mutant")
        return 1
    survivors = 0
    for mutant in chosen:
        try:
            verdict = "caught" if caught(mutant) else "SURVIVED"
        except ValueError as problem:
            verdict = f"BROKEN: {problem}"
        survivors += verdict != "caught"
        _say(f"{verdict:8}  {mutant.name} ({mutant.file}; {mutant.tests})")
    _say(f"{len(chosen) - survivors} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
