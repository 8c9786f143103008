"""Text of a finished answer, decoded once instead of by vLLM after every token.

vLLM decodes each token of each sequence as it comes, in the event loop of its front end, for texts
that are streamed or end at a stop string. An answer without stop strings is read when it is
finished, so its tokens are decoded together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dragoman_worker.ports import Decoding

_INCOMPLETE: Final = "\ufffd"
_LONGEST_CUT: Final = 3
"""Bytes of a character that may stand at the end without its last one. A tokenizer with tokens for
bytes decodes all bytes in a row as U+FFFD if the last character of them is incomplete."""


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
