"""What does an exception of vLLM's mean for the one request that met it?"""

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
    """vLLM's exception classes by what is to be done about them, whichever of them it has.

    0.26 knows VLLMValidationError, a ValueError; from 0.27 on it is a VLLMClientError, and
    admission has errors of its own. `exceptions` and `engine_exceptions` are vLLM's modules.
    """

    def __init__(self, exceptions: Any, engine_exceptions: Any) -> None:
        self._dead = _classes(engine_exceptions, "EngineDeadError")
        self._client = _classes(exceptions, "VLLMClientError", "VLLMValidationError")

    def is_death(self, error: BaseException) -> bool:
        """Whether the engine's process is gone."""
        return isinstance(error, self._dead)

    def translate(self, error: Exception) -> WorkerError:
        """The worker's error for vLLM's.

        A refused request would be refused again. Everything else may pass: a full queue, an engine
        that is paused, and also what we do not know, because the attempts are bounded, and trying
        twice in vain costs less than failing a job that another attempt would have completed.
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
