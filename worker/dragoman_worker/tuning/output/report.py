"""Report of `tune`: tables for a terminal, and the data of tune.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dragoman_worker.tuning.knee import RULE
from dragoman_worker.tuning.measure.results import Row
from dragoman_worker.tuning.output.columns import Line, TableColumn, fitted
from dragoman_worker.tuning.stages import TAKING
from dragoman_worker.tuning.tuner import Findings

NAMES: Final = {
    "chosen": "chosen",
    "default": "as given",
    "published": "published",
}
_BAR: Final = 16
_PUBLISHED: Final = "Published: VoicePing's 25 in flight, 16 sequences."
_SEVERAL: Final = "xN: N engines on the GPU, as `run` starts them."
_RATES: Final = (
    TableColumn("tok/s", drop=2),
    TableColumn("ms/tok", drop=3),
    TableColumn("p99 ms"),
    TableColumn("KV", drop=5),
    TableColumn("GPU", drop=4),
)
_SPREADS: Final = (
    TableColumn("", left=True),
    *(
        TableColumn(rank, drop=drop)
        for rank, drop in {"p50": 0, "p95": 2, "p99": 1, "max": 0}.items()
    ),
)
_SWEEP: Final = (
    TableColumn("seqs"),
    TableColumn("jobs/s"),
    TableColumn("", drop=6, left=True),
    *_RATES,
)
_COMPARISON: Final = (
    TableColumn("", left=True),
    TableColumn("jobs/s"),
    TableColumn("ratio", drop=1),
    *_RATES,
)
_SAMPLE: Final = ("jobs", "unplanned", "prompt_tokens", "output_budget", "items_per_job")
_KEPT: Final = (
    "jobs_per_s",
    "items_per_s",
    "output_tokens_per_s",
    "decode_ms_per_token",
    "latency_ms",
    "kv_usage_max",
    "preemptions",
    "gpu_busy",
    "cpu_cores",
    "start_s",
    "failed",
    "seconds",
    "replicas",
    "options",
)


def as_data(found: Findings) -> dict[str, Any]:
    """Return all findings as the data of tune.json."""
    survey = found.survey
    chosen = None
    if found.choice is not None:
        chosen = {
            "sequences": found.choice.sequences,
            "why": found.choice.why,
            "degraded": found.choice.degraded,
            "confirmed": found.confirmed,
            "keeps_given": found.keeps_given,
            "options": found.options,
            "replicas": found.replicas,
        }
    return {
        "complete": found.complete,
        "rule": {"sequences": RULE, "others": TAKING},
        "model": survey["model"],
        "engine": survey["engine"],
        "limits": survey["limits"],
        "sample": {
            **{name: survey[name] for name in _SAMPLE},
            "answer_tokens": found.answer_tokens,
            "arrivals": asdict(found.arrivals) if found.arrivals else None,
        },
        "sweep": [{"sequences": row["drive"]["items"], **_kept(row)} for row in found.sweep],
        "chosen": chosen,
        "comparison": {name: _kept(row) for name, row in found.comparison.items()},
        "ratios": ratios(found),
        "stages": [
            {"stage": d.stage, "why": d.why, "options": dict(d.options), "replicas": d.replicas}
            for d in found.decisions
        ],
        "notes": found.notes,
    }


def ratios(found: Findings) -> dict[str, float]:
    """Return the ratio of each other row's jobs/s to that of the given settings."""
    rates = {name: row["jobs_per_s"] for name, row in found.comparison.items()}
    given = rates.pop("default", None)
    if not given:
        return {}
    return {name: round(rate / given, 3) for name, rate in rates.items()}


def show(console: Console, found: Findings) -> None:
    """Print the tables, a bar per point, and the chosen point with the reason."""
    _show_sample(console, found)
    console.print(_sweep_table(console, found))
    if found.choice is not None:
        kept = " by the sweep, and not kept (see below)" if found.keeps_given else ""
        why = escape(found.choice.why)
        console.print(f"[bold]Chosen{kept}: {found.choice.sequences} sequences.[/] {why}.")
        console.print(RULE, style="dim")
    if found.decisions:
        console.print()
        for decision in found.decisions:
            console.print(f"[bold]{decision.stage}[/]: {escape(decision.why)}")
        console.print(TAKING, style="dim")
    if found.comparison:
        console.print()
        console.print(_comparison_table(console, found))
        console.print(_PUBLISHED, style="dim")
        if any(row["replicas"] > 1 for row in found.comparison.values()):
            console.print(_SEVERAL, style="dim")
    for note in found.notes:
        console.print(f"- {note}", markup=False)


def _show_sample(console: Console, found: Findings) -> None:
    survey = found.survey
    spreads = {
        "tokens per prompt": survey["prompt_tokens"],
        "tokens per answer": found.answer_tokens,
        "items per job": survey["items_per_job"],
    }
    ranks = [column.heading for column in _SPREADS[1:]]
    lines = [
        Line((name, *(f"{(spread or {}).get(rank, 0):,.0f}" for rank in ranks)))
        for name, spread in spreads.items()
    ]
    title = f"{survey['jobs']} jobs, {escape(survey['model'])}"
    console.print(fitted(console, _SPREADS, lines, title=title))
    if survey["unplanned"]:
        unfit = f"{survey['unplanned']} jobs cannot be run: {survey['first_error']}"
        console.print(unfit, style="yellow", markup=False)


def _sweep_table(console: Console, found: Findings) -> Table:
    chosen = found.choice.sequences if found.choice is not None else None
    best = max((row["jobs_per_s"] for row in found.sweep), default=1.0) or 1.0
    lines = []
    for row in found.sweep:
        sequences = row["drive"]["items"]
        style = "bold green" if sequences == chosen else None
        bar = "█" * max(1, round(_BAR * row["jobs_per_s"] / best))
        mark = " ◀" if sequences == chosen else ""
        cells = (str(sequences), _number(row["jobs_per_s"]), bar + mark, *_cells(row))
        lines.append(Line(cells, style))
    return fitted(console, _SWEEP, lines, title="jobs/s by sequences in the engine")


def _comparison_table(console: Console, found: Findings) -> Table:
    lines = []
    against = ratios(found)
    for name, label in NAMES.items():
        if (row := found.comparison.get(name)) is not None:
            own = "1" if name == "default" else ""
            ratio = f"{against[name]:.3f}" if name in against else own
            name_shown = f"{label} x{row['replicas']}" if row["replicas"] > 1 else label
            lines.append(Line((name_shown, _number(row["jobs_per_s"]), ratio, *_cells(row))))
    return fitted(console, _COMPARISON, lines)


def _cells(row: Row) -> Sequence[str]:
    latency = row["latency_ms"] or {}
    return (
        f"{row['output_tokens_per_s']:,.0f}",
        _number(row["decode_ms_per_token"]),
        _number(latency.get("p99")),
        _percent(row["kv_usage_max"], 100),
        _percent(row["gpu_busy"], 1),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _percent(value: float | None, times: float) -> str:
    return "" if value is None else f"{times * value:.0f} %"


def _kept(row: Row) -> Row:
    return {name: row[name] for name in _KEPT if name in row}
