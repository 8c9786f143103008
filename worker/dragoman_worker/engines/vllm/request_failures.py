"""Translation of vLLM's exceptions for one request into the worker's errors."""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman_worker.engines.vllm.start_failures import one_line
from dragoman_worker.errors import (
    EngineDead,
    PermanentEngineError,
    TooLong,
    TransientEngineError,
    WorkerError,
)

_LENGTH: Final = re.compile(
    r"maximum (?:context|model) length|longer than the maximum|max_model_len|prompt is too long",
    re.IGNORECASE,
)


class RequestFailures:
    """vLLM's exception classes by their consequence, as far as the installed vLLM has them.

    In 0.26 VLLMValidationError is a ValueError; from 0.27 on it is a VLLMClientError, and
    admission has its own errors. `exceptions` and `engine_exceptions` are vLLM's modules.
    """

    def __init__(self, exceptions: Any, engine_exceptions: Any) -> None:
        self._dead = _classes(engine_exceptions, "EngineDeadError")
        self._client = _classes(exceptions, "VLLMClientError", "VLLMValidationError")

    def is_death(self, error: BaseException) -> bool:
        """Whether the engine's process is gone."""
        return isinstance(error, self._dead)

    def translate(self, error: Exception) -> WorkerError:
        """Convert an exception of vLLM to the worker's error.

        A refused request would be refused again, so it is permanent. All other errors are
        transient: a full queue, a paused engine, and unknown errors too. Attempts are bounded, and
        two attempts in vain cost less than failing a job that the next attempt would complete.
        """
        text = one_line(str(error))
        if isinstance(error, self._dead):
            return EngineDead(text)
        if isinstance(error, self._client):
            return TooLong(text) if _LENGTH.search(text) else PermanentEngineError(text)
        cause = error.__cause__
        if isinstance(cause, Exception):
            text = one_line(f"{text or type(error).__name__}: {type(cause).__name__}: {cause}")
        return TransientEngineError(text or type(error).__name__)


def _classes(module: Any, *names: str) -> tuple[type[BaseException], ...]:
    return tuple(getattr(module, name) for name in names if hasattr(module, name))
