"""Build of vLLM's engine in a thread, beside the event loop, and its cancellation half-way."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.machine import this_machine
from dragoman_worker.engines.vllm import arguments, core_process
from dragoman_worker.engines.vllm.outputs import RequestFailures
from dragoman_worker.engines.vllm.patches import fork, isolation, table
from dragoman_worker.engines.vllm.patches.latencies import stat_loggers
from dragoman_worker.engines.vllm.patches.sockets import sockets_in
from dragoman_worker.engines.vllm.patches.whole_outputs import share_times
from dragoman_worker.engines.vllm.profiles import check_adapters
from dragoman_worker.engines.vllm.start_failures import start_failure
from dragoman_worker.errors import Halt
from dragoman_worker.log import logger
from dragoman_worker.settings import EngineSettings

_REAP_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Built:
    """A running engine with everything needed to use and to stop it."""

    client: Any
    """vLLM's AsyncLLM."""
    version: str
    patches: table.ChosenPatches
    on_cpu: bool
    sampling: Any
    """vLLM's module of sampling parameters."""
    failures: RequestFailures
    processes: tuple[BaseProcess, ...]
    report: Path
    folder: tempfile.TemporaryDirectory[str]


class Launch:
    """One attempt to build the engine. Raises SettingsError or Halt, both in one line.

    Building takes from 20 seconds to minutes and is synchronous. It runs in a thread, so that the
    event loop keeps serving signals, probes and connections. AsyncLLM allows that: built without a
    running loop, it binds its sockets and tasks to the loop that generates first.
    """

    def __init__(self, settings: EngineSettings, *, verbose: bool) -> None:
        self._settings = settings
        self._verbose = verbose
        self._cancelled = threading.Event()
        self._before: frozenset[BaseProcess] = frozenset()
        self._made: list[Built] = []

    async def built(self) -> Built:
        """Build the engine; if cancelled, stop all that was started, then re-raise."""
        self._before = frozenset(multiprocessing.active_children())
        thread = asyncio.create_task(asyncio.to_thread(self._build), name="vllm-build")
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError:
            await self._cancel(thread)
            raise
        return self._made.pop()

    async def _cancel(self, thread: asyncio.Task[None]) -> None:
        self._cancelled.set()
        while not thread.done():
            core_process.kill(self._children())
            await asyncio.wait([thread], timeout=_REAP_S)
        if not thread.cancelled():
            thread.exception()  # retrieved and dropped: the caller gets the cancellation
        while self._made:
            await asyncio.to_thread(self._made.pop().client.shutdown)

    def _children(self) -> tuple[BaseProcess, ...]:
        return tuple(set(multiprocessing.active_children()) - self._before)

    def _build(self) -> None:
        """Build the engine and append it to `_made`, not to a local variable.

        vLLM keeps exceptions whose tracebacks hold this frame and its callers' frames. An engine
        in a local variable there would live until the interpreter exits, and fail noisily then.
        """
        vllm, made = _prepare(self._settings, verbose=self._verbose)
        folder = tempfile.TemporaryDirectory(prefix="dragoman-engine-")
        report = Path(folder.name) / "end.json"
        try:
            self._made.append(self._built(vllm, made, report, folder))
        except (Exception, SystemExit) as error:
            failure = self._explain(error, isolation.read_report(report))
            folder.cleanup()
            raise failure from error

    def _built(
        self, vllm: Any, made: Any, report: Path, folder: tempfile.TemporaryDirectory[str]
    ) -> Built:
        version = str(vllm.__version__)
        patches = table.chosen(self._settings.patches)
        patches.log(version)
        return Built(
            client=self._client(vllm, made, report, patches),
            version=version,
            patches=patches,
            on_cpu=this_device().cpu,
            sampling=_import_vllm("vllm.sampling_params"),
            failures=request_failures(),
            processes=self._children(),
            report=report,
            folder=folder,
        )

    def _client(self, vllm: Any, made: Any, report: Path, patches: table.ChosenPatches) -> Any:
        context = _import_vllm("vllm.usage.usage_lib").UsageContext.LLM_CLASS
        core_class = _import_vllm("vllm.v1.engine.core").EngineCoreProc
        if self._cancelled.is_set():
            raise Halt("the start of the engine was cancelled before it was built")
        if table.WHOLE_OUTPUTS in patches:
            share_times(_import_vllm("vllm.v1.engine.async_llm"))
        loggers = stat_loggers(made) if table.LATENCIES in patches else {}
        with ExitStack() as stack:
            share = self._settings.grouped_share
            stack.enter_context(isolation.guarded(core_class, report, patches, share))
            if table.FORKED_START in patches:
                stack.enter_context(fork.used(_import_vllm("vllm.v1.engine.utils")))
            if table.SOCKETS in patches:
                stack.enter_context(sockets_in(report.parent))
            return vllm.AsyncLLMEngine.from_engine_args(made, usage_context=context, **loggers)

    def _explain(
        self, error: BaseException, report: isolation.CoreFailure | None
    ) -> SettingsError | Halt:
        if isinstance(error, SettingsError | Halt):
            return error
        reason = report.reason if report else None
        settings = self._settings
        failure = start_failure(error, reason, settings.model or "", settings.options)
        if isinstance(failure, Halt) and report:
            logger().error("engine_not_started", traceback=report.traceback)
        return failure


def _prepare(settings: EngineSettings, *, verbose: bool) -> tuple[Any, Any]:
    """Return vLLM's module and the AsyncEngineArgs; the model is not loaded."""
    arguments.require_vllm()
    arguments.resolve_model(settings.model or "")
    check_adapters(settings)
    arguments.prepare_environment(settings, verbose=verbose)
    vllm = _import_vllm("vllm")
    device = this_device()
    arguments.prepare_device(device, settings.options)
    return vllm, arguments.engine_arguments(
        settings, vllm.AsyncEngineArgs, str(vllm.__version__), device
    )


def request_failures() -> RequestFailures:
    """Return the translation of this vLLM's exceptions."""
    return RequestFailures(
        _import_vllm("vllm.exceptions"), _import_vllm("vllm.v1.engine.exceptions")
    )


def this_device() -> arguments.Device:
    """Return the device that vLLM detected."""
    platform = _import_vllm("vllm.platforms").current_platform
    memory, name = 0, ""
    with suppress(Exception):  # unknown on some platforms: then the smaller defaults apply
        memory = int(platform.get_device_total_memory())
        for gpu in this_machine().gpus:
            if gpu.is_slice and gpu.memory_bytes:  # vLLM reports the memory of the whole GPU
                memory = min(memory, gpu.memory_bytes)
        name = str(platform.get_device_name())
    return arguments.Device(cpu=bool(platform.is_cpu()), memory_bytes=memory, name=name)


def _import_vllm(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"engine.kind: vLLM cannot be imported: {error}; install a vLLM that fits this "
            "machine, or set engine.kind = 'echo'"
        ) from error
