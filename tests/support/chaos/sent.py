"""A record of a storm's load with its required outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from support.builders.odd_records import OddRecord


class Kind(StrEnum):
    """The kinds of records in the load."""

    PLAIN = "plain"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    TRANSIENT = "transient"
    FATAL = "fatal"
    CANCEL = "cancel"
    LATE = "late"
    TOO_SLOW = "too slow"
    INVALID = "invalid"
    UNREADABLE = "unreadable"
    ODD = "odd"
    POISON = "poison"


@dataclass(frozen=True, slots=True)
class Sent:
    """One record, and the required outcome of its job if this record owns the id.

    `job_id` None: nobody can read one. `text` None: no text is to be expected, or any. `code`:
    that of a failure, None for any.
    """

    number: int
    kind: Kind
    value: bytes | None
    job_id: str | None
    fingerprint: str | None
    text: str | None
    ends: frozenset[str]
    code: str | None = None
    odd: OddRecord | None = None
    """Key, headers and timestamp, where they are odd as well."""
