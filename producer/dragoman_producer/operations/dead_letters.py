"""How are dead letters replayed: streamed, judged by their jobs' keys, published at a rate?"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, cast

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.operations.job_keys import JobKeys
from dragoman_producer.operations.letters import (
    DeadLetter,
    LetterFilter,
    Progress,
    no_progress,
    stream_letters,
)
from dragoman_producer.operations.replay import NO_LOSS, Candidate, Replay, ReplayPlanner, Skip
from dragoman_producer.publisher import Publisher, RecordTooLarge

_LETTERS_A_LOOK: Final = 500


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """``rate`` is records a second, None as fast as Kafka acknowledges them."""

    dry_run: bool = False
    rate: float | None = None

    @property
    def letters_a_look(self) -> int:
        """Keys read at once: at a low rate few, or they would be stale when their turn comes."""
        return (
            _LETTERS_A_LOOK if self.rate is None else max(1, min(_LETTERS_A_LOOK, int(self.rate)))
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one letter: the number of its replay, or why there is none."""

    letter: DeadLetter
    number: int | None
    skip: Skip | None


@dataclass(slots=True)
class ReplaySum:
    """What became of all letters, and which names were not among them."""

    replayed: int = 0
    skipped: Counter[Skip] = field(default_factory=Counter)
    not_found: list[str] = field(default_factory=list)

    @property
    def left_out(self) -> int:
        """Jobs and names that were asked for and are not replayed."""
        return len(self.not_found) + sum(
            count for skip, count in self.skipped.items() if skip not in NO_LOSS
        )


async def replay_letters(
    settings: DragomanSettings,
    wanted: LetterFilter,
    options: ReplayOptions,
    told: Callable[[Judged], None],
    progress: Progress = no_progress,
) -> ReplaySum:
    """Publish the records of the wanted letters again; ``told`` of each, once acknowledged.

    Raises BrokerUnreachable, BrokerRefused, StoreUnreachable and StoreRefused; what was published
    until then stands, and the command may be given again.
    """
    replaying = _Replaying(settings, wanted, options)
    found: set[str] = set()
    try:
        async with aclosing(stream_letters(settings, wanted, progress)) as letters:
            async for batch in _batches(letters, options.letters_a_look):
                found.update(filter(None, map(wanted.name_of, batch)))
                await replaying.replay(batch, told)
    finally:
        await replaying.close()
    replaying.sum.not_found = sorted(wanted.names - found)
    return replaying.sum


class _Replaying:
    """One command's connections, planner and tally."""

    def __init__(
        self, settings: DragomanSettings, wanted: LetterFilter, options: ReplayOptions
    ) -> None:
        self._wanted = wanted
        self._options = options
        self._planner = ReplayPlanner(settings.kafka.topic_names)
        self._keys = JobKeys(settings)
        self._publisher = Publisher(settings.kafka, connect_timeout_s=settings.connect_timeout_s)
        self._pace = _Pace(options.rate)
        self._reopened: set[str] = set()
        self.sum = ReplaySum()

    async def close(self) -> None:
        await self._publisher.close()
        await self._keys.close()

    async def replay(self, letters: Sequence[DeadLetter], told: Callable[[Judged], None]) -> None:
        """Judge a batch by one look at its keys, publish what can be, count and report each."""
        decided = await self._decided(letters)
        running = [asyncio.ensure_future(self._carry_out(decision)) for decision in decided]
        pending = deque(zip(letters, running, strict=True))
        try:
            while pending:
                await pending[0][1]
                self._report(*pending.popleft(), told)
        finally:
            for unfinished in running:
                unfinished.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            # An interrupt must not hide what Kafka has acknowledged meanwhile.
            for letter, task in pending:
                if not task.cancelled() and task.exception() is None:
                    self._report(letter, task, told)

    def _report(
        self, letter: DeadLetter, task: asyncio.Future[int | Skip], told: Callable[[Judged], None]
    ) -> None:
        answer = task.result()
        skip = answer if isinstance(answer, Skip) else None
        if skip is None:
            self.sum.replayed += 1
        else:
            self.sum.skipped[skip] += 1
        told(Judged(letter, answer if isinstance(answer, int) else None, skip))

    async def _decided(self, letters: Sequence[DeadLetter]) -> list[Replay | Skip]:
        examined = [
            self._planner.examine(letter, named=self._wanted.name_of(letter) is not None)
            for letter in letters
        ]
        candidates = [one for one in examined if isinstance(one, Candidate)]
        keys = iter(await self._keys.read([candidate.job_id for candidate in candidates]))
        now = datetime.now(UTC)
        return [
            self._planner.decide(one, next(keys), now) if isinstance(one, Candidate) else one
            for one in examined
        ]

    async def _carry_out(self, decision: Replay | Skip) -> int | Skip:
        if isinstance(decision, Skip):
            return decision
        if not self._options.dry_run:
            await self._pace.turn()
            await self._reopen(decision.document_id)
            try:
                # A record may have no key, and its copy has none then; aiokafka takes that.
                key = cast("bytes", decision.key)
                await self._publisher.publish(
                    decision.topic, key, decision.value, list(decision.headers)
                )
            except RecordTooLarge:
                return Skip.TOO_LARGE
        return decision.number

    async def _reopen(self, document_id: str | None) -> None:
        """Let a cancelled document's jobs run; once, for it may be cancelled meanwhile."""
        if document_id is not None and document_id not in self._reopened:
            self._reopened.add(document_id)
            await self._keys.reopen(document_id)


class _Pace:
    """Hands out turns, at most ``rate`` a second, evenly."""

    def __init__(self, rate: float | None) -> None:
        self._pause_s = 1 / rate if rate else 0.0
        self._next_at = 0.0

    async def turn(self) -> None:
        if self._pause_s:
            now = asyncio.get_running_loop().time()
            at = max(now, self._next_at)
            self._next_at = at + self._pause_s
            await asyncio.sleep(at - now)


async def _batches(
    letters: AsyncIterator[DeadLetter], size: int
) -> AsyncIterator[list[DeadLetter]]:
    batch: list[DeadLetter] = []
    async for letter in letters:
        batch.append(letter)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
