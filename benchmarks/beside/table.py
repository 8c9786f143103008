"""The comparison's arithmetic: medians, and the ratio of each round with its spread."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

MEASURES: Final = {
    "jobs_per_s": "echo, jobs/s",
    "job_cpu_us": "echo, CPU per job (µs)",
    "items_per_s": "echo, items/s, 64 per job",
    "item_cpu_us": "echo, CPU per item (µs)",
    "documents_mb_per_s": "documents, MB/s",
    "documents_cpu_ms_per_mb": "documents, client's CPU per MB (ms)",
}
"""What each measure is called in the table. Less is better where the name says CPU."""


def rows(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Return one row per measure that every round has for both sides, `this` and `that`.

    A row has the medians of the sides, and median, least and greatest of the ratios, each of which
    is `this` to `that` in one round: what slows the machine for a while is in both.
    """
    known = [name for name in MEASURES if all(name in each["this"] for each in rounds)]
    return [_row(name, rounds) for name in known]


def _row(name: str, rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, Any]:
    this = [each["this"][name] for each in rounds]
    that = [each["that"][name] for each in rounds]
    ratios = [own / other for own, other in zip(this, that, strict=True)]
    return {
        "measure": name,
        "this": statistics.median(this),
        "that": statistics.median(that),
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }


def markdown(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| measure | this | that | this / that |", "|---|---|---|---|"]
    for row in found:
        spread = f"{row['ratio']:.3f} ({row['ratio_min']:.3f}-{row['ratio_max']:.3f})"
        cells = (MEASURES[row["measure"]], _short(row["this"]), _short(row["that"]), spread)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
