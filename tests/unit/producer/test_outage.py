"""One rule for outages: what was reached is waited for, what was not is an error at once."""

from __future__ import annotations

import asyncio

import pytest

from dragoman_producer.errors import StoreUnreachable
from dragoman_producer.operations import outage
from dragoman_producer.operations.outage import Outage


class Service:
    """Does not answer the first times that it is asked."""

    def __init__(self, away: int) -> None:
        self.asked = 0
        self._away = away

    async def ask(self) -> int:
        self.asked += 1
        if self.asked <= self._away:
            raise StoreUnreachable("Redis is away")
        return self.asked


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "_PAUSE_S", 0.0)


async def test_a_service_that_was_never_reached_is_an_error_at_once() -> None:
    told: list[str] = []
    service = Service(1)
    with pytest.raises(StoreUnreachable):
        await Outage(told.append).over(service.ask)
    assert (service.asked, told) == (1, [])


async def test_a_service_that_was_reached_is_waited_for_and_told_once_per_outage() -> None:
    told: list[str] = []
    over = Outage(told.append).over
    assert await over(Service(0).ask) == 1
    assert await over(Service(3).ask) == 4
    assert told == ["Redis is away"]
    assert await over(Service(1).ask) == 2
    assert told == ["Redis is away"] * 2


async def test_work_that_waits_at_once_tells_of_one_outage() -> None:
    told: list[str] = []
    shared = Outage(told.append)
    shared.reached()
    services = [Service(1) for _ in range(20)]
    assert await asyncio.gather(*(shared.over(each.ask) for each in services)) == [2] * 20
    assert told == ["Redis is away"]


@pytest.mark.parametrize("limit", ["patience", "until"])
async def test_waiting_ends_with_the_patience_or_the_time_of_the_command(limit: str) -> None:
    now = asyncio.get_running_loop().time()
    ended = Outage(str, patience_s=0.0) if limit == "patience" else Outage(str, until=now)
    ended.reached()
    with pytest.raises(StoreUnreachable):
        await ended.over(Service(1).ask)
