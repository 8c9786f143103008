"""The `bench` command: compares the ways of feeding an engine with the user's jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman_connections.settings import SettingsError
from dragoman_worker.cli.measuring import MeasureOptions, run_measurement, with_measure_options
from dragoman_worker.cli.options import fail


@with_measure_options(out="bench")
def bench(
    options: MeasureOptions,
    *,
    strategies: Annotated[
        str | None,
        typer.Option(
            "--strategies",
            metavar="LIST",
            help="Some of one, static, published, default, given, all, replicas. By default all "
            "that fit the settings.",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="Runs of each strategy.")
    ] = 3,
) -> None:
    """Compare ways of feeding this model's engine, with your own jobs.

    Strategies: one request at a time, static batches, the published setting, continuous with
    default settings and with yours, all at once without admission, and replicas if
    engine.replicas is above 1. Exit status 3: --budget-s ran out first.
    """
    from dragoman_worker.cli.bench_session import benched, strategies_of

    try:
        wanted = strategies_of(strategies)
    except SettingsError as error:
        fail(2, str(error))
    request = options.request()
    run_measurement(lambda: benched(request, wanted, rounds), options.out)
