"""Does the promise hold in storms? Short seeds here; `make chaos` and `make soak` run long ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.chaos.storm import Row

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.kafka,
    pytest.mark.redis,
    pytest.mark.timeout(300),
]

Weather = Callable[..., Row]


def test_nothing_is_lost_wrong_or_changed_in_a_seeded_storm(weather: Weather) -> None:
    # Within its 28 s a worker is killed, another joins, a broker is bounced and Redis killed.
    row = weather(seed=20, jobs=3_360, rate=120.0)
    assert row.kills + row.stops + row.drains + row.broker_blows + row.redis_outages
    assert row.comparisons > 1_000, "finished results were read again and again"


def test_workers_killed_with_hundreds_of_jobs_in_hand_lose_nothing(weather: Weather) -> None:
    row = weather(seed=3, jobs=1_800, rate=125.0, only=("worker kill", "replica kill"))
    assert row.kills, "a blow to a busy worker"
    assert row.duplicate_computations <= row.redeliveries + row.struck_in_flight
