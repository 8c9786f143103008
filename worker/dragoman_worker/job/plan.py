"""What a job needs from the engine, and its results so far: items, each in one or more requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_schemas.results import ItemError, ItemResult, Usage
from dragoman_text.terms import Term
from dragoman_worker.errors import JobError
from dragoman_worker.job.terms import JobTerms
from dragoman_worker.ports import Decoding, Detection
from dragoman_worker.prompts.base import Profile
from dragoman_worker.quality.joining import Piece, join


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
    text: str | None = None
    error: JobError | None = None
    """The final error."""
    last_error: JobError | None = None
    """The error of the last attempt."""
    attempts: int = 0
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waits: bool = False
    """Whether it is planned and waits for its first permit."""

    @property
    def tokens(self) -> int:
        """Tokens of the KV cache to reserve: prompt and estimated output.

        Once the output was cut off, the estimate was too low, and the longest output counts.
        """
        longest = self.decoding.max_tokens
        expected = longest if self.finish_reason == "length" else self.expected_tokens
        return len(self.prompt_ids) + min(longest, longest if expected is None else expected)


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

    def replace(self, unit: Unit, pieces: Sequence[Unit]) -> None:
        """Put the pieces of a unit in its place."""
        place = self.units.index(unit)
        self.units[place : place + 1] = pieces


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
    steering_chars: int = 0
    """Characters of context, terms and instructions, which are part of every request."""
    upcoming: Unit | None = None
    """The first request, from its planning until the job runs."""
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
    def units(self) -> list[Unit]:
        """All requests, in the order of the items."""
        return [unit for item in self.items for unit in item.units]

    @property
    def pending(self) -> list[Unit]:
        """The requests without a text so far."""
        return [unit for unit in self.units if unit.text is None]

    def results(self, unfinished: JobError | None = None) -> list[ItemResult]:
        """Return each item's result, in order; unfinished items carry the error `unfinished`."""
        return [_item_result(item, self.target_lang, unfinished) for item in self.items]

    def first_failure(self) -> JobError | None:
        """Return the error of the first item that failed, None if none did."""
        failures = (_joined(item, self.target_lang, None)[1] for item in self.items)
        return next((failure for failure in failures if failure is not None), None)


def _item_result(planned: PlannedItem, target_lang: str, unfinished: JobError | None) -> ItemResult:
    item = planned.item
    text, error = _joined(planned, target_lang, unfinished)
    attempts, reason, prompt_tokens, completion_tokens = _summed(planned.units)
    return ItemResult(
        id=item.id,
        text=text,
        error=None if error is None else ItemError(code=error.code.value, message=error.message),
        detected_source_lang=planned.detected,
        warnings=planned.warnings,
        attempts=attempts,
        finish_reason=reason,
        usage=Usage(
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            source_chars=len(item.text),
            target_chars=len(text or ""),
        ),
    )


def _summed(units: list[Unit]) -> tuple[int, str | None, int, int]:
    """Return the most attempts, the last finish reason, and the sums of both token counts."""
    if len(units) == 1:  # the usual item
        unit = units[0]
        return unit.attempts, unit.finish_reason, unit.prompt_tokens, unit.completion_tokens
    return (
        max((unit.attempts for unit in units), default=0),
        next((unit.finish_reason for unit in reversed(units) if unit.finish_reason), None),
        sum(unit.prompt_tokens for unit in units),
        sum(unit.completion_tokens for unit in units),
    )


def _joined(
    planned: PlannedItem, target_lang: str, unfinished: JobError | None
) -> tuple[str | None, JobError | None]:
    if planned.error is not None:
        return None, planned.error
    if not planned.complete:
        return None, unfinished
    if not planned.units:
        return planned.item.text, None
    pieces: list[Piece] = []
    for unit in planned.units:
        if unit.text is None:
            return None, unit.error or unfinished
        pieces.append(Piece(unit.before, unit.source, unit.after, unit.text))
    return join(pieces, target_lang), None
