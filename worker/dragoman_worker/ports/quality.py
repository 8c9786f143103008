"""Ports of quality: the judge of answers, the translation memory and the stored glossaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dragoman_text.terms import Term, TermIndex

if TYPE_CHECKING:
    from dragoman_schemas.results import QualityVerdict

Severity = Literal["fail", "warn", "fixed"]
"""`fail`: the answer is asked for again, then `quality.on_fail` applies; `warn`: it is reported;
`fixed`: the gate has repaired the text."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A base language (BCP-47, ``zh`` for either script) and its probability, 0-1."""

    language: str
    confidence: float

    @property
    def doubtful(self) -> bool:
        """Whether it is a guess: it is not reported, and only named where a prompt must have it.

        Of the guesses for single strings of up to 30 letters 40 % are right, of the others 95 %
        (benchmarks/quality/source_detection.py).
        """
        return self.confidence < 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer of the engine and all that the gates need to judge it against its source."""

    source: str
    target: str
    target_lang: str
    source_lang: str | None = None
    """Given or detected with confidence; None means unknown."""
    strict: bool = False
    protected: tuple[str, ...] = ()
    """Literals of `protect` and `do_not_translate` that occur in the source."""
    words: tuple[str, ...] = ()
    """Those of `do_not_translate`: they count only as whole words, "Go" not in "Good"."""
    terms: tuple[Term, ...] = ()
    """Glossary entries that occur in the source."""
    max_chars: int | None = None
    joined: bool = False
    """Whether it is an item joined from pieces judged before: only `max_chars`, `paragraphs`
    and `language` judge it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one gate found in one answer. `detail` is one sentence, for `checks` and `warnings`."""

    gate: str
    severity: Severity
    detail: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The findings about one answer, and its text with what the gates repaired."""

    text: str
    findings: tuple[Finding, ...] = ()
    length_distance: float = 0.0
    """|log(length ratio / the median of the language pair)|: the smaller of two is better."""

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings for which the answer is asked for again."""
        return tuple(finding for finding in self.findings if finding.severity == "fail")

    @property
    def verdict(self) -> QualityVerdict:
        """The verdict on the answer: the worst of its findings."""
        severities = {finding.severity for finding in self.findings}
        return "fail" if "fail" in severities else "warn" if "warn" in severities else "ok"


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
