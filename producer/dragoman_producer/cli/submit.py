"""What does `dragoman submit` do? It makes jobs of what it is given and publishes them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.options import Connection
from dragoman_producer.cli.terminal import (
    ALL_WELL,
    FAILED,
    PARTLY,
    WRONG_USAGE,
    progress,
    put,
    put_json,
    run,
    say,
)

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings
    from dragoman_producer.cli.inputs import Wanted
    from dragoman_producer.handle import JobHandle
    from dragoman_schemas.jobs import TranslationJob


@dataclass(slots=True)
class _Source:
    """The jobs to publish, where they come from, and what was wrong with some of them."""

    name: str
    jobs: Iterable[TranslationJob] = ()
    total: int | None = None
    refused: int = 0

    def refuse(self, line: int, why: str) -> None:
        self.refused += 1
        say(f"{self.name}:{line}: {why}")


@dataclass(slots=True)
class _Submission:
    """What the options ask, and how far it has come."""

    source: _Source
    again: bool
    wait: bool
    as_json: bool
    published: int = 0
    ended: list[JobHandle] = field(default_factory=list)
    """Of those, what had ended without a translation and is not run again."""
    handles: list[JobHandle] = field(default_factory=list)

    def told(self) -> str:
        return f"; published so far: {self.published:,} (submitting them again is safe)"


def submit(
    what: Annotated[
        str, typer.Argument(metavar="TEXT|FILE.jsonl|-", help="A text, a file of jobs, or stdin.")
    ],
    *,
    to: Annotated[str | None, typer.Option("--to", metavar="LANG", help="Target language.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="LANG", help="Source language; else detected.")
    ] = None,
    job_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The job's id; else one is made up.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--resubmit", help="Run failed, cancelled or expired jobs once more.")
    ] = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Every line is a text of its own.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Print the translations, not ids.")] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Publish jobs for translation and print their ids.

    The lines of FILE.jsonl are jobs; --to and --from fill in what they lack.
    """
    from dragoman_producer.cli.inputs import Wanted, WrongInput  # keeps --help fast

    wanted = Wanted(to, source, job_id)
    try:
        found = _source(what, wanted, lines=lines)
    except WrongInput as error:
        say(f"dragoman submit: {error}")
        raise typer.Exit(WRONG_USAGE) from None
    submission = _Submission(found, again, wait, as_json)

    async def work() -> int:
        return await _publish(submission, Connection(config, kafka, redis).settings())

    run(work(), submission.told)


def _source(what: str, wanted: Wanted, *, lines: bool) -> _Source:
    from dragoman_producer.cli import inputs  # keeps --help fast

    if what.endswith(".jsonl"):
        return _file(Path(what), wanted, lines=lines)
    if wanted.to is None:
        raise inputs.WrongInput("--to is missing: give the target language, such as --to de")
    source = _Source("stdin" if what == "-" else "TEXT")
    text = _stdin() if what == "-" else what
    if what != "-" and len(what) < 256 and Path(what).is_file():
        raise inputs.WrongInput(
            f"{what} is a file, not a text: give `- < {what}`, or a .jsonl file"
        )
    if not text:
        raise inputs.WrongInput(f"{source.name} is empty: there is nothing to translate")
    if lines:
        source.jobs = jobs = inputs.jobs_of_lines(text.split("\n"), wanted, source.refuse)
    else:
        source.jobs = jobs = [inputs.job_of_text(text, wanted)]
    source.total = len(jobs)
    return source


def _file(path: Path, wanted: Wanted, *, lines: bool) -> _Source:
    from dragoman_producer.cli import inputs  # keeps --help fast

    if wanted.job_id is not None:
        raise inputs.WrongInput(
            "--id is for one text; the lines of a .jsonl file have their job_id"
        )
    if lines:
        raise inputs.WrongInput("--lines is for text; the lines of a .jsonl file are jobs")
    try:
        source = _Source(str(path), total=inputs.count_lines(path))
    except OSError as error:
        raise inputs.WrongInput(f"{path}: {error.strerror}; give a file that can be read") from None
    if wanted.to is not None or wanted.source is not None:
        inputs.job_of_text("check the languages once, not at every line", _checkable(wanted))
    source.jobs = inputs.jobs_of_file(path, wanted, source.refuse)
    return source


def _checkable(wanted: Wanted) -> Wanted:
    return replace(wanted, to=wanted.to or "en")


def _stdin() -> str:
    """All of stdin; the newline that ends it is no part of the text."""
    from dragoman_producer.cli.inputs import WrongInput  # keeps --help fast

    if sys.stdin is None:
        raise WrongInput("stdin is closed: give TEXT, FILE.jsonl, or `-` with text on stdin")
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise WrongInput(f"stdin is not UTF-8 (byte {error.start})") from None


async def _publish(submission: _Submission, settings: DragomanSettings) -> int:
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.errors import SomeNotSubmitted

    source = submission.source
    async with TranslationClient(settings=settings) as client:
        try:
            with progress("published", source.total) as advance:
                async for handle in client.submit_many(source.jobs, again=submission.again):
                    submission.published += 1
                    advance()
                    _published(submission, handle)
        except SomeNotSubmitted as some:
            for refusal in some.refused:
                say(f"dragoman submit: {refusal}")
            source.refused += len(some.refused)
        _tell_ended(submission)
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
        put_json({"job_id": handle.job_id, "status": str(handle.already or "queued")})
    else:
        put(handle.job_id)


def _tell_ended(submission: _Submission) -> None:
    if ended := submission.ended:
        first = f"{ended[0].job_id} ({ended[0].already})"
        what = f"job {first}" if len(ended) == 1 else f"{len(ended):,} jobs, the first {first},"
        say(f"dragoman submit: {what} ended before and will not be run again; --resubmit does that")


def _status(submission: _Submission) -> int:
    if not submission.source.refused:
        return ALL_WELL
    return PARTLY if submission.published else FAILED


async def _await_results(submission: _Submission) -> int:
    """Print results in the order of the jobs; as JSON, as they end."""
    from dragoman_producer.cli.results import show, show_error  # keeps --help fast
    from dragoman_producer.errors import SubmitFailed

    waits = [asyncio.ensure_future(handle.result()) for handle in submission.handles]
    ordered = asyncio.as_completed(waits) if submission.as_json else waits
    status = ALL_WELL
    try:
        with progress("translated", len(waits)) as advance:
            for waiting in ordered:
                try:
                    shown = show(await waiting, as_json=submission.as_json)
                except SubmitFailed as error:
                    shown = show_error(error.job_id, error, as_json=submission.as_json)
                status = max(status, shown)
                advance()
    finally:
        for unfinished in waits:
            unfinished.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return status
