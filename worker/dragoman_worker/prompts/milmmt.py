"""Profile for Xiaomi's MiLMMT-46: a raw completion that names both languages twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import (
    ProfileSampling,
    Rendering,
    Segment,
    Steering,
    completed,
)
from dragoman_worker.prompts.cleaning import cleaned

_LANGUAGES: Final = names.tags(
    "ar az bg bn ca cs da de el en es fa fi fr he hi hr hu id it ja kk km ko lo ms my no nl pl pt "
    "ro ru sk sl sv ta th fil tr ur uz vi yue zh"
)
_NAMES: Final[Mapping[str, str]] = MappingProxyType({"fil": "Tagalog", "nb": "Norwegian"})
_SAMPLING: Final = ProfileSampling(top_k=1)


@dataclass(frozen=True, slots=True)
class MiLmmt:
    """MiLMMT-46 (Gemma 3); the language names must be exactly those of the card.

    The model was tuned without a begin token, so the prompt has none.
    """

    name: str = "milmmt"
    models: str = "MiLMMT-46 1B, 4B, 12B (Xiaomi)"
    licence: str = "Gemma terms of use"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = 800
    """Trained with at most 2,048 tokens of prompt and answer (``cutoff_len`` in its sft.sh)."""
    max_source_sentences: int | None = None

    def render(self, segment: Segment) -> Rendering:
        """Render the completion prompt. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source, target = _name(segment.source_lang or ""), _name(segment.target_lang)
        before = f"Translate this from {source} to {target}:\n{source}: "
        prompt = completed(before, segment.text, f"\n{target}:")
        warnings = steering.warnings(self, segment) + steering.variant_warning(self, segment)
        return Rendering(prompt, warnings)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _name(tag: str) -> str:
    return _NAMES.get(names.base_of(tag)) or names.plain_name(tag)


MILMMT: Final = MiLmmt()
