"""The `dragoman forget` command: removes what a person asks to be removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options
from dragoman_producer.cli.job_ids import ChosenJobs, Document, Ids, InvalidIds, chosen
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.showing import UNKNOWN, print_status, show_error
from dragoman_producer.cli.terminal import (
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    print_json,
    print_line,
    print_note,
    run,
)

if TYPE_CHECKING:
    from dragoman_producer.store import JobStore

_AT_ONCE: Final = 500
_OUT_OF_REACH: Final = (
    "not reached: dead letters and the results topic (until their retention), the machine's memory"
    " (`dragoman memory clear`, or its TTL), manifests and output folders of `dragoman translate`,"
    " files that you exported, and backups"
)


def forget(
    job_ids: Ids = None,
    *,
    document_id: Document = None,
    memory_text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Remove approved translations of the text in FILE."),
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Remove ended jobs and their results, and say where copies may remain.

    Jobs that are queued or running would come back: cancel them first. Exit status 3: some jobs
    were not removed.
    """
    connection = ConnectionOptions(config, kafka, redis)
    if memory_text is not None:
        if job_ids or document_id is not None:
            print_note(
                "dragoman forget: --memory-text cannot be combined with job ids or --document"
            )
            raise typer.Exit(USAGE_ERROR)
        run(_forget_text(_text_of(memory_text), connection, as_json=as_json))
    jobs = chosen("dragoman forget", job_ids, document_id)
    run(_forget_jobs(jobs, connection, as_json=as_json))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        print_note(f"dragoman forget: --memory-text {path}: {why}")
        raise typer.Exit(USAGE_ERROR) from None


async def _forget_text(text: str, connection: ConnectionOptions, *, as_json: bool) -> int:
    from dragoman_producer.operations.memory import MemoryStore  # keeps --help fast

    store = MemoryStore(connection.settings())
    try:
        removed = await store.remove(text)
    finally:
        await store.close()
    if as_json:
        print_json({"removed": removed})
    else:
        print_line(f"{counted(removed, 'approved translation')} removed")
    print_note(f"dragoman forget: {_OUT_OF_REACH}")
    return SUCCESS


async def _forget_jobs(jobs: ChosenJobs, connection: ConnectionOptions, *, as_json: bool) -> int:
    from dragoman_producer.store import JobStore  # keeps --help fast

    settings = connection.settings()
    store = JobStore(settings.redis, connect_timeout_s=settings.connect_timeout_s)
    status, some = SUCCESS, list[str]()
    try:
        async for job_id in jobs.ids(settings):
            some.append(job_id)
            if len(some) == _AT_ONCE:
                status, some = max(status, await _removed(store, some, as_json=as_json)), []
        status = max(status, await _removed(store, some, as_json=as_json))
        if jobs.document_id is not None and status == SUCCESS:
            await _forget_document(store, jobs.document_id)
    except InvalidIds as error:
        print_note(f"dragoman forget: {error}")
        return USAGE_ERROR
    finally:
        await store.close()
    print_note(f"dragoman forget: {_OUT_OF_REACH}")
    return status


async def _removed(store: JobStore, job_ids: list[str], *, as_json: bool) -> int:
    """Remove some jobs and print what became of each; return the exit status."""
    status = SUCCESS
    for job_id, answer in zip(job_ids, await store.forget(job_ids) if job_ids else (), strict=True):
        if isinstance(answer, Exception):
            status = max(status, PARTIAL, show_error(job_id, answer, as_json=as_json))
            continue
        now = "removed" if answer.removed else answer.status or UNKNOWN
        print_status(job_id, now, as_json=as_json)
        if not answer.removed and answer.status is not None:
            print_note(f"job {job_id} is {now} and was not removed; cancel it first")
            status = PARTIAL
    return status


async def _forget_document(store: JobStore, document_id: str) -> None:
    from dragoman_producer.errors import StoreRefused  # keeps --help fast

    await store.forget_document(document_id)
    try:
        await store.forget_in_gateway(document_id)
    except StoreRefused:
        what = "grant ~dragoman:gateway:document:* (with redis.key_prefix) and +del"
        print_note(f"dragoman forget: what the gateway keeps of {document_id} stays: {what}")
