"""Messages between a run and its child processes: JSON with a length in front.

JSON and not pickle: what reads hostile files must not decide what the parent executes.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any, BinaryIO, Final

from dragoman_documents.codec import Options

LENGTH: Final = struct.Struct(">I")
ROWS_PER_FRAME: Final = 500
MISSING_PARSER: Final = "missing_parser"
"""Reason of a child that lacks a package: a refusal of the run, not of the document."""
Text = str | list[str] | None
"""A translation; in a list if a person should look at it; None for a segment without one."""


def encoded(message: object) -> bytes:
    """Return the bytes of one message."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


def send(stream: BinaryIO, message: object) -> None:
    """Write one message."""
    stream.write(encoded(message))
    stream.flush()


def receive(stream: BinaryIO) -> Any | None:
    """Read one message; return None at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    return json.loads(stream.read(length))


def options_fields(options: Options) -> dict[str, Any]:
    """Return options as JSON."""
    return {**asdict(options), "drafts": sorted(options.drafts)}


def options_of(fields: dict[str, Any]) -> Options:
    """Return the options of `options_fields`."""
    made: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return Options(**{**made, "drafts": frozenset(fields["drafts"])})
