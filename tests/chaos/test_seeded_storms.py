"""The guarantees hold in short seeded storms; `make chaos` and `make soak` run long ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.chaos.storm import Row

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.kafka,
    pytest.mark.redis,
]

RunStorm = Callable[..., Row]


def test_nothing_is_lost_wrong_or_changed_in_a_seeded_storm(run_storm: RunStorm) -> None:
    # In 28 s a worker is killed, another joins, a broker is restarted and Redis is killed.
    row = run_storm(seed=20, jobs=3_360, rate=120.0, supervised=True)
    assert row.kills + row.stops + row.drains + row.broker_blows + row.redis_outages
    assert row.comparisons > 1_000, "finished results were read again and again"


def test_workers_killed_with_hundreds_of_jobs_in_flight_lose_nothing(run_storm: RunStorm) -> None:
    kills = ("worker kill", "replica kill")
    row = run_storm(seed=3, jobs=1_800, rate=125.0, only=kills, supervised=True)
    assert row.kills, "a busy worker was killed"
    assert row.duplicate_computations <= row.redeliveries + row.struck_in_flight
