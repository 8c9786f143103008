"""Replay of dead letters: stream them, decide by their jobs' keys, publish at a rate."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, cast

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.operations.dead_letters import (
    DeadLetterFilter,
    Progress,
    ReadDeadLetter,
    no_progress,
    stream_dead_letters,
)
from dragoman_producer.operations.job_keys import JobKeys
from dragoman_producer.operations.replay_planner import (
    NO_LOSS,
    Replay,
    ReplayCandidate,
    ReplayPlanner,
    Skip,
)
from dragoman_producer.publisher import Publisher, RecordTooLarge
from dragoman_producer.reopening import Reopening

_KEYS_PER_READ: Final = 500


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay; ``rate`` is records per second, None without a limit."""

    dry_run: bool = False
    rate: float | None = None

    @property
    def keys_per_read(self) -> int:
        """Number of keys to read at once: few at a low rate, so that they are not outdated."""
        return _KEYS_PER_READ if self.rate is None else max(1, min(_KEYS_PER_READ, int(self.rate)))


@dataclass(frozen=True, slots=True)
class Judged:
    """Outcome of one dead letter: the number of its replay, or why it was skipped."""

    dead_letter: ReadDeadLetter
    number: int | None
    skip: Skip | None


@dataclass(slots=True)
class ReplayTotals:
    """Totals of a replay, and the names for which there was no dead letter."""

    replayed: int = 0
    skipped: Counter[Skip] = field(default_factory=Counter)
    not_found: list[str] = field(default_factory=list)

    @property
    def left_out(self) -> int:
        """Number of requested jobs and names that were not replayed."""
        return len(self.not_found) + sum(
            count for skip, count in self.skipped.items() if skip not in NO_LOSS
        )


async def replay_dead_letters(
    settings: DragomanSettings,
    wanted: DeadLetterFilter,
    options: ReplayOptions,
    report: Callable[[Judged], None],
    progress: Progress = no_progress,
) -> ReplayTotals:
    """Publish the records of the selected dead letters again; ``report`` each once acknowledged.

    Raises BrokerUnreachable, BrokerRefused, StoreUnreachable and StoreRefused. Records published
    until then stay, and the replay may be repeated.
    """
    replaying = _Replaying(settings, wanted, options)
    found: set[str] = set()
    try:
        async with aclosing(stream_dead_letters(settings, wanted, progress)) as dead_letters:
            async for batch in _batches(dead_letters, options.keys_per_read):
                found.update(filter(None, map(wanted.name_of, batch)))
                await replaying.replay(batch, report)
    finally:
        await replaying.close()
    replaying.totals.not_found = sorted(wanted.names - found)
    return replaying.totals


class _Replaying:
    """Connections, planner and totals of one replay."""

    def __init__(
        self, settings: DragomanSettings, wanted: DeadLetterFilter, options: ReplayOptions
    ) -> None:
        self._wanted = wanted
        self._options = options
        self._planner = ReplayPlanner(settings.kafka.topic_names)
        self._keys = JobKeys(settings)
        self._publisher = Publisher(
            settings.kafka,
            connect_timeout_s=settings.connect_timeout_s,
            bound=self._keys.box_bound,
        )
        self._pace = _Pace(options.rate)
        self._reopening = Reopening(self._keys.reopen, set())
        self.totals = ReplayTotals()

    async def close(self) -> None:
        self._planner.close()
        await self._publisher.close()
        await self._keys.close()

    async def replay(
        self, dead_letters: Sequence[ReadDeadLetter], report: Callable[[Judged], None]
    ) -> None:
        """Decide a batch by one read of its keys, publish, count and report each dead letter."""
        decided = await self._decided(dead_letters)
        running = [asyncio.ensure_future(self._publish(decision)) for decision in decided]
        pending = deque(zip(dead_letters, running, strict=True))
        try:
            while pending:
                await pending[0][1]
                self._report(*pending.popleft(), report)
        finally:
            for unfinished in running:
                unfinished.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            # An interrupt must not hide records that Kafka has acknowledged meanwhile.
            for dead_letter, task in pending:
                if not task.cancelled() and task.exception() is None:
                    self._report(dead_letter, task, report)

    def _report(
        self,
        dead_letter: ReadDeadLetter,
        task: asyncio.Future[int | Skip],
        report: Callable[[Judged], None],
    ) -> None:
        outcome = task.result()
        skip = outcome if isinstance(outcome, Skip) else None
        if skip is None:
            self.totals.replayed += 1
        else:
            self.totals.skipped[skip] += 1
        report(Judged(dead_letter, outcome if isinstance(outcome, int) else None, skip))

    async def _decided(self, dead_letters: Sequence[ReadDeadLetter]) -> list[Replay | Skip]:
        examined = [
            self._planner.examine(dead_letter, named=self._wanted.name_of(dead_letter) is not None)
            for dead_letter in dead_letters
        ]
        candidates = [one for one in examined if isinstance(one, ReplayCandidate)]
        keys = iter(await self._keys.read([candidate.job_id for candidate in candidates]))
        now = datetime.now(UTC)
        return [
            self._planner.decide(one, next(keys), now) if isinstance(one, ReplayCandidate) else one
            for one in examined
        ]

    async def _publish(self, decision: Replay | Skip) -> int | Skip:
        if isinstance(decision, Skip):
            return decision
        if not self._options.dry_run:
            await self._pace.turn()
            if decision.document_id is not None:
                await self._reopening.once(decision.document_id)
            try:
                # A record without a key is copied without one, which aiokafka accepts.
                key = cast("bytes", decision.key)
                await self._publisher.publish(
                    decision.topic, key, decision.value, list(decision.headers)
                )
            except RecordTooLarge:
                return Skip.TOO_LARGE
        return decision.number


class _Pace:
    """Rate limiter: evenly spaced turns, at most ``rate`` per second."""

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
    dead_letters: AsyncIterator[ReadDeadLetter], size: int
) -> AsyncIterator[list[ReadDeadLetter]]:
    batch: list[ReadDeadLetter] = []
    async for dead_letter in dead_letters:
        batch.append(dead_letter)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
