"""How is vLLM's engine built without stopping our event loop, and given up half-built?"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm import arguments, core_process
from dragoman_worker.engines.vllm.request_failures import RequestFailures
from dragoman_worker.engines.vllm.start_failures import start_failure
from dragoman_worker.errors import Halt
from dragoman_worker.log import logger
from dragoman_worker.settings import EngineSettings

_REAP_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Built:
    """An engine that runs, and what is needed to use it and to end it."""

    client: Any
    """vLLM's AsyncLLM."""
    version: str
    on_cpu: bool
    sampling: Any
    """vLLM's module of sampling parameters."""
    failures: RequestFailures
    processes: tuple[BaseProcess, ...]
    report: Path
    folder: tempfile.TemporaryDirectory[str]


class Launch:
    """One attempt to build the engine. Raises SettingsError or Halt, both in one line.

    Building takes from 20 seconds to minutes and is synchronous. It runs in a thread, so that
    signals, probes and connections go on; AsyncLLM allows that: without a running loop it binds
    its sockets and its tasks to the loop that first generates.
    """

    def __init__(self, settings: EngineSettings, *, verbose: bool) -> None:
        self._settings = settings
        self._verbose = verbose
        self._given_up = threading.Event()
        self._before: frozenset[BaseProcess] = frozenset()
        self._made: list[Built] = []

    async def built(self) -> Built:
        """Build; if cancelled, end what has been started before passing the cancellation on."""
        self._before = frozenset(multiprocessing.active_children())
        thread = asyncio.create_task(asyncio.to_thread(self._build), name="vllm-build")
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError:
            await self._give_up(thread)
            raise
        return self._made.pop()

    async def _give_up(self, thread: asyncio.Task[None]) -> None:
        self._given_up.set()
        while not thread.done():
            core_process.kill(self._children())
            await asyncio.wait([thread], timeout=_REAP_S)
        if not thread.cancelled():
            thread.exception()  # it is the cancellation that is passed on
        while self._made:
            await asyncio.to_thread(self._made.pop().client.shutdown)

    def _children(self) -> tuple[BaseProcess, ...]:
        return tuple(set(multiprocessing.active_children()) - self._before)

    def _build(self) -> None:
        """Put the engine into `_made`.

        vLLM keeps exceptions whose tracebacks hold this frame and its callers': an engine that
        they named would live until the interpreter ends, and fail noisily then.
        """
        vllm, made = _prepare(self._settings, verbose=self._verbose)
        folder = tempfile.TemporaryDirectory(prefix="dragoman-engine-")
        report = Path(folder.name) / "end.json"
        try:
            self._made.append(self._join(vllm, made, report, folder))
        except (Exception, SystemExit) as error:
            failure = self._explain(error, core_process.read_report(report))
            folder.cleanup()
            raise failure from error

    def _join(
        self, vllm: Any, made: Any, report: Path, folder: tempfile.TemporaryDirectory[str]
    ) -> Built:
        return Built(
            client=self._client(vllm, made, report),
            version=str(vllm.__version__),
            on_cpu=this_device().cpu,
            sampling=_import_vllm("vllm.sampling_params"),
            failures=request_failures(),
            processes=self._children(),
            report=report,
            folder=folder,
        )

    def _client(self, vllm: Any, made: Any, report: Path) -> Any:
        context = _import_vllm("vllm.usage.usage_lib").UsageContext.LLM_CLASS
        core_class = _import_vllm("vllm.v1.engine.core").EngineCoreProc
        if self._given_up.is_set():
            raise Halt("the engine was given up before it was built")
        with core_process.guarded(core_class, report) as possible:
            if not possible:
                logger().warning("engine_not_guarded", vllm=str(vllm.__version__))
            return vllm.AsyncLLMEngine.from_engine_args(made, usage_context=context)

    def _explain(
        self, error: BaseException, report: core_process.Report | None
    ) -> SettingsError | Halt:
        if isinstance(error, SettingsError | Halt):
            return error
        reason = report.reason if report else None
        failure = start_failure(error, reason, self._settings.model or "")
        if isinstance(failure, Halt) and report:
            logger().error("engine_not_started", traceback=report.traceback)
        return failure


def check(settings: EngineSettings) -> None:
    """Find what is wrong with `settings` without building anything. Raises SettingsError."""
    _prepare(settings, verbose=False)


def _prepare(settings: EngineSettings, *, verbose: bool) -> tuple[Any, Any]:
    """vLLM's module and its AsyncEngineArgs; nothing of the model is loaded yet."""
    arguments.require_vllm()
    arguments.model_place(settings.model or "")
    arguments.prepare_environment(settings, verbose=verbose)
    vllm = _import_vllm("vllm")
    device = this_device()
    arguments.prepare_device(device, settings.options)
    return vllm, arguments.engine_arguments(
        settings, vllm.AsyncEngineArgs, str(vllm.__version__), device
    )


def request_failures() -> RequestFailures:
    """What this vLLM's exceptions mean."""
    return RequestFailures(
        _import_vllm("vllm.exceptions"), _import_vllm("vllm.v1.engine.exceptions")
    )


def this_device() -> arguments.Device:
    """What vLLM found to run on."""
    platform = _import_vllm("vllm.platforms").current_platform
    memory, name = 0, ""
    with suppress(Exception):  # some platforms cannot tell; then the smaller defaults hold
        memory = int(platform.get_device_total_memory())
        name = str(platform.get_device_name())
    return arguments.Device(cpu=bool(platform.is_cpu()), memory_bytes=memory, name=name)


def _import_vllm(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"engine.kind: vLLM cannot be imported here: {error}; install one that fits, or set "
            "engine.kind = 'echo'"
        ) from error
