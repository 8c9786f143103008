"""Engine processes that hang or whose shutdown is interrupted are killed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman_connections.child import ChildProcess
from dragoman_connections.settings import load_settings
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure import engine_process
from dragoman_worker.tuning.measure.engine_process import EngineProcess, EngineRefused

KILLED = -signal.SIGKILL


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "_EXIT_S", 0.05)


@asynccontextmanager
async def unresponsive_engine() -> AsyncIterator[tuple[EngineProcess, ChildProcess]]:
    """Start a process that neither answers nor exits."""
    process = await ChildProcess.start(lambda _: ("sleep", "600"))
    try:
        yield EngineProcess(process), process
    finally:
        await process.end()


async def test_a_command_without_an_answer_kills_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_process, "ANSWER_S", 0.05)
    async with asyncio.timeout(30), unresponsive_engine() as (engine, process):
        with pytest.raises(EngineRefused, match="gave no answer within 0 s") as refused:
            await engine.ask("look")
        assert process.status == KILLED
        assert not refused.value.lasting


async def test_a_start_that_never_finishes_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(engine_process, "START_S", 0.0)
    settings = load_settings(WorkerSettings, None, {"engine.kind": "echo"})
    async with asyncio.timeout(30):
        with pytest.raises(EngineRefused, match="gave no answer within 0 s"):
            await EngineProcess.start(settings, Place(), tmp_path / "jobs.jsonl", tmp_path / "log")


async def test_ctrl_c_while_an_engine_closes_kills_it() -> None:
    async with asyncio.timeout(30), unresponsive_engine() as (engine, process):
        closing = asyncio.create_task(engine.close())
        await asyncio.sleep(0)  # `close` has closed the channel and waits
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert process.status == KILLED


async def test_a_second_ctrl_c_kills_it_too() -> None:
    async with asyncio.timeout(30), unresponsive_engine() as (engine, process):
        killing = asyncio.create_task(engine.kill())
        await asyncio.sleep(0)
        killing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await killing
        assert await process.wait() == KILLED


def test_an_engine_gets_the_options_of_its_place() -> None:
    settings = load_settings(
        WorkerSettings, None, {"engine.model": "some/model", "engine.options.max_num_seqs": 8}
    )
    place = Place(("0",), {"engine.options.kv_cache_memory_bytes": 2**33})
    given = engine_process._engine_settings(settings, place)["engine"]["options"]
    assert given == {"max_num_seqs": 8, "kv_cache_memory_bytes": 2**33}
