"""Isolation of vLLM's engine process: no signals from our terminal, no life beyond the worker's.

vLLM runs its EngineCore as a child process in our process group, with its own handlers for SIGINT
and SIGTERM: Ctrl-C would kill the engine before the worker could drain. When the worker dies
without clean-up, the child stays alive and keeps the GPU's memory. vLLM has no hook for either, so
while the engine is being built, the function that the child runs is replaced with `run` below,
which also makes the patches of the engine process.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from dragoman_worker.engines.vllm.patches.prefill_groups import in_groups
from dragoman_worker.engines.vllm.patches.table import (
    ISOLATION,
    PREFILL_GROUPS,
    WHOLE_OUTPUTS,
    WORKER_START,
    ChosenPatches,
)
from dragoman_worker.engines.vllm.patches.whole_outputs import sending_whole
from dragoman_worker.process.event_loop import YOUNG

REPORT_VARIABLE: Final = "DRAGOMAN_ENGINE_REPORT"
PATCHES_VARIABLE: Final = "DRAGOMAN_ENGINE_PATCHES"
SHARE_VARIABLE: Final = "DRAGOMAN_ENGINE_PREFILL_SHARE"
WORKER_METHOD: Final = "VLLM_WORKER_MULTIPROC_METHOD"
"""vLLM's variable: whether its worker processes are forked or spawned."""
_TARGET: Final = "run_engine_core"
_CHOOSE: Final = "get_scheduler_cls"
_EXECUTOR: Final = "vllm.v1.executor.multiproc_executor"
_START_FAILED: Final = frozenset({"EngineCore failed to start.", "WorkerProc failed to start."})
_OF_A_WORKER: Final = "WorkerProc initialization failed"
"""The engine process's failure if a worker process has failed, which has reported its own."""


@dataclass(frozen=True, slots=True)
class CoreFailure:
    """The exception that terminated an engine process, as vLLM raised it."""

    reason: str
    traceback: str


@contextmanager
def guarded(
    core_class: Any, report: Path, patches: ChosenPatches, prefill_share: float = 0.0
) -> Iterator[None]:
    """Make engine processes of `core_class` start with `run` and write failures to `report`.

    `patches` are those to make in them. The child must be spawned, not forked: it looks up the
    original in a fresh import.
    """
    if ISOLATION not in patches:
        yield
        return
    original = vars(core_class)[_TARGET]
    variables = {
        REPORT_VARIABLE: str(report),
        PATCHES_VARIABLE: " ".join(patches.names),
        SHARE_VARIABLE: str(prefill_share),
    }
    os.environ.update(variables)
    setattr(core_class, _TARGET, staticmethod(run))
    try:
        yield
    finally:
        setattr(core_class, _TARGET, original)
        for name in variables:
            del os.environ[name]


def read_report(report: Path) -> CoreFailure | None:
    """Return the failure that the engine process reported, None without a valid report."""
    with suppress(OSError, ValueError, TypeError):
        return CoreFailure(**json.loads(report.read_text(encoding="utf-8")))
    return None


def run(*args: Any, **kwargs: Any) -> None:
    """Run in the child: leave the parent's process group, watch the parent, run vLLM's engine."""
    with suppress(PermissionError):  # this process leads a group already
        os.setsid()
    threading.Thread(target=_die_with_parent, name="dragoman-parent-watch", daemon=True).start()
    from vllm.v1.engine.core import EngineCoreProc  # noqa: PLC0415 - only in the child

    logging.getLogger("vllm.v1.engine.core").addFilter(_report_what_is_logged)
    # 2 % of the scheduler's time with 1,024 sequences. vLLM itself freezes what its start leaves.
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    _request_amx()
    patches = frozenset(os.environ[PATCHES_VARIABLE].split())
    if WORKER_START in patches:
        _start_workers_with_work()
    _extend_scheduler(patches, float(os.environ[SHARE_VARIABLE]))
    _run_and_report(EngineCoreProc.run_engine_core, args, kwargs)


