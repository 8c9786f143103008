"""What does a job need from the engine, and what has become of it so far? Items in requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_schemas.results import ItemError, ItemResult, Usage
from dragoman_worker.errors import JobError
from dragoman_worker.flow.permits import Permit
from dragoman_worker.ports import Decoding
from dragoman_worker.prompts.base import Profile


@dataclass(slots=True, eq=False)
class Unit:
    """One request to the engine: an item, or a piece of an item that is too long for one."""

    source: str
    prompt_ids: Sequence[int]
    decoding: Decoding
    before: str = ""
    after: str = ""
    most_tokens: int = 0
    """The longest answer that context, policy and job allow: an attempt cut off may grow to it."""
    text: str | None = None
    error: JobError | None = None
    """Why it has no text, once that is final."""
    last_error: JobError | None = None
    """Why the last attempt gave none."""
    attempts: int = 0
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waits: bool = False
    """Whether it was planned and has not had its first permit."""

    @property
    def tokens(self) -> int:
        """What it may take of the KV cache: prompt and longest output, in tokens."""
        return len(self.prompt_ids) + self.decoding.max_tokens


@dataclass(slots=True, eq=False)
class PlannedItem:
    """One item of the job with its requests; none if it comes back unchanged or cannot be run."""

    item: Item
    complete: bool = False
    """Whether all its requests are known."""
    units: list[Unit] = field(default_factory=list)
    detected: str | None = None
    warnings: list[str] = field(default_factory=list)
    error: JobError | None = None


@dataclass(slots=True, eq=False)
class Plan:
    """What a job needs from the engine. Requests are planned one after another, as they may enter.

    So a job of 512 items neither holds all its token ids at once nor has to be planned in full
    before its first item enters.
    """

    job: TranslationJob
    profile: Profile
    target_lang: str
    items: list[PlannedItem]
    first: Permit | None = None
    priority: str = ""
    steering_chars: int = 0
    """Characters of context, terms and instructions, which every request reads again."""
    upcoming: Unit | None = None
    """The first request, from its planning until the job runs."""
    runs: bool = False
    next_item: int = 0
    """The item that is planned next, or whose pieces are."""
    pieces: Iterator[Unit] | None = None
    """The requests that are left of an item too long for one."""
    spent_s: float = 0.0
    """CPU time that planning has taken so far."""
    step_began: float | None = None
    """The thread's CPU time when the step under way began, if it is measured."""

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to plan."""
        return self.next_item == len(self.items)

    @property
    def units(self) -> list[Unit]:
        """All requests, in the order of the items."""
        return [unit for item in self.items for unit in item.units]

    @property
    def pending(self) -> list[Unit]:
        """Those of them that the engine has yet to answer."""
        return [unit for unit in self.units if unit.text is None]

    def results(self, unfinished: JobError | None = None) -> list[ItemResult]:
        """Each item's outcome, in order; items not done carry `unfinished`."""
        return [_item_result(item, unfinished) for item in self.items]

    def first_failure(self) -> JobError | None:
        """Why the first item that has no text has none."""
        failures = (_joined(item, None)[1] for item in self.items)
        return next((failure for failure in failures if failure is not None), None)


def _item_result(planned: PlannedItem, unfinished: JobError | None) -> ItemResult:
    item = planned.item
    text, error = _joined(planned, unfinished)
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
    """Most attempts, last reason to stop, and the tokens of all."""
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
    planned: PlannedItem, unfinished: JobError | None
) -> tuple[str | None, JobError | None]:
    if planned.error is not None:
        return None, planned.error
    if not planned.complete:
        return None, unfinished
    if not planned.units:
        return planned.item.text, None
    parts: list[str] = []
    for unit in planned.units:
        if unit.text is None:
            return None, unit.error or unfinished
        parts += (unit.before, unit.text, unit.after)
    return "".join(parts), None
