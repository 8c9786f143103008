"""Error codes of jobs and items (docs/reference/error-codes.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class FailureCode(StrEnum):
    """Reason why a job or an item has no translation. Readers must tolerate unknown codes."""

    INVALID_JOB = "invalid_job"
    UNSUPPORTED_SCHEMA = "unsupported_schema"
    UNSUPPORTED_LANGUAGE = "unsupported_language"
    UNKNOWN_PROFILE = "unknown_profile"
    UNKNOWN_GLOSSARY = "unknown_glossary"
    TOO_LONG = "too_long"
    CONFLICT = "conflict"
    QUALITY_FAILED = "quality_failed"
    ENGINE_FAILED = "engine_failed"
    POISONED = "poisoned"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


RETRYABLE: Final = frozenset(
    {
        FailureCode.UNSUPPORTED_SCHEMA,  # an upgraded worker may read it
        FailureCode.UNKNOWN_PROFILE,
        FailureCode.UNKNOWN_GLOSSARY,
        FailureCode.QUALITY_FAILED,
        FailureCode.ENGINE_FAILED,
        FailureCode.POISONED,
        FailureCode.DEADLINE_EXCEEDED,
        FailureCode.CANCELLED,
        FailureCode.INTERNAL,
    }
)
"""Codes of a job that may succeed when it is replayed; a replay drops a past deadline."""