def work(*args: Any, **kwargs: Any) -> None:
    """Run in a worker process that vLLM has spawned on a CPU: as vLLM does; report why it fails."""
    _request_amx()
    executor: Any = importlib.import_module(_EXECUTOR)
    logging.getLogger(_EXECUTOR).addFilter(_report_what_is_logged)
    executor.WorkerProc.worker_main(*args, **kwargs)


def _request_amx() -> None:
    """Ask Linux for the matrix registers of the CPU, if it has any.

    vLLM's attention on CPUs uses them without asking. If no other library has asked before, as for
    a tiny model, the first request kills the process with SIGILL (vLLM 0.32 on a Xeon with AMX).
    Forked processes inherit the right, spawned ones have to ask for themselves.
    """
    with suppress(ImportError, AttributeError):
        cpu: Any = importlib.import_module("torch.cpu")
        cpu._init_amx()  # noqa: SLF001  PyTorch has no public name for it


def _start_workers_with_work() -> None:
    """Make vLLM's worker processes on a CPU start with `work`, if it spawns them."""
    if os.environ.get(WORKER_METHOD) != "spawn":
        return
    platforms: Any = importlib.import_module("vllm.platforms")
    if platforms.current_platform.is_cpu():
        executor: Any = importlib.import_module(_EXECUTOR)
        executor.WorkerProc.worker_main = staticmethod(work)


def _extend_scheduler(patches: Collection[str], prefill_share: float) -> None:
    """Leave out the messages per token, and group prefills, as far as these are among `patches`."""
    config: Any = importlib.import_module("vllm.config.scheduler")
    if WHOLE_OUTPUTS in patches:
        sampling: Any = importlib.import_module("vllm.sampling_params")
        final_only = sampling.RequestOutputKind.FINAL_ONLY
        empty = importlib.import_module("vllm.v1.engine").EngineCoreOutputs
        whole = partial(sending_whole, final_only=final_only, empty=empty)
        extend(config.SchedulerConfig, whole)
    if PREFILL_GROUPS in patches and prefill_share:
        extend(config.SchedulerConfig, partial(in_groups, share=prefill_share))


def extend(config_class: Any, derive: Callable[[type], type]) -> None:
    """Make `config_class` choose what `derive` makes of its choice; once per engine process.

    `config_class` is vLLM's SchedulerConfig. Several extensions add up.
    """
    choose = vars(config_class)[_CHOOSE]
    setattr(config_class, _CHOOSE, lambda config: derive(choose(config)))


def _run_and_report(
    target: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        target(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - reported to the parent, which raises it
        _report(error)
        sys.exit(1)


def _report_what_is_logged(record: logging.LogRecord) -> bool:
    """Report the logged exception; return False for a failed start, to keep it out of the log.

    vLLM logs a fatal exception before it notifies the parent, which may then kill this process. A
    failed start is logged by the parent, in one line.
    """
    if record.exc_info and isinstance(record.exc_info[1], Exception):
        _report(record.exc_info[1])
    return record.msg not in _START_FAILED


def _report(error: Exception) -> None:
    path = os.environ.get(REPORT_VARIABLE)
    if not path or (str(error).startswith(_OF_A_WORKER) and Path(path).exists()):
        return
    report = CoreFailure(
        reason=f"{type(error).__name__}: {error}",
        traceback="".join(traceback.format_exception(error)),
    )
    part = Path(f"{path}.{os.getpid()}")
    with suppress(OSError):
        part.write_text(json.dumps(asdict(report)), encoding="utf-8")
        part.replace(path)


def _die_with_parent() -> None:
    """Kill this process when the parent exits for any reason, which closes the parent's pipe."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)  # tensor-parallel workers are in this group
    os.kill(os.getpid(), signal.SIGKILL)
