"""How is a dead letter told to a person or a program, and what became of its replay?"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from dragoman_producer.cli.terminal import ALL_WELL, FAILED, PARTLY, put, put_json, say

if TYPE_CHECKING:
    from dragoman_producer.operations.dead_letters import Judged, ReplaySum
    from dragoman_producer.operations.letters import DeadLetter

_NOWHERE: Final = "-"


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
        "headers": [
            [name, (value or b"").decode(errors="replace")] for name, value in letter.headers
        ],
    }


def _value(letter: DeadLetter) -> dict[str, Any]:
    if letter.value is None:
        return {"value": None}
    try:
        return {"value": letter.value.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(letter.value).decode()}


def put_letter_json(letter: DeadLetter, *, headers: bool = False, value: bool = False) -> None:
    """One object: what is known of it and, if wanted, its headers and the original value."""
    more = _headers(letter) if headers else {}
    put_json(_fields(letter) | more | (_value(letter) if value else {}))


def put_letter_line(letter: DeadLetter) -> None:
    """Time, code, job id, place and message between tabs."""
    fields = _fields(letter)
    columns = ("at", "code", "job_id", "origin", "message")
    put("\t".join(_plain(fields[name] or _NOWHERE) for name in columns))


def put_letter_block(letter: DeadLetter, *, value: bool) -> None:
    """A line a fact and a header, then an empty one."""
    fields = _fields(letter) | {"key": _headers(letter)["key"]}
    for name, content in fields.items():
        put(f"{name}: {_NOWHERE if content is None else _plain(content)}")
    for name, content in _headers(letter)["headers"]:
        put(f"  {_plain(name)}: {_plain(content)}")
    if value:
        for name, content in _value(letter).items():
            put(f"{name}: {_NOWHERE if content is None else content}")
    put("")


def _plain(content: object) -> str:
    """On one line, and without what a terminal would obey: others wrote these headers."""
    line = " ".join(str(content).split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)


def tell_judged(judged: Judged, *, dry_run: bool, as_json: bool) -> None:
    """One line: replayed as which number, or skipped and why."""
    letter, skip = judged.letter, judged.skip
    done = "would_replay" if dry_run else "replayed"
    if as_json:
        fields = {"job_id": letter.job_id, "origin": letter.origin, "code": letter.code}
        ending = {"action": done, "replay": judged.number}
        put_json(fields | (ending if skip is None else {"action": "skipped", "why": skip.value}))
        return
    action = f"{done}\t{judged.number}" if skip is None else f"skipped\t{skip.value}"
    put(f"{letter.job_id or _NOWHERE}\t{letter.origin or _NOWHERE}\t{action}")


def tell_sum(result: ReplaySum, *, dry_run: bool) -> int:
    """The sums on stderr; the exit status they stand for."""
    from dragoman_producer.operations.replay import SAID_OF_SKIP

    for skip, count in sorted(result.skipped.items()):
        say(f"skipped {count:,} ({skip.value}): {SAID_OF_SKIP[skip]}")
    for name in result.not_found:
        say(f"dragoman dead-letters replay: there is no such dead letter of {name}")
    say(f"{'would be replayed' if dry_run else 'replayed'}: {result.replayed:,}")
    if not result.left_out:
        return ALL_WELL
    return PARTLY if result.replayed else FAILED
