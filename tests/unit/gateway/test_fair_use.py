"""Room, rate and quota of each key, and the wait that new jobs would have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_gateway.backlog import TopicBacklog
from dragoman_gateway.errors import ApiError
from dragoman_gateway.keys import Key
from dragoman_gateway.rooms import Rooms
from dragoman_gateway.usage import KeyUsage
from dragoman_producer.errors import BrokerRefused, BrokerUnreachable, StoreUnreachable
from dragoman_producer.operations.topics import PartitionState
from dragoman_schemas.names import Keys
from support.fakes.played_gateway import CountsInMemory, PlayedGateway, write_keys

HEADERS = {"Authorization": "DeepL-Auth-Key s3cret"}


def asked(text: str) -> dict[str, str]:
    return {"text": text, "source_lang": "EN", "target_lang": "DE"}


async def test_a_full_room_is_waited_for_and_then_429() -> None:
    rooms, key = Rooms(patience_s=0.1), Key(id="a", max_in_flight=1)
    async with rooms.enter(key, 5):
        with pytest.raises(ApiError) as refused:
            async with rooms.enter(key, 5):
                pass
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    async with rooms.enter(key, 5):
        pass


async def test_who_waits_gets_the_room_that_another_leaves() -> None:
    rooms, key = Rooms(patience_s=30), Key(id="a", max_in_flight=1)
    order: list[int] = []

    async def use(number: int) -> None:
        async with rooms.enter(key, 1):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(use(number) for number in range(50)))
    assert order == list(range(50))


async def test_a_key_never_waits_for_another() -> None:
    rooms = Rooms(patience_s=0.1)
    async with rooms.enter(Key(id="a", max_in_flight=1), 1), rooms.enter(Key(id="b"), 1):
        pass


async def test_a_request_larger_than_the_room_has_it_alone() -> None:
    rooms, key = Rooms(patience_s=0.1), Key(id="a", max_characters_in_flight=10)
    async with rooms.enter(key, 100):
        with pytest.raises(ApiError):
            async with rooms.enter(key, 1):
                pass


async def test_a_rate_spreads_requests_and_refuses_what_would_wait_for_long() -> None:
    rooms, key = Rooms(patience_s=0.3), Key(id="a", requests_per_s=10)
    began = asyncio.get_running_loop().time()
    for _ in range(3):
        async with rooms.enter(key, 1):
            pass
    assert asyncio.get_running_loop().time() - began >= 0.19
    results = await asyncio.gather(*(_enter(rooms, key) for _ in range(20)), return_exceptions=True)
    assert any(isinstance(each, ApiError) for each in results)


async def _enter(rooms: Rooms, key: Key) -> None:
    async with rooms.enter(key, 1):
        pass


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=30))
def test_rooms_end_empty_whoever_leaves_or_is_cancelled(work: list[tuple[int, bool]]) -> None:
    async def play() -> None:
        rooms, key = Rooms(patience_s=5), Key(id="a", max_in_flight=3, max_characters_in_flight=40)

        async def use(characters: int) -> None:
            async with rooms.enter(key, characters):
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(use(size)) for size, _ in work]
        await asyncio.sleep(0)
        for task, (_, cancelled) in zip(tasks, work, strict=True):
            if cancelled:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(5), rooms.enter(key, 1_000):
            pass

    asyncio.run(play())


async def test_a_quota_is_456_for_deepl_and_403_for_libretranslate(tmp_path: Path) -> None:
    keys = write_keys(tmp_path, "s3cret\ncharacters_per_month = 10")
    async with PlayedGateway(keys_file=keys) as gateway:
        first, _ = await gateway.post("/v2/translate", asked("Ten chars."), headers=HEADERS)
        second, body = await gateway.post("/v2/translate", asked("A"), headers=HEADERS)
        libre, _ = await gateway.post(
            "/translate", {"q": "A", "source": "en", "target": "de"}, headers=HEADERS
        )
        _, usage = await gateway.get("/v2/usage", headers=HEADERS)
    assert (first, second, libre) == (200, 456, 403)
    assert body == {"message": "Quota exceeded: 10 characters a month."}
    assert usage == {"character_count": 10, "character_limit": 10}


async def test_counts_wait_while_redis_is_away() -> None:
    class Flaky(CountsInMemory):
        away = True

        async def send(self, *calls: Any) -> list[list[Any]]:
            if self.away:
                raise StoreUnreachable("away")
            return await super().send(*calls)

    counts = Flaky()
    usage, key = KeyUsage(counts, Keys()), Key(id="a")
    usage.add(key, 3)
    await usage.flush()
    counts.away = False
    usage.add(key, 4)
    await usage.flush()
    assert (await usage.of(key), list(counts.counts.values())) == (7, [7])


class Lags:
    """A topic whose lag and commits a test sets, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.backlog = TopicBacklog(self.read, self.said.append, clock=lambda: self.now)

    said: list[str] = []  # noqa: RUF012 - set anew in each test that reads it

    async def read(self) -> list[PartitionState]:
        raise BrokerRefused("grant DESCRIBE on the group")

    def at(self, now: float, *, settled: int, lag: int) -> float:
        """Note a reading and return the wait."""
        self.now = now
        self.backlog.note([PartitionState("t", 0, 0, settled + lag, settled)])
        return self.backlog.wait_s("t")


def test_the_wait_is_the_lag_by_the_pace_of_the_last_minute() -> None:
    lags = Lags()
    assert lags.at(0, settled=0, lag=0) == 0
    assert lags.at(5, settled=0, lag=1000) == 5  # nothing settled for 5 s
    assert lags.at(10, settled=50, lag=1000) == pytest.approx(200)
    assert lags.at(15, settled=100, lag=0) == 0


def test_a_topic_that_nobody_reads_waits_for_as_long_as_nothing_is_settled() -> None:
    lags = Lags()
    waits = [lags.at(5.0 * step, settled=7, lag=1 + step) for step in range(400)]
    assert waits[-1] == pytest.approx(5.0 * 399)
    assert lags.at(2_000, settled=8, lag=10) > 300
    waits = [lags.at(2_005 + 5.0 * step, settled=8 + 100 * step, lag=10) for step in range(30)]
    assert waits[-1] < 1


async def test_without_the_right_to_see_the_lag_nothing_is_shed_and_that_is_said_once() -> None:
    lags = Lags()
    lags.said.clear()
    await lags.backlog.forever()
    assert lags.said == ["no load is shed: grant DESCRIBE on the group"]
    assert lags.backlog.wait_s("t") == 0


async def test_a_broker_that_is_away_leaves_the_last_wait() -> None:
    calls = asyncio.Event()

    async def away() -> list[PartitionState]:
        calls.set()
        raise BrokerUnreachable("away")

    backlog = TopicBacklog(away, lambda _: None)
    task = asyncio.create_task(backlog.forever())
    await calls.wait()
    await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_would_wait_for_too_long_is_refused_at_once_and_results_are_not() -> None:
    shedding = False

    def admit(*_: object) -> None:
        if shedding:
            raise ApiError(503, "600 s of work are waiting. Ask later.", 30)

    async with PlayedGateway(admit=admit) as gateway:
        await gateway.post("/v2/translate", asked("Known."))
        shedding = True
        known, _ = await gateway.post("/v2/translate", asked("Known."))
        new, _ = await gateway.post("/v2/translate", asked("New."))
        languages, _ = await gateway.get("/v2/languages")
    assert (known, new, languages) == (200, 503, 200)
