"""Profiles of models with one request that names both languages: LMT-60, SalamandraTA, Tower+."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import ProfileSampling, PromptInput, Rendering, Steering
from dragoman_worker.prompts.cleaning import cleaned

_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """A model tuned for translation that takes one user message, and no steering in it. Greedy.

    The cards decode with up to 5 beams, which are expensive with continuous batching. They pass no
    option to the chat template, so neither does this.
    """

    name: str
    models: str
    licence: str
    languages: frozenset[str] | None
    request: Callable[[str, str, str], str]
    """Returns the message for the names of source and target, and the text."""
    language_name: Callable[[str], str]
    variants: frozenset[str] = frozenset()
    """Tags whose region the names keep."""
    one_chinese: bool = False
    """Whether the model has one name for all Chinese, and writes it simplified."""
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = True
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message, no system message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        source = self.language_name(segment.source_lang or "")
        target = self.language_name(segment.target_lang)
        content = self.request(source, target, segment.text)
        return Rendering(Prompt(messages=(Message("user", content),)), self._warnings(segment))

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)

    def _warnings(self, segment: PromptInput) -> tuple[str, ...]:
        is_named = segment.target_lang in self.variants
        return (
            *steering.warnings(self, segment),
            *(() if is_named else steering.variant_warning(self, segment)),
            *(steering.simplified_only(self, segment) if self.one_chinese else ()),
        )


# --- NiuTrans' LMT-60 (Qwen3), strongest to and from Chinese and English --------------------------

_OF_LMT: Final[Mapping[str, str]] = MappingProxyType(
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


def _lmt_request(source: str, target: str, text: str) -> str:
    return f"Translate the following text from {source} into {target}:\n{source}: {text}\n{target}:"


LMT_60: Final = LanguagePair(
    name="lmt-60",
    models="LMT-60 0.6B, 1.7B, 4B, 8B (NiuTrans)",
    licence="Apache-2.0",
    languages=names.tags(
        "ar en es de fr it ja nl pl pt ru tr zh bg bn cs da el fa fi hi hu id ko nb ro sk sv th uk "
        "vi am az bo he hr hy is jv ka kk km ky lo mvf mr ms my ne ps si sw ta te tg fil ug ur uz "
        "yue"
    ),
    request=_lmt_request,
    language_name=lambda tag: _OF_LMT.get(names.base_of(tag)) or names.plain_name(tag),
    one_chinese=True,
)

# --- SalamandraTA Instruct of the Barcelona Supercomputing Center ---------------------------------


def _salamandra_request(source: str, target: str, text: str) -> str:
    """Return the card's prompt for a paragraph, or its other one for a text of several."""
    several = "\n" in text.strip()
    task = "Please translate this text" if several else "Translate the following text"
    return f"{task} from {source} into {target}.\n{source}: {text}\n{target}:"


SALAMANDRA_TA: Final = LanguagePair(
    name="salamandra-ta",
    models="SalamandraTA 2B, 7B Instruct (BSC)",
    licence="Apache-2.0",
    languages=names.tags(
        "an ast eu bg ca hr cs da nl en et fi fr gl de el hu ga it lv lt mt nb nn oc pl pt ro ru "
        "sr sk sl es sv uk cy"
    ),
    request=_salamandra_request,
    language_name=lambda tag: names.plain_name("nb" if names.base_of(tag) == "no" else tag),
)
"""An answer ends with ``</s>`` or ``<|im_end|>``; its generation_config.json lists both, and vLLM
reads them there. The chat template's date is left at its default: another prompt each day would
forget all translations."""

# --- Unbabel's Tower+ -----------------------------------------------------------------------------

_OF_TOWER: Final[Mapping[str, str]] = MappingProxyType(
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


def _tower_request(source: str, target: str, text: str) -> str:
    """Return the card's message, which ends with a space after the colon."""
    return (
        f"Translate the following {source} source text to {target}:\n{source}: {text}\n{target}: "
    )


def _tower_name(tag: str) -> str:
    return _OF_TOWER.get(tag) or _OF_TOWER.get(names.base_of(tag)) or names.plain_name(tag)


TOWER_PLUS: Final = LanguagePair(
    name="tower-plus",
    models="Tower+ 2B, 9B, 72B (Unbabel)",
    licence="CC-BY-NC-SA-4.0: not for commercial use",
    languages=names.tags("de es fr it ko nl ru en pt zh cs uk hi is ja pl sv hu ro da nn nb fi"),
    request=_tower_request,
    language_name=_tower_name,
    variants=frozenset(_OF_TOWER),
)
