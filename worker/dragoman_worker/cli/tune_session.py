"""One run of `tune`: sample, tuning, tune.json, the settings file, the plot and the report."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman_connections.consoles import SafeConsole
from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import counted, json_line, print_to
from dragoman_worker.cli.measuring import named_words
from dragoman_worker.engines.machine import this_machine
from dragoman_worker.engines.sizing import share_out
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
from dragoman_worker.tuning.output import plot, report, settings_file
from dragoman_worker.tuning.stages import ALLOWED, STAGES
from dragoman_worker.tuning.tuner import Findings, NothingMeasured, TuneOptions, Tuner


def tune_options(
    sequences: str | None, max_sequences: int | None, stages: str | None, allow: str | None
) -> TuneOptions:
    """Return the parsed options of `tune`. Raises SettingsError naming the option."""
    named = named_words("--allow", allow, ALLOWED) if allow is not None else frozenset()
    return TuneOptions(
        sequences=_counts(sequences),
        most_sequences=max_sequences,
        stages=named_words("--stages", stages, STAGES) if stages is not None else frozenset(STAGES),
        # Replicas change no translation: they are tried where measured sizes say they may gain.
        allow=named | {"replicas"},
        named=named,
    )


async def tuned(request: MeasureRequest, options: TuneOptions) -> int:
    """Tune and return the exit status: 0, or 3 if the time was over before all was measured.

    Raises SettingsError and WorkerError, and CannotMeasure also if no point fits the time.
    """
    settings_file.check(request.settings)
    engines = share_out(request.settings.engine, this_machine).count
    sample = await read_sample(request)
    with MeasureScreen(quiet=request.as_json) as screen:
        screen.progress(f"{counted(len(sample.jobs), 'job')} from {sample.origin}")
        async with harness_for(request, sample, screen) as harness:
            tuner = Tuner(harness, request.settings, sample, options, engines=engines)
            try:
                found = await tuner.run()
            except (EngineRefused, NothingMeasured, OutOfBudget) as error:
                raise CannotMeasure(str(error)) from None
    missing = write(request, found)
    if request.as_json:
        print_to(sys.stdout, json_line(report.as_data(found)))
    else:
        _show(request.out, found, missing)
    return 0 if found.complete else 3


def write(request: MeasureRequest, found: Findings) -> str | None:
    """Write all files; return a message if the plot could not be drawn."""
    data = report.as_data(found)
    write_json(request.out / "tune.json", data)
    settings_file.write(request.out / settings_file.NAME, request.settings, found)
    name, version = data["engine"]["name"], data["engine"]["version"]
    try:
        plot.draw_tune(request.out / "tune.svg", data, f"{data['model']}, {name} {version}")
    except ModuleNotFoundError:
        return plot.MISSING
    return None


def _show(out: Path, found: Findings, missing: str | None) -> None:
    console = SafeConsole(highlight=False)
    report.show(console, found)
    config = out / settings_file.NAME
    console.print(f"\nUse these settings: dragoman-worker run --config {config}", markup=False)
    console.print(missing or f"Plot: {out / 'tune.svg'}", markup=False)


def _counts(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise SettingsError(f"--sequences {text}: give numbers above 0, as in 8,16,32")
    return tuple(sorted({int(part) for part in parts}))
