"""Profile for SalamandraTA of the Barcelona Supercomputing Center: the prompts of its card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import ProfileSampling, Rendering, Segment, Steering
from dragoman_worker.prompts.cleaning import cleaned

_LANGUAGES: Final = names.tags(
    "an ast eu bg ca hr cs da nl en et fi fr gl de el hu ga it lv lt mt nb nn oc pl pt ro ru sr sk "
    "sl es sv uk cy"
)
_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True)
class SalamandraTa:
    """SalamandraTA Instruct: one prompt for a paragraph, another for a text of several.

    Its usage guide decodes greedily, the card's example with 5 beams. An answer ends with ``</s>``
    or ``<|im_end|>``; its generation_config.json lists both, and vLLM reads them there. The chat
    template's date is left at its default: another prompt each day would forget all translations.
    """

    name: str = "salamandra-ta"
    models: str = "SalamandraTA 2B, 7B Instruct (BSC)"
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
        several = "\n" in segment.text.strip()
        task = "Please translate this text" if several else "Translate the following text"
        content = f"{task} from {source} into {target}.\n{source}: {segment.text}\n{target}:"
        prompt = Prompt(messages=(Message("user", content),))
        warnings = steering.warnings(self, segment) + steering.variant_warning(self, segment)
        return Rendering(prompt, warnings)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _name(tag: str) -> str:
    return names.plain_name("nb" if names.base_of(tag) == "no" else tag)


SALAMANDRA_TA: Final = SalamandraTa()
