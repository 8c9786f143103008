"""Profile for Qwen3: the request for any instruct model, with thinking switched off."""

from __future__ import annotations

from dataclasses import dataclass, replace
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

# The cards' values without thinking. The generation_config.json beside the weights has those for
# thinking; the engines do not read it. Qwen3's card allows a presence penalty of 0 to 2 against
# endless repetition and warns of mixed languages; those of 3.5, 3.6 and 3.8 recommend 1.5.
_SAMPLING: Final = ProfileSampling(temperature=0.7, top_p=0.8, top_k=20)


@dataclass(frozen=True, slots=True)
class Qwen3:
    """Qwen3, and Qwen3.5 and later, without thinking. One user message."""

    name: str = "qwen3"
    models: str = "Qwen3 (Alibaba)"
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
        """Remove think tags, wrappers and introductions from the output."""
        return cleaned(text, source)


QWEN3: Final = Qwen3()
QWEN3_5: Final = Qwen3(
    name="qwen3.5",
    models="Qwen3.5, 3.6, 3.8 and later (Alibaba)",
    sampling=replace(_SAMPLING, presence_penalty=1.5),
)
