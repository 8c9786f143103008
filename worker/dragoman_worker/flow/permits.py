"""Who may enter the engine next? Items of all jobs in turn, as many as keep the engine full.

Two bounds hold at once: items and their tokens. A job of 512 items waits in its own line, and the
lines take turns, so it neither blocks other jobs nor floods the engine. Lanes, the topics, take
turns by weight and by tokens: what they share is the engine's work, which long texts take more of.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dragoman_worker.flow.fair_queue import FairQueue, Turn
from dragoman_worker.flow.quarantine import Quarantine


class Draining(Exception):
    """No new job may enter: the worker is stopping."""


@dataclass(frozen=True, slots=True)
class Permit:
    """The right of one item to be in the engine. Give it back exactly once."""

    line: str
    tokens: int


@dataclass(slots=True, eq=False)
class _Waiter:
    tokens: int
    starts_job: bool
    granted: asyncio.Future[Permit]


class Permits:
    """A fair, two-dimensional semaphore. Event loop only; no I/O."""

    def __init__(
        self, *, items: int, tokens: int, weights: Mapping[str, int] | None = None
    ) -> None:
        """`weights` of the lanes; one that is not named weighs 1."""
        self._items = items
        self._tokens = tokens
        self._held_tokens = 0
        self._granted = 0
        self._held: dict[int, int] = {}
        self._queue: FairQueue[_Waiter] = FairQueue(weights)
        self._quarantine = Quarantine()
        self._between = 0
        """How many may still enter before the next turn of the quarantine."""
        self._draining = False
        self._closed = False

    @property
    def items(self) -> int:
        """Items that may be in the engine at once."""
        return self._items

    @property
    def tokens(self) -> int:
        """Tokens that those items may take at once."""
        return self._tokens

    @property
    def held_items(self) -> int:
        """Items in the engine now."""
        return len(self._held)

    @property
    def oldest(self) -> int | None:
        """The number of the permit that has been held for longest, None if none is held."""
        return next(iter(self._held.values()), None)

    @property
    def held_tokens(self) -> int:
        """Tokens those items may take, prompt and output together."""
        return self._held_tokens

    @property
    def given_back(self) -> int:
        """Permits that have been given back so far."""
        return self._granted - len(self._held)

    @property
    def tokens_hold_back(self) -> bool:
        """Whether items wait although there is room for more of them: their tokens do not fit."""
        free = len(self._held) < self._items and not self.quarantined
        return free and bool(self._queue) and not self._closed

    @property
    def quarantined(self) -> int:
        """Suspects in quarantine, waiting and running; while there are any, the engine may be
        kept empty on purpose."""
        return self._quarantine.waiting + self._quarantine.inside

    @property
    def waiting(self) -> int:
        """Items waiting for a permit."""
        return len(self._queue)

    def waiting_of(self, priority: str) -> int:
        """Items of one lane waiting for a permit."""
        return self._queue.waiting(priority)

    def resize(self, *, items: int, tokens: int) -> None:
        """Change the bounds; nobody who is in the engine is thrown out."""
        self._items = items
        self._tokens = tokens
        self._grant()

    async def acquire(
        self, line: str, tokens: int, *, priority: str = "", starts_job: bool = False
    ) -> Permit:
        """Wait for a permit in `line` (one a job). Raises Draining if it `starts_job` too late."""
        if starts_job and self._draining:
            raise Draining
        if not self._queue and self._fits(line, tokens):
            return self._take(line, tokens)
        waiter = _Waiter(tokens, starts_job, asyncio.get_running_loop().create_future())
        self._queue.join(priority, line, waiter)
        self._grant()
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            self._withdraw(priority, line, waiter)
            raise

    def release(self, permit: Permit) -> None:
        """Give a permit back and let the next ones in."""
        self._held_tokens -= permit.tokens
        self._held.pop(id(permit), None)
        self._grant()

    @asynccontextmanager
    async def quarantine(self, line: str, *, by_itself: bool) -> AsyncIterator[None]:
        """Inside, only this suspect's cohort is in the engine, or only `line` if `by_itself`.

        Between two turns those enter who wait, at most an engine full of them: hundreds of
        suspects, which a crash of a busy worker makes, would else keep all others out for long.
        Raises Draining when the worker stops before it is this line's turn.
        """
        if self._draining:
            raise Draining
        member = self._quarantine.join(line, by_itself=by_itself)
        self._grant()
        try:
            await member.admitted
            yield
        finally:
            if self._quarantine.leave(member):
                self._between = min(self._items, len(self._queue))
            self._grant()

    def let_finish(self, lines: Iterable[str]) -> None:
        """Let jobs that run go on beside the suspect inside, which waits for their end."""
        self._quarantine.let_finish(lines)
        self._grant()

    def in_quarantine(self, line: str) -> bool:
        """Whether the line is in the engine by a turn of the quarantine."""
        return self._quarantine.holds(line)

    def drain(self) -> None:
        """Turn away jobs that have not started; those that have may finish their items."""
        self._draining = True
        for turn in self._queue.all():
            waiter = turn.entry
            if waiter.starts_job:
                self._queue.leave(turn.priority, turn.line, waiter)
                if not waiter.granted.done():
                    waiter.granted.set_exception(Draining())
        self._quarantine.turn_away(Draining)
        self._grant()  # whoever was turned away may have stood in another's way

    def close(self) -> None:
        """Let nobody in any more, be it with items of a job that has started: the engine is dead.

        A job that entered now would fail at once and look like one of those that killed it.
        """
        self._closed = True
        self.drain()

    @property
    def closed(self) -> bool:
        """Whether nobody enters any more."""
        return self._closed

    def _fits(self, line: str, tokens: int) -> bool:
        if self._closed:
            return False
        if self._quarantine.inside:
            if line not in self._quarantine.lines:
                return False
        elif self._quarantine.waiting and not self._between:
            return False  # let the engine run empty for the suspects
        if len(self._held) == 0:
            return True  # whatever its size: it would never fit otherwise
        return len(self._held) < self._items and self._held_tokens + tokens <= self._tokens

    def _take(self, line: str, tokens: int) -> Permit:
        self._held_tokens += tokens
        permit = Permit(line, tokens)
        self._granted += 1
        self._held[id(permit)] = self._granted
        self._between = max(0, self._between - 1)
        return permit

    def _grant(self) -> None:
        if not self._queue and not self._quarantine.waiting:
            return
        self._admit_suspects()
        while len(self._held) < self._items and (turn := self._next_turn()) is not None:
            waiter = turn.entry
            gone = waiter.granted.done()
            self._queue.serve(turn, 0 if gone else waiter.tokens)
            if not gone:
                waiter.granted.set_result(self._take(turn.line, waiter.tokens))

    def _admit_suspects(self) -> None:
        if self._closed:
            return
        if len(self._held) == 0 and not (self._between and self._queue):
            self._quarantine.begin_turn()
        self._quarantine.fill_cohort()

    def _next_turn(self) -> Turn[_Waiter] | None:
        if self._quarantine.inside:
            turn = self._queue.first(among=self._quarantine.lines)
        elif self._quarantine.waiting and not self._between:
            turn = None
        else:
            turn = self._queue.first()
        if turn is None or not self._fits(turn.line, turn.entry.tokens):
            return None
        return turn

    def _withdraw(self, priority: str, line: str, waiter: _Waiter) -> None:
        if waiter.granted.done() and not waiter.granted.cancelled():
            if waiter.granted.exception() is None:
                self.release(waiter.granted.result())
            return
        self._queue.leave(priority, line, waiter)
        self._grant()
