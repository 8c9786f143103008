"""How is what tuning found told: to a person at a terminal, and to a program?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from dragoman_worker.tuning.knee import RULE
from dragoman_worker.tuning.rows import Row
from dragoman_worker.tuning.stages import TAKING
from dragoman_worker.tuning.tune import Findings

NAMES: Final = {
    "chosen": "chosen",
    "default": "as given",
    "published": "published",
}
_BAR: Final = 16
_PUBLISHED: Final = "Published: VoicePing's 25 in flight, 16 sequences."
_HEADINGS: Final = ("tok/s", "ms/tok", "p99 ms", "KV", "GPU")
_SAMPLE: Final = ("jobs", "unplanned", "prompt_tokens", "output_budget", "items_a_job")
_RANKS: Final = ("p50", "p95", "p99", "max")
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
    """All of it, for tune.json."""
    survey = found.survey
    chosen = None
    if found.choice is not None:
        chosen = {
            "sequences": found.choice.sequences,
            "why": found.choice.why,
            "degraded": found.choice.degraded,
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
    """The chosen settings' jobs/s to that of the others."""
    rates = {name: row["jobs_per_s"] for name, row in found.comparison.items()}
    chosen = rates.pop("chosen", None)
    if chosen is None:
        return {}
    return {name: round(chosen / rate, 3) for name, rate in rates.items() if rate}


def show(console: Console, found: Findings) -> None:
    """Tables, a bar for every point, the point and why."""
    _show_sample(console, found)
    console.print(_sweep_table(found))
    if found.choice is not None:
        kept = " by the sweep, and not kept (see below)" if found.keeps_given else ""
        console.print(
            f"[bold]Chosen{kept}: {found.choice.sequences} sequences.[/] {found.choice.why}."
        )
        console.print(RULE, style="dim")
    if found.decisions:
        console.print()
        for decision in found.decisions:
            console.print(f"[bold]{decision.stage}[/]: {decision.why}")
        console.print(TAKING, style="dim")
    if found.comparison:
        console.print()
        console.print(_comparison_table(found))
        console.print(_PUBLISHED, style="dim")
    for note in found.notes:
        console.print(f"- {note}")


def _show_sample(console: Console, found: Findings) -> None:
    survey = found.survey
    table = Table(box=box.SIMPLE_HEAD, title=f"{survey['jobs']} jobs, {survey['model']}")
    for heading in ("", *_RANKS):
        table.add_column(heading, justify="right" if heading else "left")
    told = {
        "tokens of a prompt": survey["prompt_tokens"],
        "tokens of an answer": found.answer_tokens,
        "items of a job": survey["items_a_job"],
    }
    for name, spread in told.items():
        table.add_row(name, *(f"{(spread or {}).get(rank, 0):,.0f}" for rank in _RANKS))
    console.print(table)
    if survey["unplanned"]:
        unfit = f"{survey['unplanned']} jobs cannot be run: {survey['first_error']}"
        console.print(unfit, style="yellow", markup=False)


def _sweep_table(found: Findings) -> Table:
    chosen = found.choice.sequences if found.choice is not None else None
    best = max((row["jobs_per_s"] for row in found.sweep), default=1.0) or 1.0
    table = Table(box=box.SIMPLE_HEAD, title="jobs/s by sequences in the engine")
    _columns(table, ("seqs", "jobs/s", "", *_HEADINGS))
    for row in found.sweep:
        sequences = row["drive"]["items"]
        style = "bold green" if sequences == chosen else None
        bar = "█" * max(1, round(_BAR * row["jobs_per_s"] / best))
        mark = " ◀" if sequences == chosen else ""
        table.add_row(
            str(sequences), _number(row["jobs_per_s"]), bar + mark, *_cells(row), style=style
        )
    return table


def _comparison_table(found: Findings) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    _columns(table, ("", "jobs/s", "ratio", *_HEADINGS))
    against = ratios(found)
    for name, told in NAMES.items():
        if (row := found.comparison.get(name)) is not None:
            ratio = f"{1 / against[name]:.3f}" if name in against else "1"
            table.add_row(told, _number(row["jobs_per_s"]), ratio, *_cells(row))
    return table


def _columns(table: Table, headings: Sequence[str]) -> None:
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)


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
