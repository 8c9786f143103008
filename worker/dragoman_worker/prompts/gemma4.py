"""Profile for Google's Gemma 4: the request for any instruct model, without thoughts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import steering
from dragoman_worker.prompts.base import (
    ALL_STEERING,
    ProfileSampling,
    PromptInput,
    Rendering,
    Steering,
)
from dragoman_worker.prompts.chat import WITHOUT_THINKING, request
from dragoman_worker.prompts.cleaning import cleaned

_OPENING: Final = "<|channel>"
_CLOSING: Final = "<channel|>"
_ENDS: Final = ("<turn|>", "<|turn>", _OPENING)
_SAMPLING: Final = ProfileSampling(temperature=1.0, top_p=0.95, top_k=64, special_tokens=True)


@dataclass(frozen=True, slots=True)
class Gemma4:
    """Gemma 4 without thinking. One user message; the sampling is the card's for all uses.

    The larger models write an empty thought (``<|channel>thought`` … ``<channel|>``) even so, and
    sometimes a full one. The control tokens are kept in the output, so that a thought can be
    separated from the answer behind it.
    """

    name: str = "gemma4"
    models: str = "Gemma 4 E2B, E4B, 12B, 26B-A4B, 31B (Google)"
    licence: str = "Apache-2.0"
    takes: frozenset[Steering] = ALL_STEERING
    needs_source: bool = False
    languages: frozenset[str] | None = None
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message, no system message."""
        steering.require_languages(self, segment)
        prompt = Prompt(
            messages=(Message("user", request(segment)),),
            template_options=WITHOUT_THINKING,
        )
        return Rendering(prompt)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove thoughts, wrappers and introductions; a thought that never ended is no answer."""
        return cleaned(_without_thought(text, source or ""), source)


def _without_thought(text: str, source: str) -> str:
    if text.lstrip().startswith(_OPENING) and _OPENING not in source:
        text = text.partition(_CLOSING)[2]
    for mark in _ENDS:
        if mark not in source:
            text = text.partition(mark)[0]
    return text


GEMMA4: Final = Gemma4()
