"""Plots of every dashboard query, from a real Prometheus that scrapes a busy worker.

usage: dashboards.py [--engine echo] [--seconds 90] [--out build/dashboards]

Starts Kafka, Redis, `dragoman-worker run` and Prometheus on free ports, publishes a wave of jobs
every few seconds, larger ones in the middle, and writes one PNG per dashboard. With --engine vllm
the worker has a real vLLM with the demo's model on the CPU. Grafana is not needed. A panel without
data says so. Prints each query of a dashboard and each operand of an alert that returned no data,
and exits with 1 if there is one. Queries of GPUs are not asked.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / ".ci"))
from boards import BOARDS, Board, Chart, Figure

from support.monitoring_queries import ONLY_WITH_A_GPU, alert_queries, as_sent, dashboard_queries
from support.processes.monitored import ECHO, VLLM, Monitored, monitored
from support.services.kafka_broker import KafkaBroker
from support.services.prometheus import Prometheus
from support.services.redis_server import RedisServer

_OUT = Path(__file__).parents[1] / "build" / "dashboards"
_LOADS = {"echo": ECHO, "vllm": VLLM}
_RATE_INTERVAL = "15s"
Span = tuple[float, float]


def busy(started: Monitored, seconds: float) -> Span:
    """Publish waves of jobs for `seconds`; return when that began and ended."""
    began = time.time()
    wave = 0
    while (passed := time.time() - began) < seconds:
        started.publish(wave, jobs=300 if seconds / 3 < passed < seconds / 2 else 60)
        wave += 1
        time.sleep(3)
    return began, time.time()


def queries(panel: Figure | Chart) -> Iterator[tuple[str, str]]:
    """Return expressions and legends of a panel."""
    if isinstance(panel, Figure):
        yield panel.expression, ""
    else:
        yield from panel.queries


def legend(template: str, labels: dict[str, str]) -> str:
    """Return Grafana's legend of one series."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), template)


def draw(axes: Axes, panel: Figure | Chart, prometheus: Prometheus, span: Span) -> None:
    """Draw one panel."""
    axes.set_title(f"{panel.title} [{panel.unit}]", fontsize=8)
    axes.tick_params(labelsize=6)
    for expression, template in queries(panel):
        for series in prometheus.query_range(as_sent(expression, _RATE_INTERVAL), *span):
            values = {round(at - span[0]): float(value) for at, value in series["values"]}
            # A moment without a value is a gap in the line, as in Grafana.
            times = range(int(span[1] - span[0]) + 1)
            numbers = [values.get(time, math.nan) for time in times]
            axes.plot(times, numbers, linewidth=1, label=legend(template, series["metric"]))
    if not axes.lines:
        axes.text(0.5, 0.5, "no data", ha="center", transform=axes.transAxes)
    elif isinstance(panel, Chart):
        axes.legend(fontsize=5, ncols=2)


def plot(board: Board, prometheus: Prometheus, span: Span, file: Path) -> None:
    """Write the picture of one dashboard."""
    shown = [panel for row in board.rows.values() for panel in row]
    rows = math.ceil(len(shown) / 4)
    figure, grid = plt.subplots(rows, 4, figsize=(20, 2.6 * rows), squeeze=False)
    places = [axes for row in grid for axes in row]
    for axes, panel in zip(places, shown, strict=False):
        draw(axes, panel, prometheus, span)
    for axes in places[len(shown) :]:
        axes.set_axis_off()
    figure.suptitle(board.title)
    figure.tight_layout()
    figure.savefig(file, dpi=80)
    plt.close(figure)
    print(file)


def report(prometheus: Prometheus, span: Span) -> bool:
    """Print what had data and what did not; return whether all had and every alert is valid."""
    complete = True
    asked = {"dashboards": dashboard_queries(_RATE_INTERVAL), "alerts": alert_queries()}
    for kind, queries in asked.items():
        missing = [title for title in queries if not has_data(prometheus, queries[title], span)]
        print(f"{kind}: {len(queries) - len(missing)} of {len(queries)} queries had data")
        print("".join(f"  no data: {title}\n" for title in missing), end="")
        complete &= not missing
    print(f"not asked, because they need a GPU: metrics {', '.join(ONLY_WITH_A_GPU)}*")
    rules = prometheus.rules()
    invalid = [rule["name"] for rule in rules if rule["health"] != "ok"]
    print(f"alerts: {len(rules) - len(invalid)} of {len(rules)} rules were evaluated without error")
    print(f"firing: {', '.join(r['name'] for r in rules if r.get('state') == 'firing') or 'none'}")
    return complete and not invalid


def has_data(prometheus: Prometheus, query: str, span: Span) -> bool:
    """Return whether a query had a number at any moment."""
    found = prometheus.query_range(query, *span)
    return any(value != "NaN" for series in found for _, value in series["values"])


def main() -> None:
    """Run the worker and write the pictures."""
    parser = argparse.ArgumentParser(description="Plot every query of the dashboards.")
    parser.add_argument("--engine", choices=_LOADS, default="echo")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--out", type=Path, default=_OUT)
    given = parser.parse_args()
    plt.switch_backend("Agg")
    given.out.mkdir(parents=True, exist_ok=True)

    with (
        TemporaryDirectory() as folder,
        KafkaBroker() as kafka,
        RedisServer(appendonly="yes") as redis,
    ):

        def topic(partitions: int = 1) -> str:
            return kafka.create_topic(f"dashboards-{uuid4().hex[:8]}", partitions)

        with monitored(kafka, redis, topic, Path(folder), _LOADS[given.engine]) as started:
            span = busy(started, given.seconds)
            for board in BOARDS:
                plot(board, started.prometheus, span, given.out / f"{board.name}.png")
            complete = report(started.prometheus, span)
    if not complete:
        sys.exit(1)


if __name__ == "__main__":
    main()
