"""A real Prometheus scrapes a busy worker: every query and every alert finds its data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ci_scripts import script
from support.processes.monitored import RULES, Monitored, monitored
from support.processes.waiting import wait_until
from support.services.kafka_broker import KafkaBroker
from support.services.prometheus import Prometheus
from support.services.redis_server import RedisServer

_dashboards: Any = script("dashboards")
_ONLY_WITH_A_GPU = ("dragoman_gpu_",)


@pytest.fixture
def busy(
    kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str], tmp_path: Path
) -> Iterator[Monitored]:
    with monitored(kafka, redis_server, topic, tmp_path) as started:
        yield started


def _asked(expression: str) -> str:
    """Return a dashboard's expression as Grafana sends it."""
    found = re.sub(r"\$(job|instance|replica)\b", ".*", expression)
    return found.replace("$__rate_interval", "30s").replace("$__range", "5m")


def _queries() -> dict[str, str]:
    return {
        f"{board.name}: {title}: {expression}": _asked(expression)
        for board in _dashboards.BOARDS
        for title, expression in _dashboards.expressions(board)
        if not any(name in expression for name in _ONLY_WITH_A_GPU)
    }


def _alert_metrics() -> set[str]:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    text = " ".join(rule["expr"] for rule in group["rules"])
    return set(re.findall(r"\bdragoman_[a-z_]+", text))


def test_every_query_and_alert_finds_data_of_a_busy_worker(busy: Monitored) -> None:
    prometheus = busy.prometheus
    wait_until(
        lambda: prometheus.query("dragoman_dead_letters_total"), timeout_s=60, what="a first scrape"
    )
    missing = _queries() | {name: name for name in _alert_metrics()}
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
    wait_until(
        lambda: {rule["health"] for rule in prometheus.rules()} == {"ok"},
        timeout_s=60,
        what="an evaluation of every alert",
    )
    # A worker that is ready and finishes its work is about to wake nobody.
    wait_until(lambda: _waking(prometheus) == [], timeout_s=60, what="no page pending")


def _waking(prometheus: Prometheus) -> list[str]:
    rules = [rule for rule in prometheus.rules() if rule["labels"]["severity"] == "page"]
    assert rules
    return [rule["name"] for rule in rules if rule["state"] != "inactive"]


def _has_data(series: list[dict[str, Any]]) -> bool:
    return any(one["value"][1] != "NaN" for one in series)
