"""Profile for EuroLLM: the system message of its model card and Tower's request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import (
    ALL_STEERING,
    ProfileSampling,
    Rendering,
    Segment,
    Steering,
)
from dragoman_worker.prompts.cleaning import cleaned
from dragoman_worker.prompts.instructed import guidance, user_texts

_SYSTEM: Final = (
    "You are EuroLLM --- an AI assistant specialized in European languages that provides safe, "
    "educational and helpful answers."
)
_LANGUAGES: Final = names.tags(
    "bg hr cs da nl en et fi fr de el hu ga it lv lt mt pl pt ro sk sl es sv ar ca zh gl hi ja ko "
    "no ru tr uk"
)
_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True)
class EuroLlm:
    """EuroLLM Instruct, 35 languages. Rules and background precede the request.

    The card has no translation prompt; the request is that of Tower+, which is by the same makers.
    Greedy: the card recommends no sampling.
    """

    name: str = "eurollm"
    models: str = "EuroLLM 1.7B, 9B, 22B Instruct (UTTER)"
    licence: str = "Apache-2.0"
    takes: frozenset[Steering] = ALL_STEERING
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: Segment) -> Rendering:
        """Render a system and a user message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source = names.english_name(segment.source_lang or "")
        target = names.english_name(segment.target_lang)
        request = (
            f"Translate the following {source} source text to {target}:\n"
            f"{source}: {segment.text}\n{target}: "
        )
        content = "\n\n".join([*guidance(segment), request])
        messages = (Message("system", _SYSTEM), Message("user", content))
        return Rendering(Prompt(messages=messages, user_texts=user_texts(segment)))

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


EUROLLM: Final = EuroLlm()
