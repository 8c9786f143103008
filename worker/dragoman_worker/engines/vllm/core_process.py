"""The engine's processes as the replica sees them: their CPU time, their end and its reason."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from dragoman_worker.engines.vllm.patches.isolation import read_report

_REAP_S: Final = 2.0
_LOOK_S: Final = 0.02


def kill(processes: Iterable[BaseProcess]) -> None:
    """Kill the engine processes and their process groups, which contain vLLM's workers."""
    for process in processes:
        if process.pid is None:
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.is_alive():
            process.kill()


def kill_and_wait(processes: Collection[BaseProcess]) -> None:
    """Kill the engine processes and wait up to two seconds until they and their groups are gone."""
    kill(processes)
    deadline = time.monotonic() + _REAP_S
    for process in processes:
        process.join(_REAP_S)
        while process.pid and _has_group(process.pid) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)


def _has_group(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def cpu_seconds(processes: Iterable[BaseProcess]) -> float:
    """Return the CPU time of the engine processes, without their children; 0 where it is unknown.

    From Linux' /proc: fields 14 and 15 count from 1, after a name that may have blanks.
    """
    ticks = 0
    for process in processes:
        with suppress(OSError, ValueError, IndexError):
            stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
            fields = stat.rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def exit_reason(processes: Iterable[BaseProcess], report: Path) -> str:
    """Return why the engine processes terminated, as one clause for the log."""
    if reported := read_report(report):
        return reported.reason
    for process in processes:
        status = process.exitcode
        if status is not None:
            return f"killed by signal {-status}" if status < 0 else f"exited with status {status}"
    return "it does not answer"
