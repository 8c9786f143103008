"""Profile for any instruct model with a chat template: one request in plain words."""

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
    Rendering,
    Segment,
    Steering,
)
from dragoman_worker.prompts.cleaning import cleaned
from dragoman_worker.prompts.instructed import request

_SAMPLING: Final = ProfileSampling()
WITHOUT_THINKING: Final[Mapping[str, object]] = MappingProxyType({"enable_thinking": False})
"""Option of the chat templates of most models that can think; other templates ignore it."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Any instruct model with a chat template. One user message; greedy, so runs are repeatable.

    Thinking is switched off: its tokens are paid for, and no translation of a sentence needs it.
    """

    name: str = "chat"
    models: str = "any instruct model with a chat template"
    licence: str = "the model's own"
    takes: frozenset[Steering] = ALL_STEERING
    needs_source: bool = False
    languages: frozenset[str] | None = None
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: Segment) -> Rendering:
        """Render one user message, no system message."""
        steering.require_languages(self, segment)
        message = Message("user", request(segment))
        prompt = Prompt(
            messages=(message,),
            template_options=WITHOUT_THINKING,
        )
        return Rendering(prompt)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove think tags, wrappers and introductions from the output."""
        return cleaned(text, source)


CHAT: Final = Chat()
