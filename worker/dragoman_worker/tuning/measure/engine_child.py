"""Child process that holds an engine while it is measured.

usage: python -m dragoman_worker.tuning.measure.engine_child DESCRIPTOR

Started by `EngineProcess`. Commands and answers are JSON. When the parent closes the channel, the
child closes the engine and exits.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dragoman_connections.child import AsyncChannel, ChannelClosed, connected
from dragoman_connections.settings import SettingsError
from dragoman_schemas.jobs import TranslationJob
from dragoman_worker import log
from dragoman_worker.engines.starting import open_engine
from dragoman_worker.errors import WorkerError
from dragoman_worker.ports import Engine
from dragoman_worker.process.event_loop import run_loop
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.load_generator import Drive, LoadGenerator


class EngineChild:
    """One engine, its load generator and the channel to the parent."""

    def __init__(self, channel: AsyncChannel) -> None:
        self._channel = channel
        self._load: LoadGenerator | None = None

    async def run(self) -> None:
        """Start the engine of the first message, then execute commands until the channel ends."""
        first = json.loads(await self._channel.receive())
        settings = WorkerSettings.model_validate(first["settings"])
        log.configure(settings.log, worker_id="tuning")
        try:
            engine = open_engine(settings.engine, log_level=settings.log.level)
        except SettingsError as invalid:
            self._send(**_refusal(invalid))
            return
        work = asyncio.create_task(self._work(engine, settings, first["jobs"]))
        end = asyncio.create_task(self._end(work))
        try:
            await asyncio.wait({work})
            if not work.cancelled() and (error := work.exception()) is not None:
                self._send(**_refusal(error))
        finally:
            end.cancel()
            if self._load is not None:
                await self._load.end()
            await engine.close()

    async def _end(self, work: asyncio.Task[None]) -> None:
        await self._channel.ended()
        work.cancel()

    async def _work(self, engine: Engine, settings: WorkerSettings, jobs: str) -> None:
        began = time.perf_counter()
        await engine.start()
        start_s = time.perf_counter() - began
        self._load = load = LoadGenerator(engine, settings, _read(Path(jobs)))
        await load.prepare()
        limits, info = asdict(engine.limits), engine.info.model_dump()
        facts = {"limits": limits, "engine": info, "model": engine.model}
        self._send(event="ready", start_s=round(start_s, 2), **facts)
        while True:
            command = json.loads(await self._channel.receive())
            answer = await self._execute(load, command)
            if (failure := load.failure()) is not None:
                raise failure
            self._send(event="done", **answer)

    async def _execute(self, load: LoadGenerator, command: dict[str, Any]) -> dict[str, Any]:
        match command["do"]:
            case "survey":
                return load.survey(command["most"])
            case "begin":
                load.begin(Drive(**command["drive"]))
            case "open":
                load.open()
            case "close":
                return {"window": load.close(to_the_last=command["to_the_last"])}
            case "end":
                await load.end()
            case _:
                pass  # "look" wants only the count that every answer has
        return {"jobs_done": load.done}

    def _send(self, **fields: Any) -> None:
        self._channel.send(json.dumps(fields).encode())


def _refusal(error: BaseException) -> dict[str, str]:
    if isinstance(error, SettingsError):
        return {"event": "refused", "kind": "settings", "message": str(error)}
    known = isinstance(error, WorkerError)
    # The text of a job must not reach a row: a defect is reported by its place alone.
    message = str(error) if known else f"a defect: {log.where(error)}"
    return {"event": "refused", "kind": "failed", "message": message}


def _read(path: Path) -> list[TranslationJob]:
    lines = path.read_bytes().splitlines()
    return [TranslationJob.model_validate_json(line) for line in lines]


async def _main(descriptor: int) -> None:
    channel = await AsyncChannel.over(connected(descriptor))
    with suppress(ChannelClosed):
        await EngineChild(channel).run()
    channel.close()
    await channel.ended()  # all is written


if __name__ == "__main__":
    run_loop(_main(int(sys.argv[1])))
