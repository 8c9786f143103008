"""Ports of quality: the judge of answers, the translation memory and the stored glossaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dragoman_text.terms import TermIndex

if TYPE_CHECKING:
    from dragoman_schemas.results import QualityVerdict
    from dragoman_text.detection import Detection
    from dragoman_text.verdicts import Candidate, Judgement


class Judge(Protocol):
    """The gates and the language detection, outside the event loop."""

    async def judge(self, candidate: Candidate) -> Judgement | None:
        """Judge one answer; None if no judgement could be had in time. Never raises an Exception.

        Cancelling the call abandons the judgement.
        """
        ...

    async def detect(
        self,
        texts: Sequence[str],
        candidates: Collection[str] | None,
        target_lang: str | None = None,
    ) -> Sequence[Detection | None]:
        """Return the language of each of the texts of one job, pooled where they are short.

        `candidates` are the base tags that the profile translates between; `target_lang` is never
        the language of a short text. None for a text without letters, for every text if no
        answer could be had in time. Never raises an Exception.
        """
        ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """A translation from the memory, or one to remember there."""

    text: str
    quality: QualityVerdict = "ok"
    warnings: tuple[str, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict)
    approved: bool = False
    """Whether it comes from an import or a review instead of an engine."""


@dataclass(frozen=True, slots=True)
class ApprovedQuery:
    """An item to find among the approved translations."""

    text: str
    target_lang: str
    source_lang: str | None = None
    context: str | None = None


class Memory(Protocol):
    """The translation memory. Raises no Exception: trouble with it costs hits, never a job."""

    async def recall(self, keys: Sequence[bytes]) -> Sequence[Remembered | None]:
        """Return what the machine tier remembers under each key (32 bytes); calls are batched."""
        ...

    async def approved(self, queries: Sequence[ApprovedQuery]) -> Sequence[Remembered | None]:
        """Return the approved translation of each item, None where there is none."""
        ...

    def remember(self, key: bytes, translation: Remembered) -> None:
        """Write it to the machine tier soon. Never waits; what cannot be written is counted."""
        ...


@dataclass(frozen=True, slots=True)
class StoredGlossary:
    """One version of a stored glossary, for one target language."""

    name: str
    version: str
    source_lang: str | None
    terms: TermIndex
    other_script: str | None = None
    """Where there are no terms: a tag of the same language in another script, if one has terms."""


class Glossaries(Protocol):
    """The stored glossaries."""

    async def find(self, name: str, target_lang: str) -> StoredGlossary | None:
        """Return the glossary for the language, at most `glossary.refresh_s` old.

        Lookup by exact tag, language and script, language if its likely script is the same. None
        if there is no such glossary. A glossary without terms for the language has an empty index.
        Raises Unavailable.
        """
        ...
