"""Profile for the demonstration model: a control token for the language, then the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dragoman_text.composing import composed
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import (
    ProfileSampling,
    PromptInput,
    Rendering,
    Steering,
    completed,
)

_LANGUAGES: Final = frozenset(("en", "de", "fr", "es", "ja"))

# The spelling of the training text: composed letters, straight quotes, single ordinary spaces.
_STRAIGHT: Final = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"'})
_SPACES: Final = re.compile(r"[^\S\n]+")
_SPACES_AT_LINE_ENDS: Final = re.compile(r" ?\n ?")

# Greedy. Without the penalty 41 of 1,600 news sentences looped; with it everyday text got no worse.
# A repetition penalty also counts the prompt's tokens, which harms copying.
_SAMPLING: Final = ProfileSampling(frequency_penalty=0.3)


@dataclass(frozen=True, slots=True)
class Demo:
    """The model in this repository: ``<|de|>source<|translation|>``, output until ``<|end|>``.

    The control tokens (the five languages, translation, end, pad) are special tokens in the
    tokenizer; ``<|end|>`` is the end token, and there is no begin token.
    """

    name: str = "demo"
    models: str = "the demonstration model of this repository (19 M parameters)"
    licence: str = "CC-BY 2.0"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = False
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = 120
    """From its card: parts of longer sources are lost, although they fit the context of 512."""
    max_source_sentences: int | None = 8
    """The most sentences joined in training; with 16, text is lost."""

    def render(self, segment: PromptInput) -> Rendering:
        """Render the completion prompt. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        text = as_trained(segment.text)
        before = f"<|{names.base_of(segment.target_lang)}|>"
        warnings = (
            *steering.warnings(self, segment),
            *steering.variant_warning(self, segment),
            *_weak_pair(segment),
        )
        return Rendering(completed(before, text, "<|translation|>"), warnings)

    def clean(self, text: str, source: str | None = None) -> str:
        """Strip the output; the model writes nothing but the translation."""
        del source
        return text.strip()


def as_trained(text: str) -> str:
    """Return the text in the spelling of the training text; line breaks are kept."""
    straight = composed(text).translate(_STRAIGHT)
    return _SPACES_AT_LINE_ENDS.sub("\n", _SPACES.sub(" ", straight)).strip()


def _weak_pair(segment: PromptInput) -> tuple[str, ...]:
    if segment.source_lang is None:
        return ()
    pair = (names.base_of(segment.source_lang), names.base_of(segment.target_lang))
    if "en" in pair or pair[0] == pair[1]:
        return ()
    warning = (
        f"target_lang: profile demo is weak from {pair[0]} to {pair[1]}; it was trained to "
        "translate into and out of English."
    )
    return (warning,)


DEMO: Final = Demo()
