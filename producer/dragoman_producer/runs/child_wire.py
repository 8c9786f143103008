"""Messages between a run and its child processes: JSON.

JSON and not pickle: what reads hostile files must not decide what the parent executes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from dragoman_documents.codec import Options

ROWS_PER_MESSAGE: Final = 500
MISSING_PARSER: Final = "missing_parser"
"""Reason of a child that lacks a package: a refusal of the run, not of the document."""
Text = str | list[str] | None
"""A translation; in a list if a person should look at it; None for a segment without one."""


def encoded(message: object) -> bytes:
    """Return the bytes of one message."""
    return json.dumps(message, separators=(",", ":")).encode()


def decoded(message: bytes) -> Any:
    """Return what `encoded` was given, as JSON has it."""
    return json.loads(message)


def options_fields(options: Options) -> dict[str, Any]:
    """Return options as JSON."""
    return {**asdict(options), "drafts": sorted(options.drafts)}


def options_of(fields: dict[str, Any]) -> Options:
    """Return the options of `options_fields`."""
    made: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return Options(**{**made, "drafts": frozenset(fields["drafts"])})
