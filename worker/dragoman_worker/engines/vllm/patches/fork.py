"""Forks in place of imports: what a fork server imports, and the standby process.

A fork server imports vLLM once, and replicas are forked from it. A process may be forked while it
has one thread and CUDA is not initialised. A thread would be missing in the child, with the locks
that it held; CUDA does not work in the child of a process that initialised it.

A forked replica has one thread for a moment. It forks a *standby process* then, which waits. vLLM's
engine process becomes that one instead of a new interpreter: it has everything imported, and
nothing of the event loop, threads and sockets that the replica has by then, some of which a fork
would leave locked for ever.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import pickle
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import popen_fork, reduction, resource_tracker, spawn
from multiprocessing.context import SpawnContext, SpawnProcess, set_spawning_popen
from multiprocessing.process import BaseProcess
from typing import Any, Final, NoReturn

from dragoman_connections.child import Channel, framed
from dragoman_worker.engines.gpu import Gpus
from dragoman_worker.engines.vllm import arguments
from dragoman_worker.engines.vllm.profiles import check_adapters
from dragoman_worker.process.parent_link import ParentLink
from dragoman_worker.settings import EngineSettings

_MODULES: Final = (
    "vllm",
    "vllm.v1.engine.async_llm",
    "vllm.v1.engine.core",
    "vllm.sampling_params",
    "vllm.usage.usage_lib",
    "vllm.lora.request",
    "vllm.v1.executor.uniproc_executor",
    "vllm.v1.executor.multiproc_executor",
    "vllm.v1.metrics.loggers",
)
_OF_CPU: Final = ("vllm.v1.worker.cpu_worker",)
_OF_CUDA: Final = (
    "vllm.v1.worker.gpu_worker",
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.v1.attention.backends.flash_attn",
    "torch._inductor.compile_fx",
)
_TRIAL_S: Final = 60.0
_LOOK_S: Final = 0.01
_ONE_THREAD: Final = "OPENBLAS_NUM_THREADS"
"""numpy's BLAS starts its threads at the import."""
_CONTEXT: Final = "get_mp_context"
_METHOD: Final = "VLLM_WORKER_MULTIPROC_METHOD"
_COUNT: Final = "OMP_NUM_THREADS"
_PLACES: Final = ("OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


# --- imports of the fork server ------------------------------------------------------------------


def load(settings: EngineSettings, *, verbose: bool) -> str | None:
    """Import the engine; return why this process must not be forked, None if it may.

    Raises SettingsError at once where a replica would, before anything slow.
    """
    arguments.require_vllm()
    arguments.resolve_model(settings.model or "")
    check_adapters(settings)
    arguments.prepare_environment(settings, verbose=verbose)
    try:
        with _nothing_collected(), _one_blas_thread():
            reason = _import_all()
    except Exception as error:  # noqa: BLE001  a replica that imports by itself reports it
        return f"vLLM cannot be imported: {type(error).__name__}: {error}"
    return reason or _unfit()


def _import_all() -> str | None:
    for name in _MODULES:
        importlib.import_module(name)
    platform: Any = importlib.import_module("vllm.platforms").current_platform
    modules: tuple[str, ...]
    if platform.is_cpu():
        modules = _OF_CPU
    elif platform.is_cuda():
        modules = _OF_CUDA
    else:
        return f"not supported on {platform.device_name}"
    for name in modules:
        with suppress(Exception):  # in another version it may be missing: then not before the fork
            importlib.import_module(name)
    return None


def _unfit() -> str | None:
    """Return why the imports have made this process unfit to be forked."""
    if (count := threading.active_count()) > 1:
        return f"the imports started {count - 1} threads"
    torch: Any = importlib.import_module("torch")
    on_cuda = bool(importlib.import_module("vllm.platforms").current_platform.is_cuda())
    if on_cuda and torch.cuda.is_initialized():
        return "the imports initialised CUDA"
    gpus = Gpus(None)
    try:
        # vLLM keeps the capability of the first one.
        if gpus.open() and len(gpus.capabilities()) > 1:
            return "the GPUs are of different kinds"
    finally:
        gpus.close()
    return _failed_trial(torch, on_cuda=on_cuda)


def _failed_trial(torch: Any, *, on_cuda: bool) -> str | None:
    """Return why a forked process cannot compute, which is tried in one."""
    pid = os.fork()
    if pid == 0:
        _try(torch, on_cuda=on_cuda)
    deadline = time.monotonic() + _TRIAL_S
    while (status := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return "a forked process hung in its first computation"
        time.sleep(_LOOK_S)
    code = os.waitstatus_to_exitcode(status[1])
    return f"a forked process failed its trial with status {code}" if code else None


def _try(torch: Any, *, on_cuda: bool) -> NoReturn:
    """Compute with several threads; exit with 0 if that and CUDA work in this forked process."""
    try:
        numpy: Any = importlib.import_module("numpy")
        ones = torch.ones(256, 256)
        works = float((ones @ ones).sum()) == float((ones.numpy() @ numpy.ones((256, 256))).sum())
        bad = on_cuda and torch.cuda._is_in_bad_fork()  # noqa: SLF001
        os._exit(3 if bad else 0 if works else 1)
    finally:
        os._exit(1)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    before = os.environ.get(_ONE_THREAD)
    os.environ[_ONE_THREAD] = "1"
    try:
        yield
    finally:
        os.environ.pop(_ONE_THREAD)
        if before is not None:
            os.environ[_ONE_THREAD] = before


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Collect no garbage during the imports, and none of their objects ever again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()  # a collection in a forked process would copy the memory that it shares


# --- standby process ------------------------------------------------------------------------------


class _Standby:
    """A process that waits to become an engine process; of use once."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self.connection = connection


_ready: list[_Standby] = []


def prepare(link: ParentLink) -> None:
    """Fork the standby process. Call it while this process has one thread and no event loop."""
    # The engine process shares this tracker, as a spawned one does: it outlives a killed engine and
    # then unlinks its shared memory.
    resource_tracker.ensure_running()
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        link.close()
        _wait(theirs)
    theirs.close()
    _ready.append(_Standby(pid, ours))


@contextmanager
def used(engine_utils: Any) -> Iterator[None]:
    """Make vLLM start its engine process from the standby process, if there is one.

    `engine_utils` is vLLM's module that starts it.
    """
    if not _ready:
        yield
        return
    original = getattr(engine_utils, _CONTEXT)
    setattr(engine_utils, _CONTEXT, _Context)
    try:
        yield
    finally:
        setattr(engine_utils, _CONTEXT, original)


class _Process(SpawnProcess):
    """A process that becomes the standby process, or is spawned if there is none."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802  of multiprocessing
        # vLLM wraps the interpreter in another program to bind memory to a NUMA node.
        if _ready and os.fsdecode(spawn.get_executable()) == sys.executable:
            with suppress(OSError, _Unsendable):
                return _Popen(process_obj, _ready.pop())
        return SpawnProcess._Popen(process_obj)  # noqa: SLF001


class _Context(SpawnContext):
    """The context of spawned processes, whose first process is the standby process."""

    Process = _Process


class _Unsendable(Exception):
    """The process needs open files of this one."""


class _Popen(popen_fork.Popen):
    """The start of a process in the standby process."""

    method = "spawn"

    def __init__(self, process_obj: BaseProcess, standby: _Standby) -> None:
        self._standby = standby
        super().__init__(process_obj)

    def duplicate_for_child(self, fd: int) -> NoReturn:
        """Refuse to pass an open file."""
        raise _Unsendable(fd)

    def _launch(self, process_obj: BaseProcess) -> None:
        data = io.BytesIO()
        spawning: Any = self
        set_spawning_popen(spawning)
        try:
            pickle.dump(dict(os.environ), data)
            reduction.dump(process_obj, data)
        finally:
            set_spawning_popen(None)
        connection = self._standby.connection
        connection.sendall(framed(data.getvalue()))
        self.pid = self._standby.pid
        self.sentinel = connection.fileno()


def _wait(connection: socket.socket) -> NoReturn:
    """Wait for the engine process to run; exit when the replica exits first."""
    os.setsid()
    code = 1
    try:
        message = Channel(connection).receive()
        if message is None:
            os._exit(0)
        data = io.BytesIO(message)
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(pickle.load(data))  # noqa: S301  from the replica that forked this one
        os.environ[_METHOD] = "fork"  # vLLM itself spawns where CUDA is initialised
        _set_thread_count(before)
        os.register_at_fork(after_in_child=_in_workers(connection, dict(os.environ)))
        process: Any = pickle.load(data)  # noqa: S301
        code = process._bootstrap(parent_sentinel=connection.fileno())  # noqa: SLF001
    except Exception as error:  # noqa: BLE001  the replica learns the exit alone
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)


def _in_workers(connection: socket.socket, before: Mapping[str, str]) -> Callable[[], None]:
    """Return what vLLM's worker processes do first: they are forked, and import nothing."""

    def begin() -> None:
        # A copy would hide the exit of the engine process from the replica.
        with suppress(OSError):
            os.close(connection.fileno())
        _set_thread_count(before)
        _bind(before)

    return begin


def _set_thread_count(before: Mapping[str, str]) -> None:
    """Do what OpenMP did at its import if the variable had been set."""
    count = os.environ.get(_COUNT, "")
    if count.isdecimal() and count != before.get(_COUNT) and (torch := sys.modules.get("torch")):
        torch.set_num_threads(int(count))


def _bind(before: Mapping[str, str]) -> None:
    """Run on the cores that vLLM chose by variables which OpenMP reads only at its import."""
    for name in _PLACES:
        chosen = os.environ.get(name, "")
        if chosen != before.get(name, "") and (cores := re.findall(r"\d+", chosen)):
            with suppress(OSError, ValueError):
                os.sched_setaffinity(0, {int(core) for core in cores})
