"""The `check` command: prints the findings of `cli.checks` as they are made."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_connections.terminal import print_to
from dragoman_worker.cli.options import AsJson, Config, Set, fail, settings_or_exit

if TYPE_CHECKING:
    from dragoman_worker.cli.checks import CheckResult
    from dragoman_worker.settings import WorkerSettings


def check(
    config: Config = None,
    set_: Set = None,
    as_json: AsJson = False,
    engine: Annotated[
        bool, typer.Option("--engine/--no-engine", help="Start the engine too, or skip it.")
    ] = True,
    tokens: Annotated[
        bool,
        typer.Option(
            "--tokens",
            help="Only measure which placeholder tokens the model keeps, and which to set.",
        ),
    ] = False,
) -> None:
    """Check the settings, the model, Kafka, Redis and all rights before a worker needs them.

    Exit status: 0 if all checks pass, 1 if one fails, 2 if the settings are invalid.
    """
    from dragoman_worker.process.event_loop import run_loop

    settings = settings_or_exit(config, set_)
    if tokens and not engine:
        fail(2, "--tokens: needs the engine, which --no-engine leaves out")
    if tokens:
        from dragoman_worker.cli.token_check import check_tokens

        raise typer.Exit(run_loop(check_tokens(settings, as_json=as_json)))
    failed = run_loop(_check(settings, as_json=as_json, engine=engine))
    raise typer.Exit(1 if failed else 0)


async def _check(settings: WorkerSettings, *, as_json: bool, engine: bool) -> bool:
    """Print each finding at once; return whether one is bad."""
    from dragoman_worker import log
    from dragoman_worker.cli.checks import findings

    log.configure(settings.log, worker_id=settings.worker_id)
    failed = False
    async for finding in findings(settings, engine=engine):
        failed = failed or finding.status == "bad"
        print_to(sys.stdout, _line(finding, as_json=as_json), flush=True)
    return failed


def _line(finding: CheckResult, *, as_json: bool) -> str:
    if not as_json:
        return f"{finding.status:>4}  {finding.name}: {finding.detail}"
    fields = {"check": finding.name, "status": finding.status, "detail": finding.detail}
    return json.dumps(fields)
