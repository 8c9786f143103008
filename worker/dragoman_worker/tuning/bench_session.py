"""What does `dragoman-worker bench` do from its first line to its last file?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from dragoman_worker.replicas import share_out, this_machine
from dragoman_worker.tuning import plot
from dragoman_worker.tuning.bench import Bench, Results, table
from dragoman_worker.tuning.engine_process import Refused
from dragoman_worker.tuning.rig import OutOfBudget
from dragoman_worker.tuning.session import (
    CannotMeasure,
    Request,
    Screen,
    read_sample,
    rig_for,
    write_json,
)

_HOW = (
    "Continuous, static and one at a time are counted over a window of a steady backlog; all at "
    "once from the first job handed over to the last one answered. Latency is that of a job in the "
    "engine. No Kafka and no Redis are in the way: benchmarks/strategies compares with them."
)


async def benched(request: Request, wanted: frozenset[str], rounds: int) -> int:
    """The exit status: 0, or 3 if time ran out. Raises as `tuned` does."""
    sample = await read_sample(request)
    share = share_out(request.settings.engine, this_machine)
    with Screen(quiet=request.as_json) as screen:
        screen.say(f"{len(sample.jobs)} jobs from {sample.origin}")
        async with rig_for(request, sample, screen) as rig:
            try:
                results = await Bench(rig, request.settings, share, rounds).run(wanted)
            except (Refused, OutOfBudget) as error:
                raise CannotMeasure(str(error)) from None
    lines = table(results)
    write_json(request.out / "bench.json", {"how": _HOW, "table": lines, "notes": results.notes})
    missing = _picture(request.out / "bench.svg", lines)
    if request.as_json:
        for line in lines:
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    else:
        _show(request.out, results, lines, missing)
    return 0 if results.complete else 3


def _picture(place: Path, lines: Sequence[Mapping[str, Any]]) -> str | None:
    try:
        plot.draw_bench(place, lines)
    except ModuleNotFoundError:
        return plot.MISSING
    return None


def _show(
    out: Path, results: Results, lines: Sequence[Mapping[str, Any]], missing: str | None
) -> None:
    console = Console(highlight=False)
    shown = Table(box=box.SIMPLE_HEAD)
    headings = ("", "runs", "jobs/s", "of all at once", "tokens/s", "p50 ms", "p99 ms", "GPU")
    for heading in headings:
        shown.add_column(heading, justify="right" if heading else "left")
    for line in lines:
        shown.add_row(*_cells(line))
    console.print(shown)
    console.print(_HOW, style="dim", markup=False)
    for note in results.notes:
        console.print(f"- {note}", markup=False)
    console.print(missing or f"{out / 'bench.svg'}: the picture", markup=False)


def _cells(line: Mapping[str, Any]) -> Sequence[str]:
    low, high = line["spread"]
    ratio = ""
    if line["ratio"] is not None:
        least, most = line["ratio_spread"]
        ratio = f"{line['ratio']:.3f} ({least:.3f}-{most:.3f})"
    latency, busy = line["latency_ms"], line["gpu_busy"]
    return (
        line["told"],
        str(line["runs"]),
        f"{line['jobs_per_s']:.4g} ({low:.4g}-{high:.4g})",
        ratio,
        f"{line['output_tokens_per_s']:,.0f}",
        f"{latency.get('p50', 0):,.0f}",
        f"{latency.get('p99', 0):,.0f}",
        "" if busy is None else f"{busy:.0f} %",
    )
