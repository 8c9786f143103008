"""Engines of one point start side by side unless they measure memory, and all or none of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman_connections.settings import load_settings
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure import engine_pool
from dragoman_worker.tuning.measure.engine_pool import EnginePool
from dragoman_worker.tuning.measure.engine_process import EngineProcess, EngineRefused

SETTINGS = load_settings(WorkerSettings, None, {"engine.kind": "echo"})
MEASURES = Place(measures_memory=True)


class FakeEngine(EngineProcess):
    """An engine that starts when the test says so. `started` lists those that have begun to."""

    started: list[FakeEngine]
    refused_at: dict[int, bool]
    """Whether the refusal is lasting, by the number of the start."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.is_ready = self.killed = False

    @classmethod
    async def start(
        cls, settings: WorkerSettings, place: Place, jobs: Path, log: Path
    ) -> FakeEngine:
        engine = cls()
        number = len(cls.started)
        cls.started.append(engine)
        try:
            await engine.go.wait()
        except asyncio.CancelledError:
            engine.killed = True
            raise
        if number in cls.refused_at:
            raise EngineRefused(f"refused {number}", lasting=cls.refused_at[number])
        engine.is_ready = True
        return engine

    async def kill(self) -> None:
        self.killed = True

    async def close(self) -> None:
        self.killed = True


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeEngine]:
    FakeEngine.started, FakeEngine.refused_at = [], {}
    monkeypatch.setattr(engine_pool, "EngineProcess", FakeEngine)
    return FakeEngine


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def starting(
    tmp_path: Path, places: list[Place]
) -> tuple[EnginePool, asyncio.Task[None], list[str]]:
    texts: list[str] = []
    pool = EnginePool(tmp_path / "jobs", tmp_path / "log", texts.append)
    return pool, asyncio.create_task(pool.replace("k", SETTINGS, places, "as given")), texts


async def test_engines_of_given_bytes_start_side_by_side(
    tmp_path: Path, fake: type[FakeEngine]
) -> None:
    pool, start, texts = starting(tmp_path, [Place()] * 3)
    await turns()
    assert len(fake.started) == 3
    assert not pool.holds("k")
    for engine in fake.started:
        engine.go.set()
    await start
    assert pool.holds("k")
    assert pool.engines == fake.started
    assert texts == ["starting 3 engines: as given"]


async def test_an_engine_that_measures_memory_waits_for_the_one_before(
    tmp_path: Path, fake: type[FakeEngine]
) -> None:
    pool, start, texts = starting(tmp_path, [MEASURES] * 2)
    await turns()
    assert len(fake.started) == 1
    fake.started[0].go.set()
    await turns()
    assert len(fake.started) == 2
    fake.started[1].go.set()
    await start
    assert pool.engines == fake.started
    assert texts == ["starting the engine 1 of 2: as given", "starting the engine 2 of 2: as given"]


async def test_one_refused_engine_ends_those_that_run_and_those_that_start(
    tmp_path: Path, fake: type[FakeEngine]
) -> None:
    fake.refused_at = {1: True}
    pool, start, _ = starting(tmp_path, [Place()] * 3)
    await turns()
    ready, refused, slow = fake.started
    ready.go.set()
    await turns()
    refused.go.set()
    await turns()
    assert start.done(), "the slow one is not waited for"
    with pytest.raises(EngineRefused, match="refused 1"):
        await start
    assert ready.is_ready
    assert (ready.killed, slow.killed) == (True, True)
    assert pool.engines == []
    assert not pool.holds("k")


async def test_an_engine_refused_beside_others_starts_once_more_alone(
    tmp_path: Path, fake: type[FakeEngine]
) -> None:
    """It may have read the index of compiled functions while another engine wrote it."""
    fake.refused_at = {0: False, 1: False}
    pool, start, texts = starting(tmp_path, [Place()] * 3)
    await turns()
    for engine in fake.started[:2]:
        engine.go.set()
    await turns()
    assert len(fake.started) == 3, "not before the others have started"
    for number in (2, 3, 4):
        fake.started[number].go.set()
        await turns()
        assert len(fake.started) == min(number + 2, 5), "one after another"
    await start
    assert pool.engines == fake.started[2:]
    assert pool.holds("k")
    assert texts[1:] == [
        f"starting one engine again, without others: refused {each}" for each in (0, 1)
    ]


async def test_an_engine_refused_alone_after_the_others_refuses_the_point(
    tmp_path: Path, fake: type[FakeEngine]
) -> None:
    fake.refused_at = {1: False, 2: False}
    pool, start, _ = starting(tmp_path, [Place()] * 2)
    await turns()
    for engine in fake.started:
        engine.go.set()
    await turns()
    fake.started[2].go.set()
    with pytest.raises(EngineRefused, match="refused 2"):
        await start
    assert fake.started[0].killed
    assert len(fake.started) == 3
    assert pool.engines == []


@pytest.mark.parametrize("places", [[Place()], [MEASURES] * 2])
async def test_an_engine_that_starts_beside_no_other_is_refused_at_once(
    tmp_path: Path, fake: type[FakeEngine], places: list[Place]
) -> None:
    fake.refused_at = {0: False}
    _, start, _ = starting(tmp_path, places)
    await turns()
    fake.started[0].go.set()
    with pytest.raises(EngineRefused, match="refused 0"):
        await start
    assert len(fake.started) == 1


async def test_ctrl_c_while_engines_start_ends_all_of_them(
    tmp_path: Path, fake: type[FakeEngine]
) -> None:
    pool, start, _ = starting(tmp_path, [Place()] * 3)
    await turns()
    fake.started[0].go.set()
    await turns()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert all(engine.killed for engine in fake.started)
    assert pool.engines == []
