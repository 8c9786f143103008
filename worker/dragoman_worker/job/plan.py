"""What a job needs from the engine, and its texts so far: items, each in one or more requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_text.detection import Detection
from dragoman_text.terms import Term
from dragoman_worker.errors import JobError
from dragoman_worker.job.assessments import (
    NOT_JUDGED,
    UNCHECKED,
    Assessment,
    QualityRules,
    recalled,
)
from dragoman_worker.job.terms import JobTerms
from dragoman_worker.memory.in_flight import Flight
from dragoman_worker.ports import Decoding, Remembered
from dragoman_worker.prompts.base import Profile, wording
from dragoman_worker.quality.joining import TranslatedPiece, join


@dataclass(slots=True, eq=False)
class Unit:
    """One request to the engine: an item, or a piece of an item that is too long for one."""

    source: str
    prompt_ids: Sequence[int]
    decoding: Decoding
    before: str = ""
    after: str = ""
    most_tokens: int = 0
    """Largest output in tokens that context, policy and job allow: a retry may grow to it."""
    expected_tokens: int | None = None
    """Estimated output in tokens, for admission; None for the largest, `decoding.max_tokens`."""
    terms: tuple[Term, ...] = ()
    """Glossary entries that occur in the source, the longest first."""
    protected: tuple[str, ...] = ()
    """Literals of `protect` and `do_not_translate` that occur in the source."""
    splits: int = 0
    """How often a text that it is part of was cut off and split."""
    earlier_attempts: int = 0
    """Attempts at that text before it was split."""
    text: str | None = None
    error: JobError | None = None
    """The final error."""
    last_error: JobError | None = None
    """The error of the last attempt."""
    attempts: int = 0
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waits: int = 0
    """Tokens that count while it is planned and waits for its first permit, 0 afterwards."""
    item: int = 0
    """Index of its item in the plan."""
    key: bytes | None = None
    """Its key in the memory, once it was asked for."""
    flight: Flight | None = None
    """The equal units in flight, from its look-up in the memory to its answer."""
    assessment: Assessment = UNCHECKED
    """What the gates say of its text."""
    uncut: bool = False
    """Whether it stays as it is because it fits no request and cannot be cut, as base64 cannot."""

    @property
    def tokens(self) -> int:
        """Tokens of the KV cache to reserve: prompt and estimated output.

        Once the output was cut off, the estimate was too low, and the longest output counts.
        """
        longest = self.decoding.max_tokens
        expected = longest if self.finish_reason == "length" else self.expected_tokens
        return len(self.prompt_ids) + min(longest, longest if expected is None else expected)

    def recall(self, remembered: Remembered) -> None:
        """Take the text from the memory, or from an equal unit in flight."""
        self.text, self.assessment = remembered.text, recalled(remembered)
        self.flight = None

    def count(self, pieces: Iterable[Unit]) -> None:
        """Add what further requests for its text have cost."""
        for piece in pieces:
            self.attempts = max(self.attempts, piece.attempts)
            self.prompt_tokens += piece.prompt_tokens
            self.completion_tokens += piece.completion_tokens


@dataclass(slots=True, eq=False)
class PlannedItem:
    """One item of the job with its requests; none if it is returned unchanged or cannot be run."""

    item: Item
    complete: bool = False
    """Whether all its requests are planned."""
    units: list[Unit] = field(default_factory=list)
    source_lang: str | None = None
    """Given, detected or assumed, once its first request is planned."""
    detected: str | None = None
    warnings: list[str] = field(default_factory=list)
    error: JobError | None = None
    in_pieces: bool = False
    """Whether its text was split, so that what counts for the whole is judged when joined."""
    approved: Remembered | None = None
    """Its approved translation; it needs no request then."""
    whole: Assessment | None = None
    """What the gates say of the text joined from its pieces."""

    @property
    def unit_max_chars(self) -> int | None:
        """The limit of each unit; None for pieces, whose joined text has it."""
        return None if self.in_pieces else self.item.max_chars

    @property
    def translated(self) -> bool:
        """Whether all its units have a text."""
        return bool(self.units) and all(unit.text is not None for unit in self.units)

    @property
    def answered(self) -> list[Unit]:
        """Its units with an answer: not what needs none, such as a separator of a table."""
        return [unit for unit in self.units if unit.attempts > 0 or unit.assessment.cached]

    @property
    def uncut(self) -> list[str]:
        """The stretches that stay as they are because no one can cut them."""
        return [unit.source for unit in self.units if unit.uncut]

    def joined(self, target_lang: str) -> str:
        """Return the text joined from its units, which all have one."""
        if len(self.units) == 1:  # the usual item
            unit = self.units[0]
            return f"{unit.before}{unit.text or ''}{unit.after}"
        return join((_piece(unit) for unit in self.units), target_lang)

    def replace(self, unit: Unit, pieces: Sequence[Unit]) -> None:
        """Put the pieces of a unit in its place."""
        self.in_pieces = True
        place = self.units.index(unit)
        self.units[place : place + 1] = pieces


def certain_lang(job: TranslationJob, found: Detection | None) -> str | None:
    """Return the source language if it is given or detected without doubt."""
    if job.source_lang is not None or found is None or found.doubtful:
        return job.source_lang
    return found.language


@dataclass(slots=True, eq=False)
class Plan:
    """The requests of a job, planned one after another as the engine has capacity for them.

    So a job of 512 items does not hold all its token ids at once, and its first item enters the
    engine before its last one is planned.
    """

    job: TranslationJob
    profile: Profile
    target_lang: str
    items: list[PlannedItem]
    priority: str = ""
    terms: JobTerms | None = None
    """Entries of its glossaries, if it has any."""
    detections: Sequence[Detection | None] | None = None
    """Language of each item, if detected; None for all where the source is given."""
    rules: QualityRules = NOT_JUDGED
    """How its answers are judged."""
    frames: dict[str | None, tuple[str, ...]] = field(default_factory=dict)
    """The profile's own words in a prompt, by the source language."""
    steering_chars: int = 0
    """Characters of context, terms and instructions, which are part of every request."""
    upcoming: list[Unit] = field(default_factory=list)
    """The first requests, from their planning until the job runs; usually one."""
    runs: bool = False
    next_item: int = 0
    """Index of the item that is planned next, or whose pieces are."""
    pieces: Iterator[Unit] | None = None
    """The remaining requests of an item that is too long for one."""
    spent_s: float = 0.0
    """CPU seconds that planning has taken so far."""
    step_began: float | None = None
    """CPU time of the thread when the current step began, if it is measured."""

    @property
    def complete(self) -> bool:
        """Whether all items are planned."""
        return self.next_item == len(self.items)

    @property
    def remembers(self) -> bool:
        """Whether its answers may be recalled, shared and remembered: only those judged."""
        return self.rules.decide and self.job.memory != "off"

    def words(self, unit: Unit) -> tuple[str, ...]:
        """Return the words of `do_not_translate` that occur in the unit's source."""
        return tuple(word for word in self.job.do_not_translate or () if word in unit.protected)

    def prompted(self, item: PlannedItem) -> tuple[str, ...]:
        """Return what the model reads besides the item's text, in lines of the prompt."""
        given = (self.job.context, item.item.context, *(self.job.instructions or ()))
        lang = item.source_lang
        if lang not in self.frames:
            self.frames[lang] = wording(self.profile, self.target_lang, lang)
        return (*self.frames[lang], *filter(None, given))

    @property
    def units(self) -> list[Unit]:
        """All requests, in the order of the items."""
        return [unit for item in self.items for unit in item.units]

    @property
    def pending(self) -> list[Unit]:
        """The requests without a text so far."""
        return [unit for unit in self.units if unit.text is None]


def _piece(unit: Unit) -> TranslatedPiece:
    return TranslatedPiece(unit.before, unit.source, unit.after, unit.text or "")
