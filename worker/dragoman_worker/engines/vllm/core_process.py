"""How is vLLM's engine process kept out of our signals, and from outliving us?

vLLM runs its EngineCore as a child of ours, in our process group, with handlers of its own for
SIGINT and SIGTERM: Ctrl-C would kill the engine before the worker could drain. And when we die
without clean-up the child lives on and keeps the GPU's memory. vLLM offers no hook for either, so
the function that its child runs is exchanged, while the engine is being built, for `run` below.
Where a later vLLM has no such function any more, `guarded` does nothing and says so.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

REPORT_VARIABLE: Final = "DRAGOMAN_ENGINE_REPORT"
_TARGET: Final = "run_engine_core"
_REAP_S: Final = 2.0
_LOOK_S: Final = 0.02
_START_FAILED: Final = "EngineCore failed to start."


@dataclass(frozen=True, slots=True)
class Report:
    """Why an engine process ended, in vLLM's own words."""

    reason: str
    traceback: str


@contextmanager
def guarded(core_class: Any, report: Path) -> Iterator[bool]:
    """While inside, engine processes of `core_class` start as `run`, and report to `report`.

    Yields whether that is possible with this vLLM. The child must be spawned, not forked: it
    looks the original function up in a fresh import.
    """
    original = vars(core_class).get(_TARGET)
    if original is None:
        yield False
        return
    os.environ[REPORT_VARIABLE] = str(report)
    setattr(core_class, _TARGET, staticmethod(run))
    try:
        yield True
    finally:
        setattr(core_class, _TARGET, original)
        del os.environ[REPORT_VARIABLE]


def read_report(report: Path) -> Report | None:
    """What the engine process said when it ended; None if it said nothing."""
    with suppress(OSError, ValueError, TypeError):
        return Report(**json.loads(report.read_text(encoding="utf-8")))
    return None


def kill(processes: Iterable[BaseProcess]) -> None:
    """Kill engine processes that are left, with the groups they lead: their workers are in them."""
    for process in processes:
        if process.pid is None:
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.is_alive():
            process.kill()


def end(processes: Collection[BaseProcess]) -> None:
    """Kill them, and return once they and their groups are gone; after two seconds in any case."""
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


def how_it_ended(processes: Iterable[BaseProcess], report: Path) -> str:
    """One clause about engine processes that ended, for the log."""
    if said := read_report(report):
        return said.reason
    for process in processes:
        status = process.exitcode
        if status is not None:
            return f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return "it does not answer"


def run(*args: Any, **kwargs: Any) -> None:
    """In the child: leave the parent's group, watch the parent, then do what vLLM would do."""
    with suppress(PermissionError):  # leads a group already
        os.setsid()
    threading.Thread(target=_die_with_parent, name="dragoman-parent-watch", daemon=True).start()
    from vllm.v1.engine.core import EngineCoreProc  # noqa: PLC0415 - only in the child

    logging.getLogger("vllm.v1.engine.core").addFilter(_report_what_is_logged)
    _run_and_report(EngineCoreProc.run_engine_core, args, kwargs)


def _run_and_report(
    target: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        target(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - it goes to the parent, which raises it
        _report(error)
        sys.exit(1)


def _report_what_is_logged(record: logging.LogRecord) -> bool:
    """vLLM logs what kills its engine before it tells the parent, which may then kill us.

    A failed start stays out of the log: the parent tells it in one line.
    """
    if record.exc_info and isinstance(record.exc_info[1], Exception):
        _report(record.exc_info[1])
    return record.msg != _START_FAILED


def _report(error: Exception) -> None:
    place = os.environ.get(REPORT_VARIABLE)
    if not place:
        return
    report = Report(
        reason=f"{type(error).__name__}: {error}",
        traceback="".join(traceback.format_exception(error)),
    )
    part = Path(f"{place}.{os.getpid()}")
    with suppress(OSError):
        part.write_text(json.dumps(asdict(report)), encoding="utf-8")
        part.replace(place)


def _die_with_parent() -> None:
    """A pipe that the parent holds open breaks when the parent ends, however it ends."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)  # tensor-parallel workers are in our group
    os.kill(os.getpid(), signal.SIGKILL)
