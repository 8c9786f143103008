"""How a request of vLLM ends: its output as a `Generation`, or its exception as the worker's error.

vLLM decodes each token of each sequence as it comes, in the event loop of its front end, for texts
that are streamed or end at a stop string. An answer without stop strings is read when it is
finished, so its tokens are decoded together here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, get_args

from dragoman_worker.engines.one_line import one_line
from dragoman_worker.errors import (
    EngineDead,
    PermanentEngineError,
    TooLong,
    TransientEngineError,
    WorkerError,
)
from dragoman_worker.ports import Decoding, FinishReason, Generation

_FINISH_REASONS: Final = frozenset(get_args(FinishReason))
_INCOMPLETE: Final = "\ufffd"
_LONGEST_CUT: Final = 3
"""Bytes of a character that may stand at the end without its last one. A tokenizer with tokens for
bytes decodes all bytes in a row as U+FFFD if the last character of them is incomplete."""
_LENGTH: Final = re.compile(
    r"maximum (?:context|model) length|longer than the maximum|max_model_len|prompt is too long",
    re.IGNORECASE,
)


def generation_of(
    outputs: Sequence[Any], decoded: Callable[[Sequence[int], str], str] | None = None
) -> Generation:
    """Convert vLLM's last output; its text is `decoded(token ids, finish reason)` if that is given.

    Raises PermanentEngineError without an output or a known finish reason, a bug of vLLM.
    """
    if not outputs or not outputs[-1].outputs:
        raise PermanentEngineError("vLLM finished the request without an output")
    output = outputs[-1]
    made = output.outputs[0]
    if made.finish_reason not in _FINISH_REASONS:
        raise PermanentEngineError(
            f"vLLM finished the request with the unknown reason {made.finish_reason!r}"
        )
    return Generation(
        text=decoded(made.token_ids, made.finish_reason) if decoded else made.text,
        finish_reason=made.finish_reason,
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=len(made.token_ids),
    )


# --- text -----------------------------------------------------------------------------------------


def decodes_once(tokenizer: Any, decoding: Decoding) -> bool:
    """Return whether `text_of` decodes the answers instead of vLLM.

    Stop strings are found by vLLM in what it decodes. A tokenizer without a backend of the
    `tokenizers` library, as Mistral's, is left to vLLM.
    """
    return not decoding.stop and getattr(tokenizer, "backend_tokenizer", None) is not None


def text_of(
    tokenizer: Any, token_ids: Sequence[int], finish_reason: str, decoding: Decoding
) -> str:
    """Return the text of a finished answer, as vLLM would have decoded it.

    The token that ended it is no part of it, and neither is a character that was cut in its middle.
    A blank before the first word may be missing, as the prompt's end is not decoded with it.
    """
    ids = list(token_ids[:-1] if finish_reason == "stop" else token_ids)
    text = _decoded(tokenizer, ids, decoding)
    for _ in range(_LONGEST_CUT):
        if not text.endswith(_INCOMPLETE):
            break
        ids.pop()
        text = _decoded(tokenizer, ids, decoding)
    return text.rstrip(_INCOMPLETE)


def _decoded(tokenizer: Any, ids: Sequence[int], decoding: Decoding) -> str:
    text: str = tokenizer.backend_tokenizer.decode(
        ids, skip_special_tokens=not decoding.special_tokens
    )
    return text


# --- failures -------------------------------------------------------------------------------------


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
