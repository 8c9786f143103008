"""Profiles for Xiaomi's MiLMMT-46 and GemmaX2-28: a completion that names both languages twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
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
    "ar az bg bn ca cs da de el en es fa fi fr he hi hr hu id it ja kk km ko lo ms my no nl pl pt "
    "ro ru sk sl sv ta th fil tr ur uz vi yue zh"
)
_LANGUAGES_OF_GEMMAX2: Final = names.tags(
    "ar bn cs de en es fa fr he hi id it ja km ko lo ms my nl pl pt ru th fil tr ur vi zh"
)
_NAMES: Final[Mapping[str, str]] = MappingProxyType({"fil": "Tagalog", "nb": "Norwegian"})
_SAMPLING: Final = ProfileSampling(top_k=1)


@dataclass(frozen=True, slots=True)
class MiLmmt:
    """MiLMMT-46 (Gemma 3); the language names must be exactly those of the card.

    The models were tuned without a begin token, so the prompt has none.
    """

    name: str = "milmmt"
    models: str = "MiLMMT-46 1B, 4B, 12B (Xiaomi)"
    licence: str = "Gemma terms of use"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = 800
    """GemmaX2-28 was tuned with at most 2,048 tokens of prompt and answer (``cutoff_len``).

    MiLMMT-46 was with at most 4,096, on the same kind of data: single sentences.
    """
    max_source_sentences: int | None = None
    one_chinese: bool = False
    """Whether the model has one name for all Chinese, and writes it simplified."""

    def render(self, segment: PromptInput) -> Rendering:
        """Render the completion prompt. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source, target = self._name(segment.source_lang or ""), self._name(segment.target_lang)
        before = f"Translate this from {source} to {target}:\n{source}: "
        prompt = completed(before, segment.text, f"\n{target}:")
        warnings = steering.warnings(self, segment) + steering.variant_warning(self, segment)
        lost = steering.simplified_only(self, segment) if self.one_chinese else ()
        return Rendering(prompt, warnings + lost)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)

    def _name(self, tag: str) -> str:
        base = names.base_of(tag)
        if self.one_chinese and base == "zh":
            return "Chinese"
        return _NAMES.get(base) or names.plain_name(tag)


MILMMT: Final = MiLmmt()
GEMMAX2: Final = MiLmmt(
    name="gemmax2",
    models="GemmaX2-28 2B, 9B (Xiaomi)",
    languages=_LANGUAGES_OF_GEMMAX2,
    one_chinese=True,
)
