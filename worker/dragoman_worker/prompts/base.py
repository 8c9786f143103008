"""What is a prompt profile? The way one model family wants to be asked for a translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dragoman_schemas.jobs import Formality
from dragoman_worker.ports import Prompt

Steering = Literal["context", "glossary", "do_not_translate", "formality", "instructions"]
"""What may steer a translation beside its languages; named as in the job."""

ALL_STEERING: frozenset[Steering] = frozenset(
    ("context", "glossary", "do_not_translate", "formality", "instructions")
)


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
    """The family's own decoding advice; a job's `sampling` overrides field by field.

    No end token is listed: each model's tokenizer and configuration name their own.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()


class Profile(Protocol):
    """One family's way. Pure and immutable; shared by all jobs."""

    @property
    def name(self) -> str:
        """What jobs and settings call it."""
        ...

    @property
    def models(self) -> str:
        """Which models it is for, for people."""
        ...

    @property
    def licence(self) -> str:
        """The licence of those models, with what it forbids, for people."""
        ...

    @property
    def takes(self) -> frozenset[Steering]:
        """What its prompt has a place for; the rest is answered with a warning."""
        ...

    @property
    def needs_source(self) -> bool:
        """Whether the prompt names the source language, so that it is detected if not given."""
        ...

    @property
    def languages(self) -> frozenset[str] | None:
        """Base languages it can translate between (`None`: any)."""
        ...

    @property
    def sampling(self) -> ProfileSampling:
        """The family's decoding advice."""
        ...

    @property
    def max_source_tokens(self) -> int | None:
        """Longest source it does well, in tokens (`None`: whatever fits the context)."""
        ...

    @property
    def max_source_sentences(self) -> int | None:
        """Longest source it does well, in sentences (`None`: any)."""
        ...

    def render(self, segment: Segment) -> Rendering:
        """The prompt for one segment. Raises UnsupportedLanguage."""
        ...

    def clean(self, text: str, source: str | None = None) -> str:
        """The translation inside what the model wrote: wrappers and think tags taken off.

        Without the source nothing is taken off that a right translation could contain.
        """
        ...
