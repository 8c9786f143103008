"""Answers that are no translation: a status, a sentence for the caller, when to ask again."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from dragoman_producer.errors import (
    BrokerRefused,
    ClientClosed,
    DragomanError,
    ResultTimeout,
    StoreRefused,
    Unreachable,
)
from dragoman_schemas.failures import RETRYABLE

_CALLERS: Final = frozenset({"too_long", "unsupported_language", "invalid_job"})
BUSY: Final = "The service is busy; the request continues. Ask again."


class ApiError(Exception):
    """A request that ends without a translation. `retry_after` in seconds: ask again then."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


def for_code(code: str, message: str) -> ApiError:
    """Return the answer for a job that ended without all of its texts."""
    if code == "unknown_glossary":
        return ApiError(404, "Glossary not found.")  # it was removed while the job waited
    said = f"{code}: {message}"
    if code in _CALLERS:
        return ApiError(400, said)
    return ApiError(503, said, 1) if code in RETRYABLE else ApiError(500, said)


def for_client(error: DragomanError) -> ApiError:
    """Return the answer for an error of the client; what it says stays in the log."""
    if isinstance(error, ResultTimeout):
        return ApiError(503, BUSY, 1)
    if isinstance(error, Unreachable | BrokerRefused | StoreRefused | ClientClosed):
        return ApiError(503, "The translation queue cannot be reached. Ask again.", 5)
    return ApiError(500, "The translation could not be submitted.")


def where(error: BaseException) -> str:
    """Return the place in the code that raised an error: its words may quote a text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
