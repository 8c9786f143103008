"""Profile for ByteDance's Seed-X: a raw completion that ends with the target's tag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import (
    ProfileSampling,
    PromptInput,
    Rendering,
    Steering,
    completed,
)
from dragoman_worker.prompts.cleaning import cleaned

_LANGUAGES: Final = names.tags(
    "ar cs da de en es fi fr hr hu id it ja ko ms nb nl no pl pt ro ru sv th tr uk vi zh"
)
_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True)
class SeedX:
    """Seed-X 7B PPO and Instruct, without chain of thought; 28 languages, no chat template.

    Without the tag ``<xx>`` at the prompt's end the model does not translate. The card recommends
    beam search with 4 beams, which is expensive with continuous batching, and greedy second. The
    begin token is the tokenizer's, as in the card's example.
    """

    name: str = "seed-x"
    models: str = "Seed-X-PPO-7B, Seed-X-Instruct-7B (ByteDance)"
    licence: str = "OpenMDW"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render the completion prompt. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        tag = names.listed(segment.target_lang, _LANGUAGES)
        before = (
            f"Translate the following {_name(segment.source_lang or '')} sentence into "
            f"{_name(segment.target_lang)}:\n"
        )
        prompt = completed(before, segment.text, f" <{tag}>")._replace(add_special_tokens=True)
        warnings = (
            *steering.warnings(self, segment),
            *steering.variant_warning(self, segment),
            *steering.simplified_only(self, segment),
        )
        return Rendering(prompt, warnings)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _name(tag: str) -> str:
    """Return the language name; the model has one name for all Chinese."""
    return "Chinese" if names.base_of(tag) == "zh" else names.plain_name(tag)


SEED_X: Final = SeedX()
