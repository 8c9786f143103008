"""The hints after a finish: a document's progress, then the event (docs/reference/scripts.md).

One that Redis refuses, such as by a key of another type, is lost, and never the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman_schemas import names, scripts
from dragoman_schemas.results import TranslationResult


def hints(keys: names.Keys, result: TranslationResult, *, ttl_ms: int) -> list[tuple[Any, ...]]:
    """Return the commands that write the hints of a result; `ttl_ms` is the job's own TTL."""
    event = {"job_id": result.job_id, "status": str(result.status)}
    added = stream_entry(keys.events, names.EVENTS_MAXLEN, event)
    document = result.document
    if document is None:
        return [added]
    bits = [keys.document_ended(document.document_id)]
    if result.status == "completed":
        bits.append(keys.document_completed(document.document_id))
    arguments = scripts.mark_args(index=document.index, ttl_ms=ttl_ms)
    return [*(("EVALSHA", scripts.MARK.sha1, 1, key, *arguments) for key in bits), added]


def stream_entry(stream: str, at_most: int, fields: Mapping[str, str]) -> tuple[Any, ...]:
    """Return the command that adds an entry to a stream of about `at_most` entries."""
    parts = [part for pair in fields.items() for part in pair]
    return ("XADD", stream, "MAXLEN", "~", at_most, "*", *parts)
