"""A real Prometheus scrapes a busy worker: every query and every alert finds its data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.monitoring_queries import alert_queries, dashboard_queries
from support.processes.monitored import Monitored, monitored
from support.processes.waiting import wait_until
from support.services.kafka_broker import KafkaBroker
from support.services.prometheus import Prometheus
from support.services.redis_server import RedisServer


@pytest.fixture
def busy(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> Iterator[Monitored]:
    with monitored(kafka, redis_server, topic, tmp_path) as started:
        yield started


def test_every_query_and_alert_finds_data_of_a_busy_worker(busy: Monitored) -> None:
    prometheus = busy.prometheus
    wait_until(
        lambda: prometheus.query("dragoman_dead_letters_total"), timeout_s=60, what="a first scrape"
    )
    missing = dashboard_queries("30s") | alert_queries()
    waves = iter(range(1_000_000))

    def all_found() -> bool:
        busy.publish(next(waves))
        for title in [
            title for title, query in missing.items() if _has_data(prometheus.query(query))
        ]:
            del missing[title]
        return not missing

    try:
        wait_until(all_found, timeout_s=60, what="data", longest_pause_s=1.0)
    finally:
        assert list(missing) == []
    shares = {
        (title, share)
        for title, query in dashboard_queries("30s", unit="percentunit").items()
        for share in _numbers(prometheus.query(query))
    }
    # A rate over a few scrapes may be a little above 1.
    assert [title for title, share in shares if not 0 <= share < 1.5] == []
    wait_until(
        lambda: {rule["health"] for rule in prometheus.rules()} == {"ok"},
        timeout_s=60,
        what="an evaluation of every alert",
    )
    # A worker that is ready and finishes its work is about to wake nobody.
    wait_until(lambda: _waking(prometheus) == [], timeout_s=60, what="no page pending")


def _waking(prometheus: Prometheus) -> list[str]:
    rules = [
        rule for rule in prometheus.rules() if rule.get("labels", {}).get("severity") == "page"
    ]
    assert rules
    return [rule["name"] for rule in rules if rule["state"] != "inactive"]


def _has_data(series: list[dict[str, Any]]) -> bool:
    return _numbers(series) != []


def _numbers(series: list[dict[str, Any]]) -> list[float]:
    values = (float(one["value"][1]) for one in series)
    return [value for value in values if not math.isnan(value)]
