"""Summary of rows: medians, and their ratio to the base (`LLM.generate`) with its spread.

usage: summary.py ROWS.jsonl ...
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

BASE = "LLM.generate"
RANKS = ("p50", "p95", "p99")
Row = Mapping[str, Any]
HEAD = (
    "| model | lengths | strategy | runs | jobs/s | (spread) | ratio | (spread) | to "
    "| tokens/s | p50 ms | p95 ms | p99 ms | GPU busy | CPU cores |"
)


def grouped(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Return rows by model, lengths and strategy, in the order of their first."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["model"], row["lengths"], row["strategy"]].append(row)
    return groups


def ratio(rows: list[Row], base: list[Row]) -> tuple[float, float, float] | None:
    """Return the ratio of the medians, and the least and greatest ratio within one round."""
    if not base:
        return None
    of_medians = median(r["jobs_per_s"] for r in rows) / median(r["jobs_per_s"] for r in base)
    by_run = {row["run"]: row["jobs_per_s"] for row in base}
    paired = [r["jobs_per_s"] / by_run[r["run"]] for r in rows if r["run"] in by_run]
    paired = paired or [of_medians]
    return of_medians, min(paired), max(paired)


def summary(rows: Iterable[Row]) -> str:
    """Return a Markdown table, one line per strategy."""
    groups = grouped(rows)
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    for (model, lengths, strategy), own in groups.items():
        base = groups.get((model, lengths, own[-1].get("base", BASE)), [])
        lines.append(_line([model, lengths, strategy], own, ratio(own, base)))
    return "\n".join(lines) + "\n"


def _line(names: list[str], rows: list[Row], ratios: tuple[float, float, float] | None) -> str:
    rates = [row["jobs_per_s"] for row in rows]
    latencies = [row["latency_ms"] or {} for row in rows]
    cells = [
        *names,
        str(len(rows)),
        f"{median(rates):.4g}",
        f"{min(rates):.4g}-{max(rates):.4g}",
        f"{ratios[0]:.3f}" if ratios else "",
        f"{ratios[1]:.3f}-{ratios[2]:.3f}" if ratios else "",
        str(rows[-1].get("base", BASE)) if ratios else "",
        f"{median(row['output_tokens_per_s'] for row in rows):,.0f}",
        *(_median([one.get(rank) for one in latencies], ",.0f") for rank in ("p50", "p95", "p99")),
        _median([row["gpu_busy"] for row in rows], ".1f"),
        f"{median(sum(row['cpu_cores'].values()) for row in rows):.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _median(values: list[float | None], form: str) -> str:
    present = [value for value in values if value is not None]
    return format(median(present), form) if present else ""


def main() -> None:
    places = [Path(name) for name in sys.argv[1:]]
    lines = [line for place in places for line in place.read_text("utf-8").splitlines()]
    sys.stdout.write(summary(json.loads(line) for line in lines))


if __name__ == "__main__":
    main()
