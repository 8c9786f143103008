"""The `dragoman submit` command: make jobs of the input and publish them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.options import ConnectionOptions, Timeout, Wait
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    print_json,
    print_line,
    print_note,
    reported_interrupt,
    run,
)

if TYPE_CHECKING:
    from dragoman_producer.cli.inputs import JobDefaults
    from dragoman_producer.cli.submit_file import Submission
    from dragoman_producer.handle import JobHandle
    from dragoman_schemas.jobs import TranslationJob


@dataclass(slots=True)
class _Texts:
    """Jobs of a text or of the lines of stdin."""

    name: str
    jobs: list[TranslationJob] = field(default_factory=list)
    refused: int = 0
    published: int = 0

    def refuse(self, line: int, why: str) -> None:
        self.refused += 1
        print_note(f"{self.name}:{line}: {why}")


def submit(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|FILE.jsonl|-", help="A text, a file of jobs (JSONL), or - for stdin."
        ),
    ],
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="LANG,...", help="Target languages, such as de,fr."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="LANG", help="Source language; default: detect it."),
    ] = None,
    job_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Job id; default: a random one.")
    ] = None,
    resubmit: Annotated[
        bool, typer.Option("--resubmit", help="Run failed, cancelled or expired jobs again.")
    ] = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Treat every line as a separate text.")
    ] = False,
    text: Annotated[
        bool, typer.Option("--text", help="Treat TEXT as a text even if it looks like a file name.")
    ] = False,
    wait: Wait = False,
    timeout_s: Timeout = None,
    ttl_s: Annotated[
        int | None,
        typer.Option(
            "--ttl", metavar="SECONDS", help="Keep results this long; default: 86400, a day."
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Expire jobs that have not ended by TIME, such as 2030-01-31T12:00:00Z.",
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="Prompt profile; default: the worker's.")
    ] = None,
    glossary: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of a stored glossary.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Topic to publish to; default: the first in kafka.topics."
        ),
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Publish jobs for translation and print their ids.

    Every line of FILE.jsonl is a job; the options fill in what a line lacks. Submit a file again to
    resume: equal jobs are one job. With --wait, results are printed as they end.
    """
    from dragoman_producer.cli.inputs import InvalidInput, JobDefaults  # keeps --help fast

    more = {"ttl_s": ttl_s, "deadline": deadline, "profile": profile, "glossary_id": glossary}
    given = {"--to": to, "--from": source, "--id": job_id, "--profile": profile,
             "--glossary": glossary, "--deadline": deadline, "--topic": topic}  # fmt: skip
    is_file = what.endswith(".jsonl") and not text
    for name, value in {**given, **({} if is_file else {"TEXT": what})}.items():
        options.check_utf8("dragoman submit", name, value or "")
    if timeout_s is not None and not wait:
        print_note("dragoman submit: --timeout needs --wait")
        raise typer.Exit(USAGE_ERROR)
    connection = ConnectionOptions(config, kafka, redis, topic)
    how = _How(resubmit, wait, timeout_s, as_json, with_ids="," in (to or ""))
    wanted = JobDefaults(to, source, job_id, more)
    try:
        with reported_interrupt():
            chosen = (
                _file(Path(what), wanted, how, lines=lines)
                if is_file
                else _texts(what, wanted, lines=lines, text=text)
            )
    except InvalidInput as error:
        print_note(f"dragoman submit: {error}")
        raise typer.Exit(USAGE_ERROR) from None
    if isinstance(chosen, _Texts):
        run(_publish(chosen, how, connection), partial(_told_interrupt, chosen, job_id))
    else:
        run(_submit_file(chosen, connection), chosen.told_interrupt)


def _told_interrupt(texts: _Texts, job_id: str | None) -> str:
    again = " (submitting them again is safe)" if job_id is not None else ""
    return f"; published so far: {texts.published:,}{again}"


@dataclass(frozen=True, slots=True)
class _How:
    """Options of a submission that are not of its jobs."""

    resubmit: bool
    wait: bool
    timeout_s: float | None
    as_json: bool
    with_ids: bool
    """Whether translations are printed behind the ids of their jobs."""


