"""Profile for NiuTrans' LMT-60: one user message that names both languages twice."""

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
    "ar en es de fr it ja nl pl pt ru tr zh bg bn cs da el fa fi hi hu id ko nb ro sk sv th uk vi "
    "am az bo he hr hy is jv ka kk km ky lo mvf mr ms my ne ps si sw ta te tg fil ug ur uz yue"
)
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "el": "Modern Greek",
        "fil": "Tagalog",
        "he": "Modern Hebrew",
        "km": "Central Khmer",
        "ky": "Kirghiz",
        "mvf": "Inner Mongolian",
        "no": "Norwegian Bokmål",
        "ug": "Uighur",
        "yue": "Yue Chinese",
        "zh": "Chinese",
    }
)
"""Names of the repository (``src/utils.py``) that differ from the usual English ones."""
_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True)
class Lmt60:
    """LMT-60 (Qwen3, tuned for translation), strongest to and from Chinese and English.

    The card decodes with 5 beams and without sampling; with continuous batching beams are
    expensive, so this is greedy. It passes no option to the chat template, so neither does this.
    """

    name: str = "lmt-60"
    models: str = "LMT-60 0.6B, 1.7B, 4B, 8B (NiuTrans)"
    licence: str = "Apache-2.0"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: Segment) -> Rendering:
        """Render one user message, no system message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source, target = _name(segment.source_lang or ""), _name(segment.target_lang)
        content = (
            f"Translate the following text from {source} into {target}:\n"
            f"{source}: {segment.text}\n{target}:"
        )
        warnings = (
            *steering.warnings(self, segment),
            *steering.variant_warning(self, segment),
            *steering.simplified_only(self, segment),
        )
        return Rendering(Prompt(messages=(Message("user", content),)), warnings)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _name(tag: str) -> str:
    return _NAMES.get(names.base_of(tag)) or names.plain_name(tag)


LMT_60: Final = Lmt60()
