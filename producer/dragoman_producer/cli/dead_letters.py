"""The `dragoman dead-letters list`, `show` and `replay` commands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.dead_letter_lines import (
    NO_CODE,
    print_as_json,
    print_as_line,
    print_block,
    print_causes,
    report_judged,
    report_totals,
)
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    meter,
    print_note,
    run,
)
from dragoman_producer.operations.causes import Causes
from dragoman_schemas.nearest import invalid_choice

if TYPE_CHECKING:
    from dragoman_producer.operations.dead_letters import DeadLetterFilter, ReadDeadLetter
    from dragoman_producer.operations.replay import Judged

Codes = Annotated[
    list[str] | None,
    typer.Option("--code", metavar="CODE", help="Only this error code; repeatable."),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only those written at or after TIME, such as 2030-01-31T12:00:00Z.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only those written before TIME."),
]


def list_dead_letters(
    *,
    codes: Codes = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Only this job; repeatable.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Stop after N dead letters.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="code", help="Print how many there are of each error code."),
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """List dead letters: time, error code, job id, place, message."""
    wanted = _filter(codes, ids, since, until)
    if by not in {None, "code"}:
        raise _invalid("--by", invalid_choice(by or "", ("code",)))
    causes = Causes()
    print_dead_letter = print_as_json if as_json else print_as_line
    connection = ConnectionOptions(config, kafka, redis)

    def count(dead_letter: ReadDeadLetter) -> None:
        causes.add(dead_letter.code or NO_CODE, dead_letter.job_id or dead_letter.origin or "")

    async def work() -> int:
        await _each_dead_letter(connection, wanted, count if by else print_dead_letter, limit)
        print_causes(causes, as_json=as_json)
        return SUCCESS

    run(work())


def show(
    names: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Job ids, or topic/partition/offset.")
    ],
    *,
    value: Annotated[
        bool, typer.Option("--value", help="Print the record too; it holds the text to translate.")
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print all fields and headers of dead letters."""
    wanted = _filter(None, names, None, None)
    connection = ConnectionOptions(config, kafka, redis)
    found: set[str | None] = set()

    def print_dead_letter(dead_letter: ReadDeadLetter) -> None:
        found.add(wanted.name_of(dead_letter))
        if as_json:
            print_as_json(dead_letter, headers=True, value=value)
        else:
            print_block(dead_letter, value=value)

    async def work() -> int:
        await _each_dead_letter(connection, wanted, print_dead_letter, None)
        missing = [name for name in names if name not in found]
        for name in missing:
            print_note(f"dragoman dead-letters show: no dead letter of {name}")
        return SUCCESS if not missing else PARTIAL if found else FAILURE

    run(work())


def replay(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="Job ids, or topic/partition/offset."),
    ] = None,
    *,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Replay all, or all that --code, --since and --until select."),
    ] = False,
    codes: Codes = None,
    since: Since = None,
    until: Until = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be replayed; publish nothing.")
    ] = False,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="N/s", help="Replay at most N records per second."),
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Run failed jobs again.

    Exit status 3: some were skipped, 1: all were; stderr gives the reasons. Repeating the command
    is safe: a failure runs again once, and a completed job never.
    """
    if bool(names) == everything:
        raise _invalid("replay", "give ID... or --all")
    wanted = _filter(codes, names, since, until)
    rate_hz = _rate(rate)
    connection = ConnectionOptions(config, kafka, redis)
    published = 0

    def report(judged: Judged) -> None:
        nonlocal published
        published += judged.skip is None and not dry_run
        report_judged(judged, dry_run=dry_run, as_json=as_json)

    async def work() -> int:
        from dragoman_producer.operations.replay import ReplayOptions, replay_dead_letters

        with meter() as progress:
            result = await replay_dead_letters(
                connection.settings(), wanted, ReplayOptions(dry_run, rate_hz), report, progress
            )
        return report_totals(result, dry_run=dry_run)

    run(work(), lambda: f"; replayed so far: {published:,} (repeating the command is safe)")


# --- options ------------------------------------------------------------------------------------


def _filter(
    codes: list[str] | None, names: list[str] | None, since: str | None, until: str | None
) -> DeadLetterFilter:
    from dragoman_producer.operations.dead_letters import DeadLetterFilter

    return DeadLetterFilter(
        codes=frozenset(codes or ()),
        names=frozenset(names or ()),
        since_ms=_milliseconds("--since", since),
        until_ms=_milliseconds("--until", until),
    )


def _milliseconds(option: str, time: str | None) -> int | None:
    if time is None:
        return None
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise _invalid(
            option, f"{time!r} is not an RFC 3339 time with a zone, such as 2030-01-31T12:00:00Z"
        )
    return int(at.timestamp() * 1000)


def _rate(given: str | None) -> float | None:
    if given is None:
        return None
    try:
        rate = float(given.removesuffix("/s"))
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise _invalid("--rate", f"{given!r} is not a number of records per second, such as 50/s")
    return rate


def _invalid(what: str, why: str) -> typer.Exit:
    print_note(f"dragoman dead-letters: {what}: {why}")
    return typer.Exit(USAGE_ERROR)


async def _each_dead_letter(
    connection: ConnectionOptions,
    wanted: DeadLetterFilter,
    print_dead_letter: Callable[[ReadDeadLetter], None],
    limit: int | None,
) -> None:
    """Print each selected dead letter once, although a crash may have written it twice."""
    from contextlib import aclosing, closing

    from dragoman_producer.operations.dead_letters import stream_dead_letters
    from dragoman_producer.operations.digests import DigestTable, digest_of

    count = 0
    settings = connection.settings()
    with meter() as progress, closing(DigestTable()) as seen:
        async with aclosing(stream_dead_letters(settings, wanted, progress)) as dead_letters:
            async for dead_letter in dead_letters:
                if dead_letter.origin is not None and seen.add(digest_of(dead_letter.origin), 1):
                    continue
                print_dead_letter(dead_letter)
                count += 1
                if count == limit:
                    break
