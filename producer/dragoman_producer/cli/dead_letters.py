"""What do `dragoman dead-letters list`, `show` and `replay` do? They work with dead letters."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.meter import meter
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
    from dragoman_producer.operations.dead_letters import Judged, ReplaySum
    from dragoman_producer.operations.letters import DeadLetter, LetterFilter

_NOWHERE: Final = "-"

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
    put_letter = _put_json if as_json else _put_line
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
            put_json(_fields(letter) | _headers(letter) | (_value(letter) if value else {}))
        else:
            _put_block(letter, value=value)

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
        _tell_judged(judged, dry_run=dry_run, as_json=as_json)

    async def work() -> int:
        from dragoman_producer.operations.dead_letters import ReplayOptions, replay_letters

        with meter() as progress:
            result = await replay_letters(
                connection.settings(), wanted, ReplayOptions(dry_run, rate_hz), told, progress
            )
        return _tell_sum(result, dry_run=dry_run)

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


# --- what is said -------------------------------------------------------------------------------


def _fields(letter: DeadLetter) -> dict[str, Any]:
    from dragoman_schemas import names
    from dragoman_schemas.wire import rfc3339

    return {
        "job_id": letter.job_id,
        "code": letter.code,
        "message": letter.header(names.HEADER_ERROR_MESSAGE),
        "at": rfc3339(letter.timestamp_ms),
        "origin": letter.origin,
        "dead_letter": f"{letter.partition}/{letter.offset}",
        "bytes": len(letter.value or b""),
        "headers_only": letter.is_headers_only,
    }


def _headers(letter: DeadLetter) -> dict[str, Any]:
    return {
        "key": None if letter.key is None else letter.key.decode(errors="replace"),
        "headers": {
            name: (value or b"").decode(errors="replace") for name, value in letter.headers
        },
    }


def _value(letter: DeadLetter) -> dict[str, Any]:
    if letter.value is None:
        return {"value": None}
    try:
        return {"value": letter.value.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(letter.value).decode()}


def _put_json(letter: DeadLetter) -> None:
    put_json(_fields(letter))


def _put_line(letter: DeadLetter) -> None:
    fields = _fields(letter)
    columns = ("at", "code", "job_id", "origin", "message")
    put("\t".join(" ".join(str(fields[name] or _NOWHERE).split()) for name in columns))


def _put_block(letter: DeadLetter, *, value: bool) -> None:
    fields = _fields(letter) | {"key": _headers(letter)["key"]}
    for name, content in fields.items():
        put(f"{name}: {_NOWHERE if content is None else content}")
    for name, content in _headers(letter)["headers"].items():
        put(f"  {name}: {content}")
    if value:
        for name, content in _value(letter).items():
            put(f"{name}: {_NOWHERE if content is None else content}")
    put("")


def _tell_judged(judged: Judged, *, dry_run: bool, as_json: bool) -> None:
    letter, skip = judged.letter, judged.skip
    done = "would_replay" if dry_run else "replayed"
    if as_json:
        fields = {"job_id": letter.job_id, "origin": letter.origin, "code": letter.code}
        ending = {"action": done, "replay": judged.number}
        put_json(fields | (ending if skip is None else {"action": "skipped", "why": skip.value}))
        return
    action = f"{done}\t{judged.number}" if skip is None else f"skipped\t{skip.value}"
    put(f"{letter.job_id or _NOWHERE}\t{letter.origin or _NOWHERE}\t{action}")


def _tell_sum(result: ReplaySum, *, dry_run: bool) -> int:
    from dragoman_producer.operations.replay import SAID_OF_SKIP

    for skip, count in sorted(result.skipped.items()):
        say(f"skipped {count:,} ({skip.value}): {SAID_OF_SKIP[skip]}")
    for name in result.not_found:
        say(f"dragoman dead-letters replay: there is no such dead letter of {name}")
    say(f"{'would be replayed' if dry_run else 'replayed'}: {result.replayed:,}")
    if not result.left_out:
        return ALL_WELL
    return PARTLY if result.replayed else FAILED
