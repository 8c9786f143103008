"""The guarantees hold when one component fails in a way that is known to be harmful."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from support.chaos.fleet import Fleet
from support.chaos.ledger import Ledger, Spot
from support.chaos.netns import LinkedBrokers, LinkedDragoman, Links, why_not
from support.chaos.plan import Action, Stroke
from support.chaos.storm import Options, Row, explained, storm
from support.chaos.system import End

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.kafka,
    pytest.mark.redis,
]

RunStorm = Callable[..., Row]


def stroke(at_s: float, action: Action, hold_s: float = 0.0, target: str | None = None) -> Stroke:
    return Stroke(at_s=at_s, action=action, who=0.0, hold_s=hold_s, target=target)


def test_a_worker_that_continues_after_its_session_changes_nothing(run_storm: RunStorm) -> None:
    stop = stroke(4.0, Action.WORKER_STOP, hold_s=7.0, target="w0")
    row = run_storm(jobs=1_200, rate=100.0, workers=2, script=(stop,), session_timeout_s=3.0)
    assert row.stops == 1, "it was stopped with jobs in flight, for twice its session"
    assert row.duplicate_computations, "others repeated its work"


def test_a_worker_killed_while_redis_hangs_has_committed_no_job_without_a_result(
    run_storm: RunStorm,
) -> None:
    silence = stroke(4.0, Action.REDIS_STOP, hold_s=8.0)
    kill = stroke(8.0, Action.WORKER_KILL, hold_s=0.5, target="w0")
    row = run_storm(jobs=1_500, rate=120.0, workers=1, script=(silence, kill))
    assert (row.redis_outages, row.kills) == (1, 1)


def test_brokers_that_all_hang_or_die_at_once_cost_only_time(run_storm: RunStorm) -> None:
    hang = stroke(4.0, Action.ALL_BROKERS_STOP, hold_s=6.0)  # twice the session
    die = stroke(12.0, Action.ALL_BROKERS_KILL, hold_s=2.0)
    row = run_storm(jobs=1_000, rate=70.0, workers=2, script=(hang, die), session_timeout_s=3.0)
    assert row.broker_blows == 2


def test_scaling_up_and_down_redelivers_nothing_of_retained_partitions(run_storm: RunStorm) -> None:
    joins = [stroke(4.0, Action.WORKER_ADD, target=name) for name in ("w1", "w2")]
    leaves = [
        stroke(at_s, Action.WORKER_REMOVE, target=name)
        for at_s, name in ((10.0, "w1"), (12.0, "w2"))
    ]
    retained: list[int] = []

    def inspect(ledger: Ledger, ends: Mapping[str, End | None], fleet: Fleet) -> None:
        del fleet
        workers, again = by_partition(ledger, ends)
        retained.extend(number for number, names in workers.items() if names == {"w0"})
        assert {number: again[number] for number in retained if again[number]} == {}

    row = run_storm(
        jobs=20_000,  # an upper limit: the load ends with the last fault
        rate=100.0,
        latency_s=1.5,
        workers=1,
        script=(*joins, *leaves),
        in_turn=True,
        inspect=inspect,
    )
    assert (row.joins, row.drains + row.idle, row.skipped) == (2, 2, 0)
    assert retained, "at least one partition stayed with the first worker throughout"


def by_partition(
    ledger: Ledger, ends: Mapping[str, End | None]
) -> tuple[dict[int, set[str]], dict[int, list[str]]]:
    """Return who completed the jobs of each partition, and the jobs delivered more than once."""
    workers: dict[int, set[str]] = defaultdict(set)
    again: dict[int, list[str]] = defaultdict(list)
    spots: list[tuple[Spot, str]] = [
        (spot, sent.job_id) for spot, sent in ledger.entries(0) if sent.job_id is not None
    ]
    for (partition, _), job_id in spots:
        end = ends[job_id]
        assert end is not None
        result = json.loads(end.seen[1] or b"{}")
        if "worker_id" in result:
            workers[partition].add(result["worker_id"])
        if end.deliveries > 1:
            again[partition].append(job_id)
    return workers, again


def test_a_burst_and_a_rebalance_while_paused_never_exceed_the_limit_of_jobs_in_flight(
    run_storm: RunStorm,
) -> None:
    most = 64
    largest: dict[str, float] = defaultdict(float)

    def inspect(ledger: Ledger, ends: Mapping[str, End | None], fleet: Fleet) -> None:
        del ledger, ends
        largest.update(fleet.largest_in_flight)

    row = run_storm(
        jobs=3_000,
        rate=1_000.0,
        workers=1,
        settings={"limits.max_in_flight_jobs": most},
        script=(stroke(0.8, Action.WORKER_ADD),),
        inspect=inspect,
    )
    assert row.joins == 1
    assert most / 2 < max(largest.values()) <= most
    assert row.redeliveries <= 2 * most, "no member was removed from the group"


# --- half-open links ----------------------------------------------------------------------------


@pytest.fixture
def links() -> Iterator[Links]:
    if reason := why_not():
        pytest.skip(reason)
    with Links("kafka", "redis", "watch") as made:
        yield made


@pytest.mark.netns
def test_links_that_go_silent_one_after_the_other_cost_only_time(
    kafka_installed: Path, redis_installed: str, links: Links, tmp_path: Path
) -> None:
    del kafka_installed, redis_installed
    # Each cut lasts three times the session, and longer than any time-out of a Redis call.
    cuts = (
        stroke(4.0, Action.LINK_CUT, hold_s=9.0, target="w0 redis"),
        stroke(16.0, Action.LINK_CUT, hold_s=9.0, target="w0 kafka"),
    )
    options = Options(
        seed=42,
        jobs=1_250,
        rate=50.0,
        workers=1,
        partitions=4,
        session_timeout_s=3.0,
        script=cuts,
        folder=tmp_path,
    )
    with LinkedBrokers(links.host("kafka")) as brokers:
        row = storm(brokers, LinkedDragoman(links, brokers), options)
    assert not row.broken, explained(row, Path(row.timeline), options)
    assert (row.cuts, row.failed) == (2, 0), row.problems
