"""The `dragoman cancel` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.job_ids import chosen
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.showing import print_status, show_error
from dragoman_producer.cli.terminal import PARTIAL, SUCCESS, print_json, print_line, print_note, run

if TYPE_CHECKING:
    from dragoman_producer.errors import SubmitFailed
    from dragoman_producer.handle import JobHandle
    from dragoman_schemas.results import JobStatus

_AT_ONCE = 1_000


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
    """Cancel jobs.

    Exit status 3: some had already ended and did not change.
    """
    connection = ConnectionOptions(config, kafka, redis)
    found = chosen("dragoman cancel", job_ids, document_id, files=False)
    if document_id is not None:
        run(_cancel_document(document_id, connection, as_json=as_json))
    run(_cancel_jobs(found.arguments, connection, as_json=as_json))


async def _cancel_jobs(job_ids: list[str], connection: ConnectionOptions, *, as_json: bool) -> int:
    """Cancel jobs; one that cannot be cancelled does not keep the others from it."""
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.window import in_order

    status = SUCCESS
    async with TranslationClient(settings=connection.settings()) as client:
        handles = [client.job(job_id) for job_id in job_ids]
        async for job_id, before, now in in_order(handles, _cancelled, in_flight=_AT_ONCE):
            if isinstance(now, Exception):
                status = max(status, show_error(job_id, now, as_json=as_json))
                continue
            if before is None:
                print_note(
                    f"job {job_id} is unknown: never submitted, or past its TTL; "
                    "if it is submitted later, it will not run"
                )
            print_status(job_id, now, as_json=as_json)
            status = max(status, SUCCESS if now in {"cancelled", "running"} else PARTIAL)
    return status


async def _cancelled(
    handle: JobHandle,
) -> tuple[str, JobStatus | None, JobStatus | SubmitFailed]:
    """Return the id of a job with its status before and after the cancellation."""
    from dragoman_producer.errors import SubmitFailed  # keeps --help fast

    try:
        return handle.job_id, await handle.status(), await handle.cancel()
    except SubmitFailed as error:
        return handle.job_id, None, error


async def _cancel_document(
    document_id: str, connection: ConnectionOptions, *, as_json: bool
) -> int:
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.operations.document_jobs import document_total

    settings = connection.settings()
    if not await document_total(settings, document_id):
        print_note(
            f"document {document_id} is unknown: no job of it was submitted, or all are past "
            "their TTL; jobs of it that are submitted later will not run"
        )
    async with TranslationClient(settings=settings) as client:
        await client.cancel(document_id=document_id)
    if as_json:
        print_json({"document_id": document_id, "status": "cancelled"})
    else:
        print_line(f"{document_id}\tcancelled")
    return SUCCESS
