"""The `dragoman result`, `status` and `cancel` commands, which take job ids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    print_aside,
    print_json,
    print_line,
    print_note,
    run,
)

if TYPE_CHECKING:
    from dragoman_producer.handle import JobHandle
    from dragoman_schemas.results import JobStatus, TranslationResult

Found = TypeVar("Found")

_UNKNOWN = "unknown"
_UNREADABLE = "unreadable"

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Job ids.")]


def result(
    job_ids: Ids,
    *,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="Wait at most SECONDS for jobs that are not terminal.",
        ),
    ] = 0.0,
    check: Annotated[
        bool, typer.Option("--check", help="Print verdicts and warnings instead of translations.")
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print translations, and on stderr the items that need a look.

    Exit status 3: some jobs are not terminal yet, or with --check some items are not ok; 1: some
    jobs have no translation.
    """
    from dragoman_producer.cli.verdicts import Totals  # keeps --help fast

    totals = Totals()

    async def one(handle: JobHandle) -> TranslationResult | JobStatus | None:
        from dragoman_producer.errors import ResultTimeout  # keeps --help fast

        try:
            return await handle.result(wait)
        except ResultTimeout as not_yet:
            return not_yet.status

    def report(job_id: str, found: TranslationResult | JobStatus | None) -> int:
        if found is None or isinstance(found, str):
            return _report_pending(job_id, found, as_json=as_json)
        totals.add(found)
        return show(found, as_json=as_json, check=check)

    async def work() -> int:
        connection = ConnectionOptions(config, kafka, redis)
        status = await _each(job_ids, one, report, connection, as_json=as_json)
        if check and not as_json and totals.jobs > 1:
            for line in totals.lines():
                print_line(line)
        return status

    run(work())


def status(
    job_ids: Ids,
    *,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print the status of jobs.

    One of unknown, queued, running, completed, failed, cancelled, expired.
    """

    async def one(handle: JobHandle) -> JobStatus | None:
        return await handle.status()

    def report(job_id: str, found: JobStatus | None) -> int:
        _print_status(job_id, found or _UNKNOWN, as_json=as_json)
        return SUCCESS

    run(_each(job_ids, one, report, ConnectionOptions(config, kafka, redis), as_json=as_json))


def cancel(
    job_ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Job ids.")] = None,
    *,
    document_id: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="Cancel all jobs of a document.")
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Cancel jobs. Exit status 3: some were already terminal and did not change."""
    if bool(job_ids) == (document_id is not None):
        print_note("dragoman cancel: give either ID... or --document ID")
        raise typer.Exit(USAGE_ERROR)
    if document_id is not None:
        run(_cancel_document(document_id, ConnectionOptions(config, kafka, redis), as_json=as_json))

    async def one(handle: JobHandle) -> tuple[JobStatus | None, JobStatus]:
        return await handle.status(), await handle.cancel()

    def report(job_id: str, found: tuple[JobStatus | None, JobStatus]) -> int:
        before, now = found
        _print_status(job_id, now, as_json=as_json)
        if before is None:
            print_note(f"job {job_id} was unknown; if it is submitted later, it will not run")
        return SUCCESS if now in {"cancelled", "running"} else PARTIAL

    run(_each(job_ids or [], one, report, ConnectionOptions(config, kafka, redis), as_json=as_json))


def show(found: TranslationResult, *, as_json: bool, check: bool = False) -> int:
    """Print one result: a line per item, or with `check` its verdicts; return the exit status."""
    from dragoman_producer.cli.verdicts import check_status, verdict_lines, warning_lines

    completed = found.status == "completed"
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    elif check:
        for line in verdict_lines(found):
            print_line(line)
    elif completed and found.translations:
        print_line("\n".join(item.text or "" for item in found.translations))
        for line in warning_lines(found):
            print_aside(line)
    if not as_json and not (completed and found.translations):
        error = found.error
        why = f"{error.code}: {error.message}" if error else "no text is stored"
        print_note(f"job {found.job_id} is {found.status}: {why}; --json prints the whole result")
    if not completed:
        return FAILURE
    return check_status(found) if check else SUCCESS


def _print_status(job_id: str, found: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"job_id": job_id, "status": str(found)})
    else:
        print_line(f"{job_id}\t{found}")


def _report_pending(job_id: str, found: JobStatus | None, *, as_json: bool) -> int:
    known = found or _UNKNOWN
    if as_json:
        print_json({"job_id": job_id, "status": str(known)})
    else:
        hint = "never submitted, or past its TTL" if found is None else "try --wait SECONDS"
        print_note(f"job {job_id} is {known}: {hint}")
    return PARTIAL


def show_error(job_id: str, error: Exception, *, as_json: bool) -> int:
    """Print why one job cannot be reported; return the exit status."""
    print_note(f"dragoman: {error}")
    if as_json:
        print_json({"job_id": job_id, "status": _UNREADABLE, "error": str(error)})
    return FAILURE


def _check_ids(job_ids: list[str]) -> None:
    from dragoman_producer.handle import check_job_id

    try:
        for job_id in job_ids:
            check_job_id(job_id)
    except ValueError as error:
        print_note(f"dragoman: {error}")
        raise typer.Exit(USAGE_ERROR) from None


async def _each(
    job_ids: list[str],
    one: Callable[[JobHandle], Awaitable[Found]],
    report: Callable[[str, Found], int],
    connection: ConnectionOptions,
    *,
    as_json: bool,
) -> int:
    """Read all jobs at once, report them in the order of the arguments, return the worst status.

    A job that cannot be read or cancelled does not keep others from being reported.
    """
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.errors import SubmitFailed

    _check_ids(job_ids)

    def report_any(job_id: str, found: Found | SubmitFailed) -> int:
        if isinstance(found, SubmitFailed):
            return show_error(job_id, found, as_json=as_json)
        return report(job_id, found)

    async def attempt(handle: JobHandle) -> Found | SubmitFailed:
        try:
            return await one(handle)
        except SubmitFailed as error:
            return error

    async with TranslationClient(settings=connection.settings()) as client:
        reads = [asyncio.ensure_future(attempt(client.job(job_id))) for job_id in job_ids]
        try:
            statuses = [
                report_any(job_id, await found)
                for job_id, found in zip(job_ids, reads, strict=True)
            ]
        finally:
            for unfinished in reads:
                unfinished.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
    return max(statuses)


async def _cancel_document(
    document_id: str, connection: ConnectionOptions, *, as_json: bool
) -> int:
    from dragoman_producer.client import TranslationClient  # keeps --help fast

    try:
        async with TranslationClient(settings=connection.settings()) as client:
            await client.cancel(document_id=document_id)
    except ValueError as error:
        print_note(f"dragoman cancel: --document: {error}")
        return USAGE_ERROR
    if as_json:
        print_json({"document_id": document_id, "status": "cancelled"})
    else:
        print_line(f"{document_id}\tcancelled")
    return SUCCESS
