"""Plot of the gates: false alarms on human translations, and detection of planted errors.

usage: plot.py RESULTS_DIR OUT_DIR

Reads false-alarms.json and detection.json, writes quality-gates-light.svg and
quality-gates-dark.svg. Needs matplotlib (extra `plots`).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

INK = {"light": "#22262e", "dark": "#e6e9ef"}
GROUND = {"light": "white", "dark": "#1e2129"}
GRID = {"light": "#d9dde4", "dark": "#3a3f4b"}
HARD, SLIGHT = {"light": "#0b6e4f", "dark": "#3fbf95"}, {"light": "#8d99ae", "dark": "#8d99ae"}
ORDER = (
    "placeholders tags structure loop copy language script length incomplete chatter control "
    "garbled paragraphs verbatim numbers blank"
)


def style(theme: str) -> dict[str, Any]:
    ink, grid = INK[theme], GRID[theme]
    return {
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": grid,
        "axes.facecolor": GROUND[theme],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": ink,
        "ytick.color": ink,
        "svg.fonttype": "none",
        "svg.hashsalt": "dragoman",
        "figure.facecolor": GROUND[theme],
    }


def false_alarms(axes: Any, place: Path, theme: str) -> None:
    """Plot the share of human sentences and messages with a finding, per gate."""
    rows = json.loads(place.read_text())
    pairs = sum(row["pairs"] for row in rows)
    found: Counter[str] = sum((Counter(row["gates"]) for row in rows), Counter())
    gates = ORDER.split()[::-1]
    most = max(100 * (found[gate] + found[f"{gate}?"]) / pairs for gate in gates)
    for at, gate in enumerate(gates):
        fail, warn = (100 * found[name] / pairs for name in (gate, f"{gate}?"))
        axes.barh(at, fail, color=HARD[theme], height=0.62)
        axes.barh(at, warn, left=fail, color=SLIGHT[theme], height=0.62)
        axes.text(fail + warn + most / 60, at, f"{fail + warn:.3f}", va="center")
    axes.set_yticks(range(len(gates)), gates)
    axes.set_xlim(0, 1.2 * most)
    axes.set_xlabel(f"findings on {pairs:,} human translations, %")
    axes.barh([0], [0], color=HARD[theme], label="fail")
    axes.barh([0], [0], color=SLIGHT[theme], label="warn")
    axes.legend(frameon=False, loc="upper right")


def detection(axes: Any, place: Path, theme: str) -> None:
    """Plot the share of planted errors that fail, and of those that are warned of, per group.

    Without those that are repaired: an introduction that cleaning removes is no answer any more.
    """
    groups: dict[str, Counter[str]] = {}
    for row in json.loads(place.read_text()):
        if not row["right"]:
            groups.setdefault(row["group"], Counter()).update(row["verdicts"])
    for at, verdicts in enumerate(reversed(groups.values())):
        left = verdicts.total() - verdicts["restored"]
        fail, warn = (100 * verdicts[name] / left for name in ("fail", "warn"))
        axes.barh(at, fail, color=HARD[theme], height=0.62)
        axes.barh(at, warn, left=fail, color=SLIGHT[theme], height=0.62)
        axes.text(102, at, f"{fail + warn:.0f}", va="center")
    axes.set_yticks(range(len(groups)), [*groups][::-1])
    axes.set_xlim(0, 115)
    axes.set_xlabel("planted errors found, % (grey: warned of)")


def main() -> None:
    results, out = map(Path, sys.argv[1:3])
    for theme in ("light", "dark"):
        with mpl.rc_context(style(theme)):
            figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
            false_alarms(left, results / "false-alarms.json", theme)
            detection(right, results / "detection.json", theme)
            for axes in (left, right):
                axes.tick_params(axis="y", length=0)
            figure.savefig(out / f"quality-gates-{theme}.svg", metadata={"Date": None})
            pyplot.close(figure)


if __name__ == "__main__":
    main()
