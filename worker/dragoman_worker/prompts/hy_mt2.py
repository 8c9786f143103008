"""Profile for Tencent's Hy-MT2: the task prompts of its model card, in English."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dragoman_text.inline import find_tags
from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import (
    ALL_STEERING,
    ProfileSampling,
    PromptInput,
    Rendering,
    Steering,
)
from dragoman_worker.prompts.chat import keep_tokens
from dragoman_worker.prompts.cleaning import cleaned

LANGUAGES: Final = names.tags(
    "zh en fr pt es ja tr ru ar ko th it de vi ms id fil hi pl cs nl km my fa gu ur te mr he "
    "bn ta uk bo kk mn ug yue"
)
_SAMPLING: Final = ProfileSampling(temperature=0.7, top_p=0.6, top_k=20, repetition_penalty=1.05)
_DELIMITERS: Final = (
    "You must retain the exact same number of delimiters in the translation. Strictly do not omit, "
    "escape, or translate these symbols, and pay close attention to their placement."
)
_STRUCTURED: Final = """\
### Task
Translate the user-facing text within the following HTML data into {target}.

### Strict Rules
1. Structure Preservation: You MUST preserve the original HTML data structure, nesting, hierarchy, \
and indentation exactly as they are.
2. Selective Translation: Translate ONLY the visible, user-facing text content/values.
3. Strict Non-Translation: NEVER translate or alter code tags, keys, properties, object names, or \
variable placeholders. Leave them exactly in their original English/code form.

### Source Data
{text}"""
"""HTML is one of the four formats of the model's benchmark; a document's tags are of its form."""
_BACKGROUND: Final = "taking the provided background information into consideration"


@dataclass(frozen=True, slots=True)
class HyMt2:
    """Hy-MT2: terms, context, style, preferences and markup have one task prompt each.

    A single one is rendered exactly as on the card; several are joined in the order background,
    terms, task. A word not to be translated is a term that translates to itself. A text with tags
    is structured data, unless background, style or preferences ask for another task; tokens are
    delimiters. The sampling is the card's for 1.8B and 7B. The source language is never named.
    """

    name: str = "hy-mt2"
    models: str = "Hy-MT2 1.8B, 7B (Tencent)"
    licence: str = "Apache-2.0"
    takes: frozenset[Steering] = ALL_STEERING
    needs_source: bool = False
    languages: frozenset[str] | None = LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message, no system message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        content = "\n\n".join([*_background(segment), *_terms(segment), _task(segment)])
        prompt = Prompt(messages=(Message("user", content),))
        return Rendering(prompt)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output."""
        return cleaned(text, source)


def _target(segment: PromptInput) -> str:
    """Return the card's name, such as "English", "Cantonese" or "Traditional Chinese"."""
    if names.base_of(segment.target_lang) == "zh":
        traditional = names.script_of(segment.target_lang) == "Hant"
        return "Traditional Chinese" if traditional else "Chinese"
    return names.distinct_name(segment.target_lang)


def _context(segment: PromptInput) -> str:
    return (segment.context or "").strip()


def _background(segment: PromptInput) -> list[str]:
    context = _context(segment)
    return [f"[Background Information]\n{context}"] if context else []


def _terms(segment: PromptInput) -> list[str]:
    terms = {word: word for word in steering.untranslated(segment)} | dict(segment.glossary)
    lines = [f"{source} translates to {target}" for source, target in terms.items()]
    return ["\n".join(["Reference the following translations:", *lines])] if lines else []


def _task(segment: PromptInput) -> str:
    target, text = _target(segment), segment.text
    register = steering.register(segment)
    if segment.tokens and not (_context(segment) or _tasks(segment)):
        return (
            f"Please accurately translate the following text into {target}.\n"
            f"{_DELIMITERS}\n\n{text}"
        )
    if segment.instructions or segment.tokens or (segment.correction or "").strip():
        return _preferences(segment)
    style = f" Note that the translation style must strictly conform to [{register}]"
    if _context(segment):
        note = f"{style}." if register else ""
        return (
            f"Please translate the following text into {target}, {_BACKGROUND}.{note}\n\n"
            f"[Source Text]\n{text}"
        )
    if register:
        return f"Please translate the following text into {target}.{style}:\n\n{text}"
    if find_tags(text):
        return _STRUCTURED.format(target=target, text=text)
    verb = "must ONLY" if _terms(segment) else "should only"
    return (
        f"Translate the following text into {target}. Note that you {verb} output the "
        f"translated result without any additional explanation:\n\n{text}"
    )


def _preferences(segment: PromptInput) -> str:
    """Render the card's personalisation prompt: numbered tasks, of which the last translates."""
    tasks = _tasks(segment)
    if segment.tokens:
        tasks.append(keep_tokens(segment.text))
    ending = f", {_BACKGROUND}." if _context(segment) else "."
    tasks.append(f"Translate the [Source Text] into {_target(segment)}{ending}")
    lines = [f"{number}. {task}" for number, task in enumerate(tasks, start=1)]
    return "\n".join(["[Source Text]", segment.text, "", "[Translation Tasks]", *lines])


def _tasks(segment: PromptInput) -> list[str]:
    tasks = [*segment.instructions, segment.correction or ""]
    if register := steering.register(segment):
        tasks.append(f"The translation style must strictly conform to [{register}].")
    return [task.strip() for task in tasks if task.strip()]


HY_MT2: Final = HyMt2()
HY_MT2_30B: Final = HyMt2(
    name="hy-mt2-30b",
    models="Hy-MT2 30B-A3B (Tencent)",
    sampling=replace(_SAMPLING, top_p=1.0, top_k=-1, repetition_penalty=1.0),
)