def _texts(what: str, wanted: JobDefaults, *, lines: bool, text: bool) -> _Texts:
    from dragoman_producer.cli import inputs  # keeps --help fast

    if wanted.to is None:
        raise inputs.InvalidInput("--to is missing: give the target language, such as --to de")
    source = _Texts("stdin" if what == "-" else "TEXT")
    content = _stdin() if what == "-" else what
    if what != "-" and not text and inputs.looks_like_a_file(what):
        raise inputs.InvalidInput(
            f"{what} looks like a file name: give a .jsonl file of jobs, `- < {what}`, --text if it"
            " is a text, or `dragoman translate` for documents and tables"
        )
    if not content:
        raise inputs.InvalidInput(f"{source.name} is empty: there is nothing to translate")
    if lines:
        source.jobs = inputs.jobs_of_lines(content.split("\n"), wanted, source.refuse)
    else:
        source.jobs = inputs.jobs_of_text(content, wanted)
    return source


def _file(path: Path, wanted: JobDefaults, how: _How, *, lines: bool) -> Submission:
    from dragoman_producer.cli import inputs  # keeps --help fast
    from dragoman_producer.cli.submit_file import Submission

    if wanted.job_id is not None:
        raise inputs.InvalidInput(
            "--id is for one text; the lines of a .jsonl file have their job_id"
        )
    if lines:
        raise inputs.InvalidInput("--lines is for text; the lines of a .jsonl file are jobs")
    try:
        total = inputs.count_lines(path)
    except OSError as error:
        raise inputs.InvalidInput(f"{path}: {error.strerror}; give a readable file") from None
    inputs.jobs_of_text("check the options once, not on every line", _checkable(wanted))
    total *= max(1, len(wanted.languages))
    return Submission(path, wanted, total, how.resubmit, how.wait, how.timeout_s, how.as_json)


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


async def _submit_file(submission: Submission, connection: ConnectionOptions) -> int:
    return await submission.work(connection.settings())


async def _publish(texts: _Texts, how: _How, connection: ConnectionOptions) -> int:
    """Publish the jobs of texts; print their ids, or with --wait what became of them."""
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.errors import SomeNotSubmitted

    handles: list[JobHandle] = []
    async with TranslationClient(settings=connection.settings()) as client:
        try:
            async for handle in client.submit_many(texts.jobs, resubmit=how.resubmit):
                texts.published += 1
                handles.append(handle)
                if not how.wait:
                    _print_id(handle, as_json=how.as_json)
        except SomeNotSubmitted as some:
            for refusal in some.refused:
                print_note(f"dragoman submit: {refusal}")
            texts.refused += len(some.refused)
        for handle in handles:
            if handle.already in {"failed", "cancelled", "expired"}:
                print_note(
                    f"dragoman submit: job {handle.job_id} ({handle.already}) ended before and will"
                    " not run again; --resubmit runs it again"
                )
        status = _status(texts)
        if how.wait and handles:
            status = max(status, await _await_results(handles, how))
    return status


def _print_id(handle: JobHandle, *, as_json: bool) -> None:
    if as_json:
        print_json({"job_id": handle.job_id, "status": str(handle.already or "queued")})
    else:
        print_line(handle.job_id)


def _status(texts: _Texts) -> int:
    if not texts.refused:
        return SUCCESS
    return PARTIAL if texts.published else FAILURE


async def _await_results(handles: list[JobHandle], how: _How) -> int:
    """Print the results of a few jobs; with --json as they end, otherwise in their order."""
    from dragoman_producer.cli.showing import report  # keeps --help fast
    from dragoman_producer.cli.waiting import Waits
    from dragoman_producer.window import as_ended, in_order

    waits = Waits("dragoman submit", how.timeout_s)
    waits.outage.reached()  # it has taken the jobs
    status = SUCCESS
    ordered = as_ended if how.as_json else in_order
    with waits.quiet():
        async for job_id, found in ordered(handles, waits.result, in_flight=len(handles)):
            shown = report(job_id, found, as_json=how.as_json, with_id=how.with_ids)
            status = max(status, shown)
    return status
