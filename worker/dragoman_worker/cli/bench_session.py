"""One run of `bench`: sample, measurements, bench.json, the plot and the table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman_connections.consoles import SafeConsole
from dragoman_connections.terminal import counted, json_line, print_to
from dragoman_worker.cli.measuring import named_words
from dragoman_worker.engines.machine import this_machine
from dragoman_worker.engines.sizing import share_out
from dragoman_worker.tuning.bench import STRATEGIES, Bench, BenchResults, table
from dragoman_worker.tuning.measure.engine_process import EngineRefused
from dragoman_worker.tuning.measure.harness import OutOfBudget
from dragoman_worker.tuning.measure.session import (
    CannotMeasure,
    MeasureRequest,
    MeasureScreen,
    harness_for,
    read_sample,
    write_json,
)
from dragoman_worker.tuning.output import plot
from dragoman_worker.tuning.output.columns import Line, TableColumn, fitted

_COLUMNS: Final = (
    TableColumn("", left=True),
    TableColumn("jobs/s"),
    TableColumn("range", drop=3),
    TableColumn("ratio", drop=1),
    TableColumn("range", drop=4),
    TableColumn("tok/s", drop=2),
    TableColumn("p99 ms"),
    TableColumn("GPU", drop=5),
)
_SHORT: Final = {
    "one": "one at a time",
    "static": "static batches",
    "published": "published",
    "default": "default",
    "given": "as given",
    "all": "all at once",
}
_HOW: Final = (
    "One request at a time; static batches of 16 or 50 ms; the published 25 in flight with 16 "
    "sequences; continuous with default settings and with those given; all at once, as "
    "LLM.generate takes them. All at once is counted from the first job handed over to the last "
    "answer, the others over a window of a steady backlog. Latency is that of a job in the "
    "engine; ratios are to all at once in the same round. Kafka and Redis are not involved: "
    "benchmarks/strategies includes them."
)


def strategies_of(text: str | None) -> frozenset[str] | None:
    """Return the named strategies, None for all that fit. Raises SettingsError."""
    return named_words("--strategies", text, STRATEGIES) if text is not None else None


async def benched(request: MeasureRequest, wanted: frozenset[str] | None, rounds: int) -> int:
    """Measure the wanted strategies, None for all that fit; return the exit status 0 or 3.

    Status 3: the time was over. Raises as `tuned` does.
    """
    sample = await read_sample(request)
    share = share_out(request.settings.engine, this_machine)
    with MeasureScreen(quiet=request.as_json) as screen:
        screen.progress(f"{counted(len(sample.jobs), 'job')} from {sample.origin}")
        async with harness_for(request, sample, screen) as harness:
            bench = Bench(harness, request.settings, share, rounds)
            screen.progress(_needs(bench, wanted, request))
            try:
                results = await bench.run(wanted)
            except (EngineRefused, OutOfBudget) as error:
                raise CannotMeasure(str(error)) from None
    if not results.rows:  # the results of an earlier run stay
        raise CannotMeasure("; ".join(["nothing was measured", *results.notes]))
    lines = table(results)
    write_json(request.out / "bench.json", {"how": _HOW, "table": lines, "notes": results.notes})
    missing = _plot(request.out / "bench.svg", lines)
    if request.as_json:
        for line in lines:
            print_to(sys.stdout, json_line(line))
    else:
        _show(request.out, results, lines, missing)
    return 0 if results.complete else 3


def _needs(bench: Bench, wanted: frozenset[str] | None, request: MeasureRequest) -> str:
    """Return what a run takes at the least, before the first engine starts."""
    engines, points = bench.size(wanted)
    least = points * (request.pace.warm_s + request.pace.seconds)
    budget = request.pace.budget_s
    short = f", more than --budget-s {budget:g} allows" if least > budget else ""
    return (
        f"{counted(points, 'measurement')} in {counted(engines, 'engine')}: at least "
        f"{least:,.0f} s plus the engine starts{short}"
    )


def _plot(path: Path, lines: Sequence[Mapping[str, Any]]) -> str | None:
    try:
        plot.draw_bench(path, lines)
    except ModuleNotFoundError:
        return plot.MISSING
    return None


def _show(
    out: Path, results: BenchResults, lines: Sequence[Mapping[str, Any]], missing: str | None
) -> None:
    console = SafeConsole(highlight=False)
    console.print(fitted(console, _COLUMNS, [Line(_cells(line)) for line in lines]))
    console.print(_HOW, style="dim", markup=False)
    for note in results.notes:
        console.print(f"- {note}", markup=False)
    console.print(missing or f"Plot: {out / 'bench.svg'}", markup=False)


def _cells(line: Mapping[str, Any]) -> Sequence[str]:
    ratio, ratios = line["ratio"], line["ratio_spread"]
    busy = line["gpu_busy"]
    return (
        _short(line),
        _number(line["jobs_per_s"]),
        _range(line["spread"]),
        "" if ratio is None else _number(ratio),
        "" if ratios is None else _range(ratios),
        f"{line['output_tokens_per_s']:,.0f}",
        f"{line['latency_ms'].get('p99', 0):,.0f}",
        "" if busy is None else f"{busy:.0f} %",
    )


def _short(line: Mapping[str, Any]) -> str:
    """Return the short name of a strategy; `description` is the full one."""
    if line["strategy"] == "replicas":
        return str(line["description"])
    plain = line["description"] == STRATEGIES["default"]
    return _SHORT["default" if plain else line["strategy"]]


def _range(ends: Sequence[float]) -> str:
    return "-".join(map(_number, ends))


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
