"""How is an engine measured without being lived with? In a process that may die of it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from dragoman_connections.settings import ENV_PREFIX
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.load_generator import Drive

_LONGEST_LINE: Final = 2**26
START_S: Final = 1_800.0
"""A large model is read from a slow disk, compiled and captured within this, or it hangs."""
ORDER_S: Final = 300.0
"""No order waits for jobs: the longest, counting a sample's tokens, takes some seconds."""
_CLOSE_S: Final = 30.0
_GIVE_UP_S: Final = 2.0
_KNOB: Final = re.compile(r"\b((?:engine\.options|engine|limits)\.\w+)")


class Refused(Exception):
    """The engine did not start, or ended: why, and the setting to change if that is known.

    `lasting`: a setting is wrong. Anything else may pass, even where a setting would help: memory
    that something else holds, a process that was killed.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
        found = _KNOB.search(message)
        self.knob = found[1] if found else None


@dataclass(frozen=True, slots=True)
class Ready:
    """What an engine said once it was warm. `start_s` in seconds; `limits` are its EngineLimits."""

    start_s: float
    limits: Mapping[str, int]
    engine: Mapping[str, str]
    model: str


class EngineProcess:
    """An engine in a process and session of its own: nothing that it does ends us."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self.ready = Ready(0.0, {}, {}, "")

    @classmethod
    async def start(cls, settings: WorkerSettings, jobs: Path, log: Path) -> Self:
        """Start and warm it; its log goes to a file. Raises Refused."""
        ours, theirs = socket.socketpair()
        with theirs, log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "dragoman_worker.tuning.measure.engine_child"),
                str(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                env=_environment(),
                stdin=DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us alone
            )
        engine = cls(process, *await asyncio.open_connection(sock=ours, limit=_LONGEST_LINE))
        try:
            engine._say({"settings": _plain(settings), "jobs": str(jobs)})
            told = await engine._answer(START_S)
            engine.ready = Ready(
                start_s=told["start_s"],
                limits=told["limits"],
                engine=told["engine"],
                model=told["model"],
            )
        except BaseException:
            await engine.kill()
            raise
        return engine

    async def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Have something done; raises Refused if the engine is gone, and then it is all gone."""
        self._say({"do": do, **more})
        try:
            return await self._answer(ORDER_S)
        except Refused:
            await self.kill()
            raise

    async def begin(self, drive: Drive) -> None:
        """Hand jobs over from now on."""
        await self.ask("begin", drive=asdict(drive))

    async def close(self) -> None:
        """Let it end by itself, within a bound."""
        try:
            with suppress(OSError):
                self._say({"do": "stop"})
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._process.wait()
        finally:
            await self.kill()

    async def kill(self) -> None:
        """End it and all that it started. Idempotent."""
        self._writer.close()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GIVE_UP_S):  # it ends when the line does, and cleans up
                    await self._process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    def _say(self, what: Mapping[str, Any]) -> None:
        self._writer.write(json.dumps(what).encode() + b"\n")

    async def _answer(self, within_s: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(within_s):
                line = await self._reader.readline()
        except TimeoutError:  # an OSError too
            raise Refused(
                f"the engine gave no answer within {within_s:.0f} s; its log may say why"
            ) from None
        except OSError:
            line = b""
        if not line:
            raise Refused(_how_it_ended(await self._process.wait()))
        told: dict[str, Any] = json.loads(line)
        if told["event"] == "refused":
            raise Refused(told["message"], lasting=told["kind"] == "settings")
        return told


def _plain(settings: WorkerSettings) -> dict[str, Any]:
    """What an engine needs to know; no address and no password."""
    wanted = {"engine", "limits", "retry", "log"}
    return settings.model_dump(mode="json", include=wanted)


def _environment() -> dict[str, str]:
    """Ours without settings: those it is given are complete, and some are left out on purpose."""
    return {k: v for k, v in os.environ.items() if not k.startswith(ENV_PREFIX)}


def _how_it_ended(status: int) -> str:
    if status == -signal.SIGKILL:
        return (
            "the engine's process was killed (signal 9), usually because the machine ran out of "
            "memory; lower engine.options.max_num_seqs or max_num_batched_tokens"
        )
    if status < 0:
        return f"the engine's process was ended by signal {-status}"
    return f"the engine's process ended with status {status}; its log may say why"
