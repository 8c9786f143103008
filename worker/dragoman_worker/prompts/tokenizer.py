"""What is used of a tokenizer, and which of its tokens are control tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

_STEERING_SPELLING: Final = re.compile(
    r"<[|｜].*[|｜]>|</?(?:think|tool_call|tool_response|unused\d+)>|\[/?[A-Z_]{3,}\]"
)

_SHORTEST: Final = 3
"""Shorter ones in the source of a chat template may be Jinja, such as ``==``."""


class AddedToken(Protocol):
    """A token added to the learned vocabulary."""

    @property
    def content(self) -> str:
        """Spelling of the token."""
        ...

    @property
    def special(self) -> bool:
        """Whether the token is left out of decoded text."""
        ...


class Tokenizer(Protocol):
    """The part of a fast tokenizer of Hugging Face transformers 5 that is used here."""

    def __hash__(self) -> int:
        """Return the hash by identity: caches are kept per tokenizer."""
        ...

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]:
        """Added tokens by id."""
        ...

    @property
    def backend_tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer` behind it. Mistral's own tokenizer has none."""
        ...

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Render a chat as ids, or as text with `tokenize=False`."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the ids of a text."""
        ...

    def __call__(self, text: str, **options: Any) -> Mapping[str, Any]:
        """Return `input_ids` of a text and, if requested, `offset_mapping`."""
        ...


@lru_cache(maxsize=8)
def control_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Return the ids that are special, or whose spelling or chat template shows that they steer."""
    template = str(getattr(tokenizer, "chat_template", None) or "")
    return frozenset(
        index
        for index, token in tokenizer.added_tokens_decoder.items()
        if token.content and (token.special or _steers(token.content, template))
    )


def _steers(spelling: str, template: str) -> bool:
    """Return whether it is spelled like a control token, or is in the template and no word."""
    in_template = len(spelling) >= _SHORTEST and not spelling.isalnum() and spelling in template
    return bool(_STEERING_SPELLING.fullmatch(spelling)) or (in_template and _is_visible(spelling))


@lru_cache(maxsize=8)
def visible_added_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Return the ids of added tokens that are not blank, as Gemma's runs of spaces are."""
    added = tokenizer.added_tokens_decoder.items()
    return frozenset(index for index, token in added if _is_visible(token.content))


def _is_visible(spelling: str) -> bool:
    return bool(spelling.replace("▁", " ").strip())
