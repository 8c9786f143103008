"""Profile for EuroLLM: the system message of its model card and Tower's request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import (
    ALL_STEERING,
    ProfileSampling,
    PromptInput,
    Rendering,
    Steering,
)
from dragoman_worker.prompts.chat import guidance
from dragoman_worker.prompts.cleaning import cleaned

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

    The request is that of the card of 1.7B, which sends an empty system message before it; the
    cards of 9B and 22B have a system message and no request. Greedy: they recommend no sampling.
    """

    name: str = "eurollm"
    models: str = "EuroLLM 9B, 22B Instruct (UTTER)"
    licence: str = "Apache-2.0"
    takes: frozenset[Steering] = ALL_STEERING
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None
    system: str = _SYSTEM

    def render(self, segment: PromptInput) -> Rendering:
        """Render a system and a user message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source, target = _name(segment.source_lang or ""), _name(segment.target_lang)
        request = (
            f"Translate the following {source} source text to {target}:\n"
            f"{source}: {segment.text}\n{target}: "
        )
        content = "\n\n".join([*guidance(segment), request])
        messages = (Message("system", self.system), Message("user", content))
        return Rendering(Prompt(messages=messages))

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _name(tag: str) -> str:
    """Return the language name; simplified Chinese is "Chinese", as on the card."""
    if names.base_of(tag) == "zh" and names.script_of(tag) != "Hant":
        return "Chinese"
    return names.distinct_name(tag)


EUROLLM: Final = EuroLlm()
EUROLLM_SMALL: Final = EuroLlm(
    name="eurollm-1.7b", models="EuroLLM 1.7B Instruct (UTTER)", system=""
)
