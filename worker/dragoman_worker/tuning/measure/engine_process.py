"""Engine under measurement, in a process of its own that may crash."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from dragoman_connections.child import ChannelClosed, ChildProcess
from dragoman_connections.settings import ENV_PREFIX
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.load_generator import Drive

_MODULE: Final = "dragoman_worker.tuning.measure.engine_child"
START_S: Final = 1_800.0
"""Longest start: a large model from a slow disk is read, compiled and captured within it."""
ANSWER_S: Final = 300.0
"""Longest wait for an answer. No command waits for jobs; the longest takes some seconds."""
_CLOSE_S: Final = 30.0
_EXIT_S: Final = 2.0
_SETTING: Final = re.compile(r"\b((?:engine\.options|engine|limits)\.\w+)")


class EngineRefused(Exception):
    """The engine did not start or has died; the message gives the reason.

    `setting` is the name of the setting to change, if the message names one. `lasting` means that
    a setting is invalid. Other causes may pass, even where a setting would help: memory that
    another process holds, or a killed process.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
        found = _SETTING.search(message)
        self.setting = found[1] if found else None


@dataclass(frozen=True, slots=True)
class Ready:
    """Facts about a warm engine: seconds its start took, its EngineLimits, its name and model."""

    start_s: float
    limits: Mapping[str, int]
    engine: Mapping[str, str]
    model: str


class EngineProcess:
    """An engine in a process and session of its own, so that its crash does not end the parent."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process
        self.ready = Ready(0.0, {}, {}, "")

    @classmethod
    async def start(cls, settings: WorkerSettings, place: Place, jobs: Path, log: Path) -> Self:
        """Start and warm an engine in its place; its log is appended to a file.

        Raises EngineRefused.
        """
        with log.open("ab") as output:
            process = await ChildProcess.start(
                lambda descriptor: (sys.executable, "-P", "-m", _MODULE, descriptor),
                env={**_environment(), **place.environment},
                stdout=output,
                stderr=output,
            )
        engine = cls(process)
        try:
            own_settings = _engine_settings(settings, place)
            engine._send({"settings": own_settings, "jobs": str(jobs)})
            answer = await engine._answer(START_S)
            engine.ready = Ready(
                start_s=answer["start_s"],
                limits=answer["limits"],
                engine=answer["engine"],
                model=answer["model"],
            )
        except BaseException:
            await engine.kill()
            raise
        return engine

    async def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Send a command and return the answer.

        Raises EngineRefused if the engine died; nothing of it is left then.
        """
        self._send({"do": do, **more})
        try:
            return await self._answer(ANSWER_S)
        except EngineRefused:
            await self.kill()
            raise

    async def begin(self, drive: Drive) -> None:
        """Start to hand over jobs."""
        await self.ask("begin", drive=asdict(drive))

    async def close(self) -> None:
        """Let the process close its engine within 30 s, then kill it."""
        await self._end(_CLOSE_S)

    async def kill(self) -> None:
        """Kill the process and all that it started. Idempotent."""
        await self._end(_EXIT_S)

    async def _end(self, within_s: float) -> None:
        await self._process.end(within_s)
        await self._process.wait()  # its GPU memory is free then

    def _send(self, message: Mapping[str, Any]) -> None:
        self._process.channel.send(json.dumps(message).encode())

    async def _answer(self, within_s: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(within_s):
                answer: dict[str, Any] = json.loads(await self._process.channel.receive())
        except TimeoutError:
            raise EngineRefused(
                f"the engine gave no answer within {within_s:.0f} s; its log may say why"
            ) from None
        except ChannelClosed:
            raise EngineRefused(_exit_reason(await self._process.wait())) from None
        if answer["event"] == "refused":
            raise EngineRefused(answer["message"], lasting=answer["kind"] == "settings")
        return answer


def _engine_settings(settings: WorkerSettings, place: Place) -> dict[str, Any]:
    """Return the settings that an engine needs in its place; no address and no password."""
    wanted = {"engine", "limits", "retry", "log"}
    dumped = settings.model_dump(mode="json", include=wanted)
    dumped["engine"]["options"] |= place.engine_options
    return dumped


def _environment() -> dict[str, str]:
    """Return the environment without settings: the child gets complete ones from its parent."""
    return {k: v for k, v in os.environ.items() if not k.startswith(ENV_PREFIX)}


def _exit_reason(status: int) -> str:
    if status == -signal.SIGKILL:
        return (
            "the engine's process was killed (signal 9), usually because the machine ran out of "
            "memory; lower engine.options.max_num_seqs or max_num_batched_tokens"
        )
    if status < 0:
        return f"the engine's process was terminated by signal {-status}"
    return f"the engine's process exited with status {status}; its log may say why"
