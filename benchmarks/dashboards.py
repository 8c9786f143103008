"""Plots of every dashboard query, from a real Prometheus that scrapes a busy echo worker.

usage: dashboards.py [--seconds 90] [--out build/dashboards]

Starts Kafka, Redis, `dragoman-worker run` and Prometheus on free ports, publishes a wave of jobs
every few seconds, larger ones in the middle, and writes one PNG per dashboard. Grafana is not
needed. A panel without data says so.
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
from typing import Any
from uuid import uuid4

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / ".ci"))
from boards import BOARDS, Board, Chart, Figure

from support.processes.monitored import Monitored, monitored
from support.services.kafka_broker import KafkaBroker
from support.services.prometheus import Prometheus
from support.services.redis_server import RedisServer

_OUT = Path(__file__).parents[1] / "build" / "dashboards"
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


def asked(expression: str) -> str:
    """Return a dashboard's expression as Grafana sends it."""
    found = re.sub(r"\$(job|instance|replica)\b", ".*", expression)
    return found.replace("$__rate_interval", "15s").replace("$__range", "5m")


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
        for series in prometheus.query_range(asked(expression), *span):
            at, values = zip(*series["values"], strict=True)
            times = [moment - span[0] for moment in at]
            numbers = [float(value) for value in values]
            axes.plot(times, numbers, linewidth=1, label=legend(template, series["metric"]))
    if not axes.lines:
        axes.text(0.5, 0.5, "no data", ha="center", transform=axes.transAxes)
    elif isinstance(panel, Chart):
        axes.legend(fontsize=5, ncols=2)


def plot(board: Board, prometheus: Prometheus, span: Span, file: Path) -> None:
    """Write the picture of one dashboard."""
    panels: list[Any] = [panel for row in board.rows.values() for panel in row]
    rows = math.ceil(len(panels) / 4)
    figure, grid = plt.subplots(rows, 4, figsize=(20, 2.6 * rows), squeeze=False)
    places = [axes for row in grid for axes in row]
    for axes, panel in zip(places, panels, strict=False):
        draw(axes, panel, prometheus, span)
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(board.title)
    figure.tight_layout()
    figure.savefig(file, dpi=80)
    plt.close(figure)
    print(file)


def main() -> None:
    """Run the worker and write the pictures."""
    parser = argparse.ArgumentParser(description="Plot every query of the dashboards.")
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

        with monitored(kafka, redis, topic, Path(folder)) as started:
            span = busy(started, given.seconds)
            for board in BOARDS:
                plot(board, started.prometheus, span, given.out / f"{board.name}.png")


if __name__ == "__main__":
    main()
