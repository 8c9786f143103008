"""What do `dragoman result`, `status` and `cancel` do? They follow jobs by their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.options import Connection
from dragoman_producer.cli.terminal import (
    ALL_WELL,
    FAILED,
    PARTLY,
    WRONG_USAGE,
    put,
    put_json,
    run,
    say,
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
        typer.Option("--wait", metavar="SECONDS", min=0, help="Wait so long for those not done."),
    ] = 0.0,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print translations. Status 3: not all have ended, 1: some have failed."""

    async def one(handle: JobHandle) -> TranslationResult | JobStatus | None:
        from dragoman_producer.errors import ResultTimeout  # keeps --help fast

        try:
            return await handle.result(wait)
        except ResultTimeout as not_yet:
            return not_yet.status

    def told(job_id: str, found: TranslationResult | JobStatus | None) -> int:
        if found is None or isinstance(found, str):
            return _not_ended(job_id, found, as_json=as_json)
        return show(found, as_json=as_json)

    run(_each(job_ids, one, told, Connection(config, kafka, redis), as_json=as_json))


def status(
    job_ids: Ids,
    *,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print where jobs are: unknown, queued, running, completed, failed, cancelled or expired."""

    async def one(handle: JobHandle) -> JobStatus | None:
        return await handle.status()

    def told(job_id: str, found: JobStatus | None) -> int:
        _put_status(job_id, found or _UNKNOWN, as_json=as_json)
        return ALL_WELL

    run(_each(job_ids, one, told, Connection(config, kafka, redis), as_json=as_json))


def cancel(
    job_ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Job ids.")] = None,
    *,
    document_id: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="All jobs of a document.")
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Cancel jobs. Status 3: some had already ended otherwise, and stay as they are."""
    if bool(job_ids) == (document_id is not None):
        say("dragoman cancel: give either ID... or --document ID")
        raise typer.Exit(WRONG_USAGE)
    if document_id is not None:
        run(_cancel_document(document_id, Connection(config, kafka, redis), as_json=as_json))

    async def one(handle: JobHandle) -> tuple[JobStatus | None, JobStatus]:
        return await handle.status(), await handle.cancel()

    def told(job_id: str, found: tuple[JobStatus | None, JobStatus]) -> int:
        before, now = found
        _put_status(job_id, now, as_json=as_json)
        if before is None:
            say(f"job {job_id} was unknown until now: one that comes later will not be run")
        return ALL_WELL if now in {"cancelled", "running"} else PARTLY

    run(_each(job_ids or [], one, told, Connection(config, kafka, redis), as_json=as_json))


def show(found: TranslationResult, *, as_json: bool) -> int:
    """Print one result; the status it stands for. Of several items, a line each."""
    if as_json:
        put_json(found.model_dump(mode="json", by_alias=True))
    elif found.status == "completed" and found.translations:
        put("\n".join(item.text or "" for item in found.translations))
    else:
        error = found.error
        why = f"{error.code}: {error.message}" if error else "no text is stored"
        say(f"job {found.job_id} is {found.status}: {why}; --json shows all that is known")
    return ALL_WELL if found.status == "completed" else FAILED


def _put_status(job_id: str, found: str, *, as_json: bool) -> None:
    if as_json:
        put_json({"job_id": job_id, "status": str(found)})
    else:
        put(f"{job_id}\t{found}")


def _not_ended(job_id: str, found: JobStatus | None, *, as_json: bool) -> int:
    known = found or _UNKNOWN
    if as_json:
        put_json({"job_id": job_id, "status": str(known)})
    else:
        hint = "never submitted, or past its TTL" if found is None else "try --wait SECONDS"
        say(f"job {job_id} is {known}: {hint}")
    return PARTLY


def show_error(job_id: str, error: Exception, *, as_json: bool) -> int:
    """Print what keeps one job from being reported; the status it stands for."""
    say(f"dragoman: {error}")
    if as_json:
        put_json({"job_id": job_id, "status": _UNREADABLE, "error": str(error)})
    return FAILED


def _check_ids(job_ids: list[str]) -> None:
    from dragoman_producer.handle import check_job_id

    try:
        for job_id in job_ids:
            check_job_id(job_id)
    except ValueError as error:
        say(f"dragoman: {error}")
        raise typer.Exit(WRONG_USAGE) from None


async def _each(
    job_ids: list[str],
    one: Callable[[JobHandle], Awaitable[Found]],
    told: Callable[[str, Found], int],
    connection: Connection,
    *,
    as_json: bool,
) -> int:
    """Ask for all jobs at once and tell of each in the order of the arguments; the worst status.

    A job that cannot be read or cancelled keeps no other from being reported.
    """
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.errors import SubmitFailed

    _check_ids(job_ids)

    def tell(job_id: str, found: Found | SubmitFailed) -> int:
        if isinstance(found, SubmitFailed):
            return show_error(job_id, found, as_json=as_json)
        return told(job_id, found)

    async def attempt(handle: JobHandle) -> Found | SubmitFailed:
        try:
            return await one(handle)
        except SubmitFailed as error:
            return error

    async with TranslationClient(settings=connection.settings()) as client:
        asked = [asyncio.ensure_future(attempt(client.job(job_id))) for job_id in job_ids]
        try:
            statuses = [
                tell(job_id, await found) for job_id, found in zip(job_ids, asked, strict=True)
            ]
        finally:
            for unfinished in asked:
                unfinished.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
    return max(statuses)


async def _cancel_document(document_id: str, connection: Connection, *, as_json: bool) -> int:
    from dragoman_producer.client import TranslationClient  # keeps --help fast

    try:
        async with TranslationClient(settings=connection.settings()) as client:
            await client.cancel(document_id=document_id)
    except ValueError as error:
        say(f"dragoman cancel: --document: {error}")
        return WRONG_USAGE
    if as_json:
        put_json({"document_id": document_id, "status": "cancelled"})
    else:
        put(f"{document_id}\tcancelled")
    return ALL_WELL
