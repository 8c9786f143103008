"""Output of dead letters and their replays, as lines, blocks or JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    plain,
    print_json,
    print_line,
    print_note,
)

if TYPE_CHECKING:
    from dragoman_producer.operations.causes import Causes
    from dragoman_producer.operations.dead_letters import ReadDeadLetter
    from dragoman_producer.operations.replay import Judged, ReplayTotals

_NONE: Final = "-"
NO_CODE: Final = "no code"
"""Of a dead letter that another program wrote."""


def _fields(dead_letter: ReadDeadLetter) -> dict[str, Any]:
    from dragoman_schemas import names
    from dragoman_schemas.wire import rfc3339

    return {
        "job_id": dead_letter.job_id,
        "code": dead_letter.code,
        "message": dead_letter.header(names.HEADER_ERROR_MESSAGE),
        "at": rfc3339(dead_letter.timestamp_ms),
        "origin": dead_letter.origin,
        "dead_letter": f"{dead_letter.partition}/{dead_letter.offset}",
        "bytes": len(dead_letter.value or b""),
        "headers_only": dead_letter.is_headers_only,
    }


def _headers(dead_letter: ReadDeadLetter) -> dict[str, Any]:
    return {
        "key": None if dead_letter.key is None else dead_letter.key.decode(errors="replace"),
        "headers": [
            [name, (value or b"").decode(errors="replace")] for name, value in dead_letter.headers
        ],
    }


def _value(dead_letter: ReadDeadLetter) -> dict[str, Any]:
    if dead_letter.value is None:
        return {"value": None}
    try:
        return {"value": dead_letter.value.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(dead_letter.value).decode()}


def print_as_json(
    dead_letter: ReadDeadLetter, *, headers: bool = False, value: bool = False
) -> None:
    """Print one object: the fields and, if requested, the headers and the original value."""
    more = _headers(dead_letter) if headers else {}
    print_json(_fields(dead_letter) | more | (_value(dead_letter) if value else {}))


def print_as_line(dead_letter: ReadDeadLetter) -> None:
    """Print time, code, job id, place and message, separated by tabs."""
    fields = _fields(dead_letter)
    columns = ("at", "code", "job_id", "origin", "message")
    print_line("\t".join(plain(fields[name] or _NONE) for name in columns))


def print_causes(causes: Causes, *, as_json: bool) -> None:
    """Print a line per code: how many, and the first job."""
    for code, count in causes.counts.most_common():
        first = causes.first[code]
        if as_json:
            print_json({"code": code, "count": count, "first": first})
        else:
            print_line(f"{plain(code)}\t{count}\t{plain(first)}")


def print_block(dead_letter: ReadDeadLetter, *, value: bool) -> None:
    """Print one line per field and per header, then an empty line."""
    fields = _fields(dead_letter) | {"key": _headers(dead_letter)["key"]}
    for name, content in fields.items():
        print_line(f"{name}: {_NONE if content is None else plain(content)}")
    for name, content in _headers(dead_letter)["headers"]:
        print_line(f"  {plain(name)}: {plain(content)}")
    if value:
        for name, content in _value(dead_letter).items():
            print_line(f"{name}: {_NONE if content is None else content}")
    print_line("")


def report_judged(judged: Judged, *, dry_run: bool, as_json: bool) -> None:
    """Print one line: the number of the replay, or why it was skipped."""
    dead_letter, skip = judged.dead_letter, judged.skip
    done = "would_replay" if dry_run else "replayed"
    if as_json:
        fields = {
            "job_id": dead_letter.job_id,
            "origin": dead_letter.origin,
            "code": dead_letter.code,
        }
        ending = {"action": done, "replay": judged.number}
        print_json(fields | (ending if skip is None else {"action": "skipped", "why": skip.value}))
        return
    action = f"{done}\t{judged.number}" if skip is None else f"skipped\t{skip.value}"
    print_line(f"{dead_letter.job_id or _NONE}\t{dead_letter.origin or _NONE}\t{action}")


def report_totals(result: ReplayTotals, *, dry_run: bool) -> int:
    """Print the totals on stderr; return the exit status."""
    from dragoman_producer.operations.replay_planner import SKIP_REASONS

    for skip, count in sorted(result.skipped.items()):
        print_note(f"skipped {count:,} ({skip.value}): {SKIP_REASONS[skip]}")
    for name in result.not_found:
        print_note(f"dragoman dead-letters replay: no selected dead letter of {name}")
    print_note(f"{'would be replayed' if dry_run else 'replayed'}: {result.replayed:,}")
    if not result.left_out:
        return SUCCESS
    return PARTIAL if result.replayed else FAILURE
