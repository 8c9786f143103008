"""What do `dragoman dead-letters list`, `show` and `replay` do? They work with dead letters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.letter_lines import (
    put_letter_block,
    put_letter_json,
    put_letter_line,
    tell_judged,
    tell_sum,
)
from dragoman_producer.cli.meter import meter
from dragoman_producer.cli.options import Connection
from dragoman_producer.cli.terminal import ALL_WELL, FAILED, PARTLY, WRONG_USAGE, run, say

if TYPE_CHECKING:
    from dragoman_producer.operations.dead_letters import Judged
    from dragoman_producer.operations.letters import DeadLetter, LetterFilter

Codes = Annotated[
    list[str] | None, typer.Option("--code", metavar="CODE", help="Only these error codes.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Written at or after; RFC 3339.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Written before; RFC 3339.")
]


def list_letters(
    *,
    codes: Codes = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Only these jobs.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Stop after so many.")
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print when, why and where each record died: time, code, job id, place, message."""
    wanted = _filter(codes, ids, since, until)
    put_letter = put_letter_json if as_json else put_letter_line
    connection = Connection(config, kafka, redis)

    async def work() -> int:
        await _each_letter(connection, wanted, put_letter, limit)
        return ALL_WELL

    run(work())


def show(
    names: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Job ids, or topic/partition/offset.")
    ],
    *,
    value: Annotated[
        bool, typer.Option("--value", help="Print the record too: it holds a user's text.")
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print all that is known of every dead letter of the jobs."""
    wanted = _filter(None, names, None, None)
    connection = Connection(config, kafka, redis)
    found: set[str | None] = set()

    def put_letter(letter: DeadLetter) -> None:
        found.add(wanted.name_of(letter))
        if as_json:
            put_letter_json(letter, headers=True, value=value)
        else:
            put_letter_block(letter, value=value)

    async def work() -> int:
        await _each_letter(connection, wanted, put_letter, None)
        missing = [name for name in names if name not in found]
        for name in missing:
            say(f"dragoman dead-letters show: there is no dead letter of {name}")
        return ALL_WELL if not missing else PARTLY if found else FAILED

    run(work())


def replay(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="Job ids, or topic/partition/offset."),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All that the options leave.")] = False,
    codes: Codes = None,
    since: Since = None,
    until: Until = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Publish nothing, tell what would be.")
    ] = False,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="N/s", help="At most so many a second.")
    ] = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Run failed jobs again. Status 3: some are left out, 1: all are; stderr says why.

    Giving the command twice is safe: a failure is run again once, and a completed job never.
    """
    if bool(names) == everything:
        raise _wrong("replay", "give either ID... or --all")
    wanted = _filter(codes, names, since, until)
    rate_hz = _rate(rate)
    connection = Connection(config, kafka, redis)
    published = 0

    def told(judged: Judged) -> None:
        nonlocal published
        published += judged.skip is None and not dry_run
        tell_judged(judged, dry_run=dry_run, as_json=as_json)

    async def work() -> int:
        from dragoman_producer.operations.dead_letters import ReplayOptions, replay_letters

        with meter() as progress:
            result = await replay_letters(
                connection.settings(), wanted, ReplayOptions(dry_run, rate_hz), told, progress
            )
        return tell_sum(result, dry_run=dry_run)

    run(work(), lambda: f"; replayed so far: {published:,} (giving it again is safe)")


# --- what was asked -----------------------------------------------------------------------------


def _filter(
    codes: list[str] | None, names: list[str] | None, since: str | None, until: str | None
) -> LetterFilter:
    from dragoman_producer.operations.letters import LetterFilter

    return LetterFilter(
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
        raise _wrong(option, f"{time!r} is not a time such as 2030-01-31T12:00:00Z")
    return int(at.timestamp() * 1000)


def _rate(given: str | None) -> float | None:
    if given is None:
        return None
    try:
        rate = float(given.removesuffix("/s"))
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise _wrong("--rate", f"{given!r} is not a number of records a second, such as 50/s")
    return rate


def _wrong(what: str, why: str) -> typer.Exit:
    say(f"dragoman dead-letters: {what}: {why}")
    return typer.Exit(WRONG_USAGE)


async def _each_letter(
    connection: Connection,
    wanted: LetterFilter,
    put_letter: Callable[[DeadLetter], None],
    limit: int | None,
) -> None:
    """Letters of one and the same record are one: a crash may have written it twice."""
    from contextlib import aclosing

    from dragoman_producer.operations.digests import DigestTable, digest_of
    from dragoman_producer.operations.letters import stream_letters

    seen, count = DigestTable(), 0
    settings = connection.settings()
    with meter() as progress:
        async with aclosing(stream_letters(settings, wanted, progress)) as letters:
            async for letter in letters:
                if letter.origin is not None and seen.add(digest_of(letter.origin), 1):
                    continue
                put_letter(letter)
                count += 1
                if count == limit:
                    break
