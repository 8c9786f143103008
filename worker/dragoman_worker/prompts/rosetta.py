"""Profile for YanoljaNEXT-Rosetta: an instruction and a source, each a turn of its template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import ProfileSampling, PromptInput, Rendering, Steering
from dragoman_worker.prompts.cleaning import cleaned

_LANGUAGES: Final = names.tags(
    "ar bg zh cs da nl en fi fr de el gu he hi hu id it ja ko fa pl pt ro ru sk es sv fil th tr uk "
    "vi"
)
_TAKES: Final[frozenset[Steering]] = frozenset(
    ("context", "glossary", "do_not_translate", "formality")
)
_SAMPLING: Final = ProfileSampling()


@dataclass(frozen=True, slots=True)
class Rosetta:
    """YanoljaNEXT-Rosetta (Gemma 3), 32 languages; the source language is never named.

    The model's chat template makes its roles of the usual ones: the system message is the turn
    ``instruction``, the user message ``source``, and the answer ``translation``. The card shows a
    source in JSON and the line "Output format: JSON"; a plain text is sent as it is, without that
    line. Greedy: the card recommends no sampling.
    """

    name: str = "rosetta"
    models: str = "YanoljaNEXT-Rosetta 4B, 12B, 27B (Yanolja)"
    licence: str = "Gemma terms of use"
    takes: frozenset[Steering] = _TAKES
    needs_source: bool = False
    languages: frozenset[str] | None = _LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render a system and a user message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        instruction = "\n".join(_instruction(segment))
        messages = (Message("system", instruction), Message("user", segment.text))
        return Rendering(Prompt(messages=messages), steering.warnings(self, segment))

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _instruction(segment: PromptInput) -> Iterator[str]:
    """Yield the lines of the card; a word not to be translated is a term that stays."""
    yield f"Translate the user's text to {_name(segment.target_lang)}."
    if context := (segment.context or "").strip():
        yield f"Context: {context}"
    if register := steering.register(segment):
        yield f"Tone: {register}"
    terms = {word: word for word in steering.untranslated(segment)} | dict(segment.glossary)
    if terms:
        yield "Glossary:"
        yield from (f"- {term} -> {translation}" for term, translation in terms.items())
    yield "Provide the final translation immediately without any other text."


def _name(tag: str) -> str:
    """Return the card's name; traditional Chinese, which it does not list, is named as such."""
    base = names.base_of(tag)
    if base == "zh" and names.script_of(tag) != "Hant":
        return "Chinese"
    return "Tagalog" if base == "fil" else names.distinct_name(tag)


ROSETTA: Final = Rosetta()
