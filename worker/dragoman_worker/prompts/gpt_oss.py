"""Profile for OpenAI's gpt-oss: the answer begins in the final channel, without reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
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
from dragoman_worker.prompts.chat import request
from dragoman_worker.prompts.cleaning import cleaned

_FINAL: Final = "<|channel|>final<|message|>"
_ANSWER_START: Final = f"<|channel|>analysis<|message|><|end|><|start|>assistant{_FINAL}"
_ENDS: Final = ("<|return|>", "<|end|>", "<|start|>", "<|channel|>")
_OPTIONS: Final[Mapping[str, object]] = MappingProxyType({"reasoning_effort": "low"})
# OpenAI recommends temperature 1 and top_p 1 for answers with reasoning. Greedy, because these have
# none, and a translation is not to vary.
_SAMPLING: Final = ProfileSampling(special_tokens=True)


@dataclass(frozen=True, slots=True)
class GptOss:
    """gpt-oss in its harmony format, with an empty analysis and the final channel opened.

    The chat template has no option for that: the least reasoning effort still reasons. If the model
    opens further channels, only the last final one is the answer. The control tokens are kept in
    the output until then: without them an analysis could not be separated from an answer.
    """

    name: str = "gpt-oss"
    models: str = "gpt-oss 20B, 120B (OpenAI)"
    licence: str = "Apache-2.0"
    takes: frozenset[Steering] = ALL_STEERING
    needs_source: bool = False
    languages: frozenset[str] | None = None
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message and the start of the answer."""
        steering.require_languages(self, segment)
        prompt = Prompt(
            messages=(Message("user", request(segment)),),
            template_options=_OPTIONS,
            answer_start=_ANSWER_START,
        )
        return Rendering(prompt)

    def clean(self, text: str, source: str | None = None) -> str:
        """Return the final channel, without wrappers and introductions; reasoning is no answer."""
        return cleaned(_final_channel(text, source or ""), source)


def _final_channel(text: str, source: str) -> str:
    if _FINAL not in source:
        text = text.rpartition(_FINAL)[2]
    for mark in _ENDS:
        if mark not in source:
            text = text.partition(mark)[0]
    return text


GPT_OSS: Final = GptOss()
