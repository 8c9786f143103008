"""What a fork server imports for its replicas, and whether it may be forked afterwards.

A process may be forked while it has one thread and CUDA is not initialised. A thread would be
missing in the child, with the locks that it held; CUDA does not work in the child of a process that
initialised it.
"""

from __future__ import annotations

import gc
import importlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn

from dragoman_worker.engines.gpu import Gpus
from dragoman_worker.engines.vllm import arguments
from dragoman_worker.engines.vllm.profiles import check_adapters
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
