"""Profile for any instruct model with a chat template: one request in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dragoman_text.masks import STYLES
from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import (
    ALL_STEERING,
    ProfileSampling,
    PromptInput,
    Rendering,
    Steering,
)
from dragoman_worker.prompts.cleaning import cleaned


def request(segment: PromptInput) -> str:
    """Render the whole message, which ends with the text to translate."""
    blocks = [_task(segment), *guidance(segment), f"Text:\n{segment.text}"]
    return "\n\n".join(blocks)


def guidance(segment: PromptInput) -> list[str]:
    """Render the segment's rules and its context as one block each, if there are any."""
    rules = _rules(segment)
    blocks = ["Rules:\n" + "\n".join(f"- {rule}" for rule in rules)] if rules else []
    if segment.context and segment.context.strip():
        background = segment.context.strip()
        blocks.append(f"Context, for understanding only, not to be translated:\n{background}")
    return blocks


def _task(segment: PromptInput) -> str:
    source = f" {names.english_name(segment.source_lang)}" if segment.source_lang else ""
    target = names.english_name(segment.target_lang)
    return (
        f"Translate the following{source} text into {target}. Reply with the translation only, "
        "without explanations or notes. Keep line breaks, markup, placeholders and links as "
        "they are."
    )


def _rules(segment: PromptInput) -> list[str]:
    rules = [f"Translate “{source}” as “{target}”." for source, target in segment.glossary.items()]
    rules += [f"Leave “{word}” untranslated." for word in steering.untranslated(segment)]
    if register := steering.register(segment):
        rules.append(f"Use {'a formal' if register == 'formal' else 'an informal'} register.")
    return [*rules, *(rule.strip() for rule in segment.instructions), *remedies(segment)]


def remedies(segment: PromptInput) -> list[str]:
    """Return one sentence each for the tokens in the text and for the previous answer's fault."""
    sentences = [keep_tokens(segment.text)] if segment.tokens else []
    if segment.correction and segment.correction.strip():
        sentences.append(segment.correction.strip())
    return sentences


def keep_tokens(text: str) -> str:
    """Return the sentence that asks for the text's numbered tokens, with the first as example."""
    found = (style.pattern.search(text) for style in STYLES)
    example = next((token[0] for token in found if token), STYLES[0].token(1))
    return (
        f"Copy every numbered token of the text, such as {example}, unchanged to the place where "
        "it belongs in the translation."
    )


_SAMPLING: Final = ProfileSampling()
WITHOUT_THINKING: Final[Mapping[str, object]] = MappingProxyType({"enable_thinking": False})
"""Option of the chat templates of most models that can think; other templates ignore it."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Any instruct model with a chat template. One user message; greedy, so runs are repeatable.

    Thinking is switched off: its tokens are paid for, and no translation of a sentence needs it.
    """

    name: str = "chat"
    models: str = "any instruct model with a chat template"
    licence: str = "the model's own"
    takes: frozenset[Steering] = ALL_STEERING
    needs_source: bool = False
    languages: frozenset[str] | None = None
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message, no system message."""
        steering.require_languages(self, segment)
        message = Message("user", request(segment))
        prompt = Prompt(
            messages=(message,),
            template_options=WITHOUT_THINKING,
        )
        return Rendering(prompt)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove think tags, wrappers and introductions from the output."""
        return cleaned(text, source)


CHAT: Final = Chat()
