"""The `dragoman submit` command: make jobs of the input and publish them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    print_json,
    print_line,
    print_note,
    progress,
    reported_interrupt,
    run,
)

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings
    from dragoman_producer.cli.inputs import JobDefaults
    from dragoman_producer.handle import JobHandle
    from dragoman_schemas.jobs import TranslationJob


@dataclass(slots=True)
class _Source:
    """Jobs to publish, their origin, and the number of invalid ones."""

    name: str
    jobs: Iterable[TranslationJob] = ()
    total: int | None = None
    refused: int = 0

    def refuse(self, line: int, why: str) -> None:
        self.refused += 1
        print_note(f"{self.name}:{line}: {why}")


@dataclass(slots=True)
class _Submission:
    """Options of a submission, and its progress."""

    source: _Source
    resubmit: bool
    wait: bool
    as_json: bool
    published: int = 0
    ended: list[JobHandle] = field(default_factory=list)
    """Jobs that were already failed, cancelled or expired, and are not run again."""
    handles: list[JobHandle] = field(default_factory=list)

    def report(self) -> str:
        return f"; published so far: {self.published:,} (submitting them again is safe)"


def submit(
    what: Annotated[
        str,
        typer.Argument(metavar="TEXT|FILE.jsonl|-", help="A text, a file of jobs, or - for stdin."),
    ],
    *,
    to: Annotated[str | None, typer.Option("--to", metavar="LANG", help="Target language.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="LANG", help="Source language; default: detected."),
    ] = None,
    job_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the job; default: a random id.")
    ] = None,
    resubmit: Annotated[
        bool, typer.Option("--resubmit", help="Run failed, cancelled or expired jobs again.")
    ] = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Treat every line as a separate text.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait, and print translations instead of ids.")
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Publish jobs for translation and print their ids.

    Every line of FILE.jsonl is a job; --to and --from apply to jobs without a language.
    """
    from dragoman_producer.cli.inputs import InvalidInput, JobDefaults  # keeps --help fast

    wanted = JobDefaults(to, source, job_id)
    texts = {"TEXT": what, "--to": to, "--from": source, "--id": job_id}
    for name, text in texts.items():
        if text is not None and not (name == "TEXT" and text.endswith(".jsonl")):
            options.check_utf8("dragoman submit", name, text)
    try:
        with reported_interrupt():
            found = _source(what, wanted, lines=lines)
    except InvalidInput as error:
        print_note(f"dragoman submit: {error}")
        raise typer.Exit(USAGE_ERROR) from None
    submission = _Submission(found, resubmit, wait, as_json)

    async def work() -> int:
        return await _publish(submission, ConnectionOptions(config, kafka, redis).settings())

    run(work(), submission.report)


def _source(what: str, wanted: JobDefaults, *, lines: bool) -> _Source:
    from dragoman_producer.cli import inputs  # keeps --help fast

    if what.endswith(".jsonl"):
        return _file(Path(what), wanted, lines=lines)
    if wanted.to is None:
        raise inputs.InvalidInput("--to is missing: give the target language, such as --to de")
    source = _Source("stdin" if what == "-" else "TEXT")
    text = _stdin() if what == "-" else what
    if what != "-" and len(what) < 256 and Path(what).is_file():
        raise inputs.InvalidInput(
            f"{what} is a file, not a text: give `- < {what}`, or a .jsonl file"
        )
    if not text:
        raise inputs.InvalidInput(f"{source.name} is empty: there is nothing to translate")
    if lines:
        source.jobs = jobs = inputs.jobs_of_lines(text.split("\n"), wanted, source.refuse)
    else:
        source.jobs = jobs = [inputs.job_of_text(text, wanted)]
    source.total = len(jobs)
    return source


def _file(path: Path, wanted: JobDefaults, *, lines: bool) -> _Source:
    from dragoman_producer.cli import inputs  # keeps --help fast

    if wanted.job_id is not None:
        raise inputs.InvalidInput(
            "--id is for one text; the lines of a .jsonl file have their job_id"
        )
    if lines:
        raise inputs.InvalidInput("--lines is for text; the lines of a .jsonl file are jobs")
    try:
        source = _Source(str(path), total=inputs.count_lines(path))
    except OSError as error:
        raise inputs.InvalidInput(f"{path}: {error.strerror}; give a readable file") from None
    if wanted.to is not None or wanted.source is not None:
        inputs.job_of_text("check the languages once, not on every line", _checkable(wanted))
    source.jobs = inputs.jobs_of_file(path, wanted, source.refuse)
    return source


def _checkable(wanted: JobDefaults) -> JobDefaults:
    return replace(wanted, to=wanted.to or "en")


def _stdin() -> str:
    """Read all of stdin, without its last newline."""
    from dragoman_producer.cli.inputs import InvalidInput  # keeps --help fast

    if sys.stdin is None:
        raise InvalidInput("stdin is closed: give TEXT, FILE.jsonl, or `-` with text on stdin")
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"stdin is not UTF-8 (byte {error.start})") from None


async def _publish(submission: _Submission, settings: DragomanSettings) -> int:
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.errors import SomeNotSubmitted

    source = submission.source
    async with TranslationClient(settings=settings) as client:
        try:
            with progress("published", source.total) as advance:
                async for handle in client.submit_many(source.jobs, resubmit=submission.resubmit):
                    submission.published += 1
                    advance()
                    _published(submission, handle)
        except SomeNotSubmitted as some:
            for refusal in some.refused:
                print_note(f"dragoman submit: {refusal}")
            source.refused += len(some.refused)
        _report_ended(submission)
        status = _status(submission)
        if submission.wait and submission.handles:
            status = max(status, await _await_results(submission))
    return status


def _published(submission: _Submission, handle: JobHandle) -> None:
    if handle.already in {"failed", "cancelled", "expired"}:
        submission.ended.append(handle)
    if submission.wait:
        submission.handles.append(handle)
    elif submission.as_json:
        print_json({"job_id": handle.job_id, "status": str(handle.already or "queued")})
    else:
        print_line(handle.job_id)


def _report_ended(submission: _Submission) -> None:
    if ended := submission.ended:
        first = f"{ended[0].job_id} ({ended[0].already})"
        what = f"job {first}" if len(ended) == 1 else f"{len(ended):,} jobs, the first {first},"
        print_note(
            f"dragoman submit: {what} ended before and will not run again; --resubmit runs it again"
        )


def _status(submission: _Submission) -> int:
    if not submission.source.refused:
        return SUCCESS
    return PARTIAL if submission.published else FAILURE


async def _await_results(submission: _Submission) -> int:
    """Print results in the order of the jobs; with JSON, in the order of completion."""
    from dragoman_producer.cli.results import show, show_error  # keeps --help fast
    from dragoman_producer.errors import SubmitFailed
    from dragoman_producer.watch import NO_RESULT, QUIET_S

    loop = asyncio.get_running_loop()
    note = loop.call_later(QUIET_S, print_note, f"dragoman submit: {NO_RESULT}")
    waits = [asyncio.ensure_future(handle.result()) for handle in submission.handles]
    ordered = asyncio.as_completed(waits) if submission.as_json else waits
    status = SUCCESS
    try:
        with progress("translated", len(waits)) as advance:
            for waiting in ordered:
                try:
                    shown = show(await waiting, as_json=submission.as_json)
                except SubmitFailed as error:
                    shown = show_error(error.job_id, error, as_json=submission.as_json)
                note.cancel()
                status = max(status, shown)
                advance()
    finally:
        note.cancel()
        for unfinished in waits:
            unfinished.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return status
