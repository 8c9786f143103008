"""The `dragoman result` and `status` commands: of a few jobs, of a file of ids, of a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.job_ids import Document, Ids, InvalidIds, chosen
from dragoman_producer.cli.options import ConnectionOptions, Timeout, Wait
from dragoman_producer.cli.terminal import USAGE_ERROR, print_note, run

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dragoman_producer.cli.job_reading import JobReading


def result(
    job_ids: Ids = None,
    *,
    document_id: Document = None,
    wait: Wait = False,
    timeout_s: Timeout = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl", help="Append whole results to this file; rerun to resume."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Print verdicts and warnings instead of translations.")
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print translations, and the items that need a review on stderr.

    FILE has one id per line, or JSON with job_id. Exit status 3: some jobs have not ended yet, or
    with --check some items are not ok; 1: some jobs have no translation.
    """
    if out is not None and (check or as_json):
        print_note("dragoman result: --out writes whole results; leave out --check and --json")
        raise typer.Exit(USAGE_ERROR)
    reading = _reading("dragoman result", job_ids, document_id, _How(wait, timeout_s, as_json))
    connection = ConnectionOptions(config, kafka, redis)

    async def work() -> int:
        settings = connection.settings()
        if out is not None:
            return await reading.export(settings, out)
        return await reading.results(settings, check=check)

    run(_told("dragoman result", work()))


def status(
    job_ids: Ids = None,
    *,
    document_id: Document = None,
    wait: Wait = False,
    timeout_s: Timeout = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print the status of jobs.

    A status is unknown, queued, running, completed, failed, cancelled or expired. FILE has one id
    per line, or JSON with job_id. Exit status 3: some jobs are unknown, or with --wait not ended.
    """
    reading = _reading("dragoman status", job_ids, document_id, _How(wait, timeout_s, as_json))
    connection = ConnectionOptions(config, kafka, redis)

    async def work() -> int:
        return await reading.states(connection.settings())

    run(_told("dragoman status", work()))


class _How(NamedTuple):
    wait: bool
    timeout_s: float | None
    as_json: bool


def _reading(
    command: str, job_ids: list[str] | None, document_id: str | None, how: _How
) -> JobReading:
    from dragoman_producer.cli.job_reading import JobReading  # keeps --help fast

    if how.timeout_s is not None and not how.wait:
        print_note(f"{command}: --timeout needs --wait")
        raise typer.Exit(USAGE_ERROR)
    jobs = chosen(command, job_ids, document_id)
    return JobReading(command, jobs, how.wait, how.timeout_s, how.as_json)


async def _told(command: str, work: Coroutine[Any, Any, int]) -> int:
    try:
        return await work
    except InvalidIds as error:
        print_note(f"{command}: {error}")
        return USAGE_ERROR
