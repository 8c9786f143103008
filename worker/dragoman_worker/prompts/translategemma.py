"""Profile for Google's TranslateGemma: language codes, from which its own template is filled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import Profile, ProfileSampling, PromptInput, Rendering, Steering
from dragoman_worker.prompts.cleaning import cleaned

_LANGUAGES: Final = names.tags(
    "ar bg bn ca cs da de el en es et fa fi fil fr gu he hi hr hu id is it ja kn ko lt lv ml mr nl "
    "no pa pl pt ro ru sk sl sr sv sw ta te th tr uk ur vi zh zu"
)
"""Languages that the model was evaluated on; its template names more."""

_DELIMITER: Final = re.compile(r"<<<(source|target|text)>>>")
"""In a text it would be taken for the prompt's own; a space after ``<<<`` prevents that."""

_REGIONAL: Final = frozenset(("fr-CA", "pt-BR", "pt-PT"))
"""Variants that the model was evaluated on and its template lists by code."""

MOST_SOURCE_TOKENS: Final = 800
"""The context for which the models are made is 2,048 tokens, for prompt and translation."""

_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True)
class TranslateGemma:
    """TranslateGemma: the message is one part with both codes; no system message, no free text.

    The template raises an error for any other shape and for codes that it does not list, such as
    zh-CN, so Chinese is ``zh-Hans`` or ``zh-Hant``. Greedy, as in common use.
    """

    name: str = "translategemma"
    models: str = "TranslateGemma 4B, 12B, 27B (Google)"
    licence: str = "Gemma terms of use"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = MOST_SOURCE_TOKENS
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message of one part. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        part = {
            "type": "text",
            "source_lang_code": _code(segment.source_lang or ""),
            "target_lang_code": _code(segment.target_lang),
            "text": segment.text,
        }
        prompt = Prompt(messages=(Message("user", (part,)),))
        return Rendering(prompt, steering.warnings(self, segment) + _lost_variant(self, segment))

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _code(tag: str) -> str:
    if names.base_of(tag) == "zh":
        return "zh-Hant" if names.script_of(tag) == "Hant" else "zh-Hans"
    if tag in _REGIONAL:
        return tag
    return names.listed(tag, _LANGUAGES) or tag


def _lost_variant(profile: Profile, segment: PromptInput) -> tuple[str, ...]:
    return () if segment.target_lang in _REGIONAL else steering.variant_warning(profile, segment)


@dataclass(frozen=True, slots=True)
class DelimitedTranslateGemma:
    """TranslateGemma with the chat template of vLLM's recipe: both codes between delimiters.

    ``<<<source>>>en<<<target>>>de<<<text>>>`` and the text, in a plain user message. The recipe's
    code for simplified Chinese is ``zh``.
    """

    name: str = "translategemma-vllm"
    models: str = "TranslateGemma for vLLM, 4B, 12B, 27B (Infomaniak-AI)"
    licence: str = "Gemma terms of use"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = MOST_SOURCE_TOKENS
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source, target = (
            _delimited_code(segment.source_lang or ""),
            _delimited_code(segment.target_lang),
        )
        text = _DELIMITER.sub(r"<<< \1>>>", segment.text)
        content = f"<<<source>>>{source}<<<target>>>{target}<<<text>>>{text}"
        prompt = Prompt(messages=(Message("user", content),))
        return Rendering(prompt, steering.warnings(self, segment) + _lost_variant(self, segment))

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _delimited_code(tag: str) -> str:
    code = _code(tag)
    return "zh" if code == "zh-Hans" else code


TRANSLATEGEMMA: Final = TranslateGemma()
DELIMITED_TRANSLATEGEMMA: Final = DelimitedTranslateGemma()
