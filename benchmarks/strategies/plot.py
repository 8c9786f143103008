"""Plots of the strategies side by side: throughput, latency, and the GPU over time.

usage: plot.py OUT_DIR ROWS.jsonl ... [--model 8B] [--png]

Writes throughput.svg, latency.svg and gpu.svg (the last only if there was a GPU to sample).
Needs matplotlib (extra `plots`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot
from summary import grouped

Row = dict[str, Any]
OURS, OTHER, UNIFORM = "#0b6e4f", "#8d99ae", "#e07a5f"
INK, FAINT = "#22262e", "#d9dde4"
STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "dragoman",
    "figure.facecolor": "white",
}


def colour(strategy: str) -> str:
    return OURS if strategy.startswith("Dragoman") else OTHER


def throughput(rows: list[Row], title: str) -> Any:
    """Plot median jobs/s as bars with their spread, and uniform lengths as marks beside them."""
    by_lengths: dict[str, dict[str, list[float]]] = {"variable": {}, "uniform": {}}
    for (_, lengths, strategy), own in grouped(rows).items():
        by_lengths[lengths][strategy] = [row["jobs_per_s"] for row in own]
    rates = by_lengths["variable"]
    names = sorted(rates, key=lambda name: median(rates[name]))
    figure, axes = pyplot.subplots(figsize=(8.6, 0.42 * len(names) + 1.3), layout="constrained")
    longest = max(median(rates[name]) for name in names)
    for place, name in enumerate(names):
        middle = median(rates[name])
        axes.barh(place, middle, color=colour(name), height=0.62)
        axes.plot([min(rates[name]), max(rates[name])], [place, place], color=INK, linewidth=1.2)
        uniform = by_lengths["uniform"].get(name, [])
        if uniform:
            mark = {"marker": "D", "markersize": 5, "color": UNIFORM, "linestyle": ""}
            axes.plot([median(uniform)], [place], **mark)
        end = max([*rates[name], *uniform]) + longest * 0.015
        axes.text(end, place, f"{middle:,.4g}", va="center")
    if by_lengths["uniform"]:
        axes.plot([], [], marker="D", color=UNIFORM, linestyle="", label="uniform lengths")
        axes.legend(frameon=False, loc="lower right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, longest * 1.12)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("jobs/s, variable lengths: median, and the runs' range")
    axes.set_title(title, loc="left", fontsize=11)
    return figure


def latency(rows: list[Row], title: str) -> Any:
    """Plot p50 and p99 per job, from its hand-over, on a logarithmic axis."""
    latencies = {
        strategy: [row["latency_ms"] for row in own if row["latency_ms"]]
        for (_, lengths, strategy), own in grouped(rows).items()
        if lengths == "variable"
    }
    half = {name: median(one["p50"] for one in own) for name, own in latencies.items() if own}
    most = {name: median(one["p99"] for one in latencies[name]) for name in half}
    names = sorted(half, key=lambda name: -half[name])
    figure, axes = pyplot.subplots(figsize=(8.6, 0.42 * len(names) + 1.3), layout="constrained")
    for place, name in enumerate(names):
        ends = [half[name] / 1000, most[name] / 1000]
        axes.plot(ends, [place, place], color=colour(name), linewidth=3, solid_capstyle="round")
        axes.plot(ends[:1], [place], marker="o", markersize=7, color=colour(name))
        axes.plot(ends[1:], [place], marker="|", markersize=12, mew=2.5, color=colour(name))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="x", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("seconds from handing over to the answer: p50 (dot) to p99 (bar)")
    axes.set_title(title, loc="left", fontsize=11)
    return figure


def gpu(rows: list[Row], title: str) -> Any:
    """Plot GPU utilisation over each strategy's last run; return None without a GPU."""
    last = {
        strategy: own[-1]
        for (_, lengths, strategy), own in grouped(rows).items()
        if lengths == "variable" and own[-1]["gpu_series"]
    }
    if not last:
        return None
    figure, grid = pyplot.subplots(
        len(last), 1, figsize=(8.6, 0.72 * len(last) + 1.0), sharex=True, layout="constrained"
    )
    for axes, (name, row) in zip(grid if len(last) > 1 else [grid], last.items(), strict=True):
        times, busy = zip(*row["gpu_series"], strict=True)
        axes.fill_between(times, busy, color=colour(name), alpha=0.75, linewidth=0, step="mid")
        axes.set_ylim(0, 105)
        axes.set_yticks([0, 100])
        about = f"{name}: {row['gpu_busy']:.0f} % busy, {row['jobs_per_s']:,.4g} jobs/s"
        axes.set_title(about, loc="left", fontsize=9, pad=2)
    figure.supxlabel("seconds since the run began", fontsize=10)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--png", action="store_true")
    given = parser.parse_args()
    lines = [line for place in given.rows for line in place.read_text("utf-8").splitlines()]
    rows = [json.loads(line) for line in lines]
    model = given.model or rows[0]["model"]
    rows = [row for row in rows if row["model"] == model]
    given.out.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    with mpl.rc_context(STYLE):
        for name, draw in {"throughput": throughput, "latency": latency, "gpu": gpu}.items():
            figure = draw(rows, model)
            if figure is not None:
                end = "png" if given.png else "svg"
                figure.savefig(given.out / f"{name}.{end}", dpi=130)
                pyplot.close(figure)


if __name__ == "__main__":
    main()
