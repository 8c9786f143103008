"""Profile for Unbabel's Tower+: the one translation prompt of its model card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import ProfileSampling, Rendering, Segment, Steering
from dragoman_worker.prompts.cleaning import cleaned

_LANGUAGES: Final = names.tags(
    "de es fr it ko nl ru en pt zh cs uk hi is ja pl sv hu ro da nn nb fi"
)
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nb": "Norwegian (Bokmål)",
        "no": "Norwegian (Bokmål)",
        "nn": "Norwegian (Nynorsk)",
        "es-419": "Spanish (Latin America)",
        "pt": "Portuguese (Brazil)",
        "pt-BR": "Portuguese (Brazil)",
        "pt-PT": "Portuguese (Portugal)",
    }
)
"""Variants that the card distinguishes; other languages are named without a region."""

_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True)
class TowerPlus:
    """Tower+: ``Translate the following … source text to …``, source and target named twice.

    The prompt ends with a space after the colon, as on the card. Greedy, as on the card.
    """

    name: str = "tower-plus"
    models: str = "Tower+ 2B, 9B, 72B (Unbabel)"
    licence: str = "CC-BY-NC-SA-4.0: not for commercial use"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: Segment) -> Rendering:
        """Render one user message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source, target = _name(segment.source_lang or ""), _name(segment.target_lang)
        content = (
            f"Translate the following {source} source text to {target}:\n"
            f"{source}: {segment.text}\n{target}: "
        )
        prompt = Prompt(messages=(Message("user", content),))
        return Rendering(prompt, steering.warnings(self, segment) + _lost_region(segment))

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _name(tag: str) -> str:
    return _NAMES.get(tag) or _NAMES.get(names.base_of(tag)) or names.plain_name(tag)


def _lost_region(segment: Segment) -> tuple[str, ...]:
    return () if segment.target_lang in _NAMES else steering.variant_warning(TOWER_PLUS, segment)


TOWER_PLUS: Final = TowerPlus()
