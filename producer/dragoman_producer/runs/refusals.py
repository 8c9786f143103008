"""Why a document is not read or written: reason and detail of its line in the report."""

from __future__ import annotations

import errno
from typing import Final

from dragoman_documents.codec import DocumentError
from dragoman_documents.parts.source import Changed
from dragoman_documents.putting_back import Unwritable
from dragoman_producer.runs.child_wire import MISSING_PARSER

CHANGED: Final = "changed"
"""Reason of a document whose file is not the one that was read."""
NO_SPACE: Final = "no_space"
"""Reason of a document whose output the disk does not hold, or that is larger than allowed."""
OTHER_SEGMENTS: Final = "its segments are not those that were translated"
MEMORY_BYTES: Final = 2 * 1024**3
"""Of a child process."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REASONS: Final[tuple[tuple[type[Exception], str, str], ...]] = (
    (Changed, CHANGED, "it changed while it was translated; run the command again"),
    (Unwritable, "skeleton", ""),
    (
        MemoryError,
        "too_large",
        f"it needs more than {MEMORY_BYTES // 1024**3} GiB of memory; split the file",
    ),
    (RecursionError, "corrupt", "it is nested too deeply"),
)
"""Reason and detail per error; without a detail that of the error."""


class DocumentRefused(Exception):
    """A document that was not read or written: one line of the report."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def reason_and_detail(error: Exception) -> tuple[str, str]:
    """Return the reason and detail of the report's line."""
    if isinstance(error, DocumentRefused | DocumentError):
        return error.reason, error.detail
    for kind, reason, detail in _REASONS:
        if isinstance(error, kind):
            return reason, detail or str(error)
    if isinstance(error, ModuleNotFoundError):
        return MISSING_PARSER, f"the package {error.name} is not installed"
    if isinstance(error, OSError):
        reason = NO_SPACE if is_full(error) else "corrupt"
        return reason, error.strerror or type(error).__name__
    return "corrupt", f"the codec failed with {type(error).__name__}; please report it"


def is_full(error: OSError) -> bool:
    """Return whether the disk, or what this user may write on it, is full."""
    return error.errno in _FULL
