"""What is a prompt profile? The way one model family wants to be asked for a translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dragoman_schemas.jobs import Formality
from dragoman_worker.ports import Prompt


@dataclass(frozen=True, slots=True)
class Segment:
    """One text to be translated, with everything that may steer it. Languages are BCP-47 tags."""

    text: str
    target_lang: str
    source_lang: str | None = None
    context: str | None = None
    glossary: Mapping[str, str] = field(default_factory=dict)
    do_not_translate: tuple[str, ...] = ()
    formality: Formality = "default"
    instructions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendering:
    """A prompt, and what of the segment it had no place for (a sentence each, for `warnings`)."""

    prompt: Prompt
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileSampling:
    """The family's own decoding advice; a job's `sampling` overrides field by field."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()


class Profile(Protocol):
    """One family's way. Pure and immutable; shared by all jobs."""

    name: str
    needs_source: bool
    """Whether the prompt names the source language, so that it must be detected if not given."""
    languages: frozenset[str] | None
    """Base languages it can translate between (`None`: any)."""
    sampling: ProfileSampling
    max_source_tokens: int | None
    """Longest source it does well, in tokens (`None`: whatever fits the context)."""
    max_source_sentences: int | None

    def render(self, segment: Segment) -> Rendering:
        """The prompt for one segment. Raises UnsupportedLanguage."""
        ...

    def clean(self, text: str) -> str:
        """The translation inside what the model wrote (wrappers and think tags taken off)."""
        ...
