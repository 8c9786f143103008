"""The `tune` command: finds the settings that fit a model, a machine and the user's jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman_connections.settings import SettingsError
from dragoman_worker.cli.measuring import MeasureOptions, run_measurement, with_measure_options
from dragoman_worker.cli.options import fail

Stages = Annotated[
    str | None,
    typer.Option(
        "--stages",
        metavar="LIST",
        help="Stages after the sweep, some of batched_tokens, memory, fp8, replicas, verify. "
        "All by default.",
    ),
]
Allow = Annotated[
    str | None,
    typer.Option(
        "--allow",
        metavar="LIST",
        help="Changes to try: replicas, fp8. Default: only replicas, where they may gain.",
    ),
]
Sequences = Annotated[
    str | None,
    typer.Option("--sequences", metavar="LIST", help="Sweep only these numbers, as in 8,16,32."),
]
MaxSequences = Annotated[
    int | None,
    typer.Option("--max-sequences", metavar="N", min=1, help="Sweep up to this number."),
]


@with_measure_options(out="tuned")
def tune(
    options: MeasureOptions,
    *,
    stages: Stages = None,
    allow: Allow = None,
    sequences: Sequences = None,
    max_sequences: MaxSequences = None,
) -> None:
    """Measure this model with your own jobs and write the settings that fit.

    The number of sequences is doubled until more only cost latency. Then further settings are
    tried one at a time. OUT/rows.jsonl keeps every point, so the same command continues where
    it was stopped. Exit status 3: --budget-s ran out first.
    """
    from dragoman_worker.cli.tune_session import tune_options, tuned

    try:
        wanted = tune_options(sequences, max_sequences, stages, allow)
    except SettingsError as error:
        fail(2, str(error))
    request = options.request()
    run_measurement(lambda: tuned(request, wanted), options.out)
