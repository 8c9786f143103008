"""Interface of a prompt profile: how one model family is prompted for a translation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from dragoman_text.inline import find_tags
from dragoman_worker.errors import UnsupportedLanguage
from dragoman_worker.ports import Prompt

if TYPE_CHECKING:
    from dragoman_schemas.jobs import Formality

Steering = Literal["context", "glossary", "do_not_translate", "formality", "instructions"]
"""Fields of a job that steer a translation, apart from its languages."""

ALL_STEERING: frozenset[Steering] = frozenset(
    ("context", "glossary", "do_not_translate", "formality", "instructions")
)


NOTHING_GIVEN: Final[Mapping[str, str]] = MappingProxyType({})


class PromptInput(NamedTuple):
    """One text to translate with everything that steers it. Languages are BCP-47 tags."""

    text: str
    target_lang: str
    source_lang: str | None = None
    context: str | None = None
    glossary: Mapping[str, str] = NOTHING_GIVEN
    """Terms that occur in the text, in the order in which the prompt lists them."""
    do_not_translate: tuple[str, ...] = ()
    formality: Formality = "default"
    instructions: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    """Literals that must survive unchanged. No prompt names them: they stand in the text or behind
    a token, and in the sentence "leave `<g1>` untranslated" the model takes them for its text."""
    tokens: bool = False
    """Whether numbered tokens such as `<x1/>` stand in the text for protected pieces of it."""
    correction: str | None = None
    """One sentence about what was wrong with the previous answer. Profiles that take instructions
    add it to their prompt; others ignore it."""


def is_usual(segment: PromptInput) -> bool:
    """Return whether nothing but its languages and register steers the segment.

    Tags do: some cards have another prompt for a text with markup.
    """
    return not (
        segment.context
        or segment.glossary
        or segment.do_not_translate
        or segment.instructions
        or segment.tokens
        or segment.correction
        or find_tags(segment.text)
    )


def completed(before: str, text: str, after: str) -> Prompt:
    """Return a completion that has the user's text between two strings of the profile."""
    span = (len(before), len(before) + len(text))
    return Prompt(completion=before + text + after, user_spans=(span,))


class Rendering(NamedTuple):
    """A prompt, and one sentence per field of the segment that it ignores, for `warnings`."""

    prompt: Prompt
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileSampling:
    """Decoding recommended for the family; a job's `sampling` overrides single fields.

    No end token is listed: each model's tokenizer and configuration define their own.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    special_tokens: bool = False
    """Whether `clean` gets the output with its control tokens, to find the answer by them."""
    adapter: str = ""
    """Folder of the LoRA adapter that the engine applies; none if empty."""


def identity_of(profile: Profile) -> str:
    """Return the name, and for a profile from a file also a hash of its definition."""
    identity: str = getattr(profile, "identity", profile.name)
    return identity


class Profile(Protocol):
    """Prompting of one model family. Pure and immutable; shared by all jobs."""

    @property
    def name(self) -> str:
        """Name in jobs and settings."""
        ...

    @property
    def models(self) -> str:
        """Models that the profile is for, as text for people."""
        ...

    @property
    def licence(self) -> str:
        """Licence of these models and what it forbids, as text for people."""
        ...

    @property
    def takes(self) -> frozenset[Steering]:
        """Steering fields that the prompt can express; others produce a warning."""
        ...

    @property
    def needs_source(self) -> bool:
        """Whether the prompt names the source language, which is then detected if not given."""
        ...

    @property
    def languages(self) -> frozenset[str] | None:
        """Base languages that it translates between; None means any."""
        ...

    @property
    def sampling(self) -> ProfileSampling:
        """Decoding recommended for the family."""
        ...

    @property
    def max_source_tokens(self) -> int | None:
        """Longest source that it translates well, in tokens; None means the whole context."""
        ...

    @property
    def max_source_sentences(self) -> int | None:
        """Longest source that it translates well, in sentences; None means any."""
        ...

    def render(self, segment: PromptInput) -> Rendering:
        """Render the prompt for one segment. Raises UnsupportedLanguage."""
        ...

    def clean(self, text: str, source: str | None = None) -> str:
        """Extract the translation from the model's output, without wrappers and think tags.

        Without the source, nothing is removed that a correct translation could contain.
        """
        ...


_TEXT: Final = "\ue000"
"""Stands for the user's text: a private-use character, which no profile changes."""
_LEAST_LETTERS: Final = 12
"""A label such as "German:" is too short to tell a repeated prompt from a text."""


def wording(profile: Profile, target_lang: str, source_lang: str | None = None) -> tuple[str, ...]:
    """Return the lines of the profile's plain prompt for these languages, without the text.

    ``Translate this from English to German:`` of `milmmt`, the template of an own profile. Empty
    where the model's chat template has all of the wording, or the profile not the languages.
    """
    try:
        prompt = profile.render(PromptInput(_TEXT, target_lang, source_lang)).prompt
    except UnsupportedLanguage:
        return ()
    written = "\n".join(_texts(prompt)).replace(_TEXT, "\n")
    lines = map(str.strip, written.splitlines())
    return tuple(dict.fromkeys(line for line in lines if _letters(line) >= _LEAST_LETTERS))


def _texts(prompt: Prompt) -> Iterator[str]:
    yield prompt.completion
    for message in prompt.messages:
        if isinstance(message.content, str):
            yield message.content


def _letters(line: str) -> int:
    return sum(map(str.isalpha, line))
