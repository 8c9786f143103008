"""Profile for an engine without prompts, the echo engine: the text alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman_worker.ports import Prompt
from dragoman_worker.prompts.base import ProfileSampling, PromptInput, Rendering, Steering, is_usual

_SAMPLING: Final = ProfileSampling()
_FORMAL: Final = frozenset({"more", "less"})


@dataclass(frozen=True, slots=True)
class PlainProfile:
    """The unchanged source text; every field that would steer a model produces a warning."""

    name: str = "plain"
    models: str = "none: the echo engine"
    licence: str = "none"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = False
    languages: frozenset[str] | None = None
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None

    def render(self, segment: PromptInput) -> Rendering:
        """Render the text itself."""
        return Rendering(Prompt(completion=segment.text), _ignored(segment))

    def clean(self, text: str, source: str | None = None) -> str:
        """Return the output unchanged."""
        del source
        return text


def _ignored(segment: PromptInput) -> tuple[str, ...]:
    if is_usual(segment) and segment.formality not in _FORMAL:
        return ()
    given = (
        ("context", segment.context),
        ("glossary", segment.glossary),
        ("do_not_translate", segment.do_not_translate),
        ("formality", segment.formality in _FORMAL),
        ("instructions", segment.instructions),
    )
    return tuple([f"{name}: ignored by the echo engine" for name, value in given if value])


PLAIN: Final = PlainProfile()
