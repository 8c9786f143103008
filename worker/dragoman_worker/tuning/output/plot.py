"""Plots of `tune` and `bench`: throughput and p99 by sequences, and a bar per strategy.

They need matplotlib, from the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dragoman_connections.terminal import how_to_install
from dragoman_worker.tuning.measure.results import Row

MISSING: Final = f"no plot: matplotlib is not installed; {how_to_install('plots')}"
RATE, OTHER, INK, FAINT = "#0b6e4f", "#8d99ae", "#22262e", "#d9dde4"
LATENCY: Final = "#b0562f"
_STYLE: Final[Mapping[str, Any]] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "dragoman",
    "figure.facecolor": "white",
}
_LABELS: Final = {
    "chosen": "chosen, verified in a new engine",
    "default": "as given",
    "published": "published (25 in flight, 16 sequences)",
}


@contextmanager
def canvas(width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """Open a figure with its axes. Raises ModuleNotFoundError without matplotlib."""
    import matplotlib as mpl  # noqa: PLC0415  an extra

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    style: Any = dict(_STYLE)
    with mpl.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
        try:
            yield figure, axes
        finally:
            pyplot.close(figure)


def save(figure: Any, path: Path) -> None:
    """Write SVG or PNG by the suffix; without a date, so that equal rows give equal files."""
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, dpi=130, metadata=metadata)


def draw_tune(path: Path, data: Mapping[str, Any], title: str) -> None:
    """Draw the sweep of tune.json's data. Raises ModuleNotFoundError without matplotlib."""
    sweep: Sequence[Row] = data["sweep"]
    chosen = (data["chosen"] or {}).get("sequences")
    with canvas(8.6, 4.6) as (figure, axes):
        late = axes.twinx()
        _lines(axes, late, sweep)
        compared = [row["jobs_per_s"] for row in data["comparison"].values()]
        axes.set_ylim(0, 1.16 * max([*compared, *(row["jobs_per_s"] for row in sweep)]))
        kept = bool((data["chosen"] or {}).get("keeps_given"))
        _mark(axes, sweep, chosen, "the sweep's choice" if kept else "chosen")
        _levels(axes, data["comparison"], sweep)
        axes.set_title(title, loc="left", fontsize=11)
        save(figure, path)


def _lines(axes: Any, late: Any, sweep: Sequence[Row]) -> None:
    counts = [row["sequences"] for row in sweep]
    rates = [row["jobs_per_s"] for row in sweep]
    slowest = [(row["latency_ms"] or {}).get("p99", 0.0) / 1000 for row in sweep]
    late.plot(counts, slowest, color=LATENCY, linewidth=1.4, marker="s", markersize=4, alpha=0.85)
    late.set_ylabel("p99 of a job in the engine, s", color=LATENCY)
    late.set_ylim(bottom=0)
    late.spines["right"].set_visible(True)
    axes.plot(counts, rates, color=RATE, linewidth=2.2, marker="o", markersize=5)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.margins(x=0.08)
    axes.set_xlabel("sequences in the engine at once")
    axes.set_ylabel("jobs/s", color=RATE)
    axes.grid(axis="y", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_zorder(late.get_zorder() + 1)
    axes.patch.set_visible(False)


def _mark(axes: Any, sweep: Sequence[Row], chosen: int | None, label: str) -> None:
    for row in sweep:
        if row["sequences"] == chosen:
            point = (row["sequences"], row["jobs_per_s"])
            ring = {"markersize": 15, "markeredgewidth": 2, "fillstyle": "none"}
            axes.plot(*point, marker="o", color=INK, **ring)
            last = row is sweep[-1]  # a centred label would be cut at the edge
            axes.annotate(
                f"{label}: {chosen}",
                point,
                xytext=(8 if last else 0, 14),
                textcoords="offset points",
                ha="right" if last else "center",
                fontweight="bold",
            )


def _levels(axes: Any, comparison: Mapping[str, Row], sweep: Sequence[Row]) -> None:
    """Draw the compared settings as horizontal lines; lines close together share a label."""
    first = sweep[0]["sequences"]
    top = 0.045 * axes.get_ylim()[1]
    levels: list[tuple[float, str]] = []
    for name, text in _LABELS.items():
        row = comparison.get(name)
        if row is None or (name == "chosen" and row == comparison.get("default")):
            continue
        label = f"{text}: {row['jobs_per_s']:.4g}"
        near = next(
            (n for n, (rate, _) in enumerate(levels) if abs(rate - row["jobs_per_s"]) < top), None
        )
        if near is not None:
            levels[near] = (levels[near][0], f"{levels[near][1]} · {label}")
        else:
            levels.append((row["jobs_per_s"], label))
    for rate, label in levels:
        axes.axhline(rate, color=OTHER, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            label,
            (first, rate),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=8.5,
            color="#5b6577",
        )


def draw_bench(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Draw one bar per strategy with the range of its runs. Raises ModuleNotFoundError."""
    with canvas(8.6, 0.42 * len(lines) + 1.2) as (figure, axes):
        longest = max((line["spread"][1] for line in lines), default=1.0)
        for at, line in enumerate(lines):
            continuous = line["strategy"] in {"given", "default", "replicas"}
            axes.barh(at, line["jobs_per_s"], color=RATE if continuous else OTHER, height=0.62)
            axes.plot(line["spread"], [at, at], color=INK, linewidth=1.2)
            end = line["spread"][1] + 0.015 * longest
            axes.text(end, at, f"{line['jobs_per_s']:,.4g}", va="center")
        axes.set_yticks(range(len(lines)), [line["description"] for line in lines])
        axes.set_xlim(0, 1.12 * longest)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("jobs/s: median, and the range of the runs")
        save(figure, path)
