"""A small model of vLLM's scheduler with a paged KV cache, for tests of admission.

Running sequences allocate a block when a token needs one. With none left the latest sequence is
preempted, frees its blocks, and is prefilled again from its first token. A preemption is counted
when its sequence generates again, as in vLLM.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dragoman_worker.flow.admission import Admission, Seen
from dragoman_worker.ports import EngineLimits, EngineStats

BLOCK = 16
STEP_S = 0.01
TOKEN_S = 0.00005
"""Cost of a step, and of each token that is prefilled or generated in it."""


@dataclass(slots=True, eq=False)
class Sequence:
    """One item: the tokens that its permit reserves, and those it really needs."""

    prompt: int
    output: int
    reserved: int
    written: int = 0
    to_read: int = 0
    blocks: int = 0
    preempted: int = 0


@dataclass(slots=True)
class Engine:
    """An engine of `blocks` of 16 tokens, `seqs` sequences and `batched` tokens per step."""

    seqs: int
    blocks: int
    batched: int = 2048
    running: list[Sequence] = field(default_factory=list)
    queue: deque[Sequence] = field(default_factory=deque)
    free: int = 0
    preemptions: int = 0
    written: int = 0

    def __post_init__(self) -> None:
        self.free = self.blocks

    @property
    def limits(self) -> EngineLimits:
        return EngineLimits(self.seqs, self.batched, 1_000_000, self.blocks * BLOCK)

    def stats(self) -> EngineStats:
        usage = 1 - self.free / self.blocks
        return EngineStats(len(self.running), len(self.queue), usage, self.preemptions)

    def add(self, sequence: Sequence) -> None:
        sequence.to_read = sequence.prompt
        self.queue.append(sequence)

    def step(self) -> tuple[float, list[Sequence]]:
        """Run one step; return its seconds and the finished sequences."""
        budget, preempted = self.batched, False
        for sequence in list(self.running):
            if sequence not in self.running:
                continue
            while not self._room(sequence, self._tokens_of(sequence)):
                self._preempt(self.running[-1])
                preempted = True
                if sequence not in self.running:
                    break
            else:
                budget -= self._advance(sequence, budget)
        while not preempted and self.queue and len(self.running) < self.seqs and budget > 0:
            sequence = self.queue[0]
            if not self._room(sequence, sequence.to_read + 1):
                break
            self.running.append(self.queue.popleft())
            budget -= self._advance(sequence, budget)
        return STEP_S + TOKEN_S * (self.batched - budget), self._ended()

    def _tokens_of(self, sequence: Sequence) -> int:
        return sequence.prompt + sequence.written + 1

    def _room(self, sequence: Sequence, tokens: int) -> bool:
        more = -(-tokens // BLOCK) - sequence.blocks
        if more > self.free:
            return False
        if more > 0:
            self.free -= more
            sequence.blocks += more
        return True

    def _advance(self, sequence: Sequence, budget: int) -> int:
        if sequence.to_read:
            read = min(budget, sequence.to_read)
            sequence.to_read -= read
            if sequence.to_read:
                return read
        self.preemptions += sequence.preempted
        sequence.preempted = 0
        sequence.written += 1
        self.written += 1
        return 1

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.free += sequence.blocks
        sequence.blocks = 0
        sequence.preempted += 1
        sequence.to_read = sequence.prompt + sequence.written
        self.queue.appendleft(sequence)

    def _ended(self) -> list[Sequence]:
        over = [each for each in self.running if each.written >= each.output]
        for sequence in over:
            self.running.remove(sequence)
            self.free += sequence.blocks
        return over


@dataclass(slots=True)
class Run:
    """An endless backlog on an engine, with its output and the state at every tick."""

    engine: Engine
    work: Iterator[Sequence]
    admission: Admission
    steered: bool = True
    on_tick: Callable[[Run], None] | None = None
    now: float = 0.0
    done: list[tuple[float, Sequence]] = field(default_factory=list)
    inside: list[Sequence] = field(default_factory=list)
    ticks: list[tuple[float, int, int, EngineStats]] = field(default_factory=list)
    _written: list[tuple[float, int]] = field(default_factory=list)
    _next: Sequence | None = None

    def until(self, end_s: float, tick_s: float = 0.25) -> Run:
        due = self.now
        while self.now < end_s:
            self._admit()
            took, over = self.engine.step()
            self.now += took
            for sequence in over:
                self.inside.remove(sequence)
                self.done.append((self.now, sequence))
            if self.now >= due:
                due = self.now + tick_s
                self._tick()
        return self

    def tokens_a_second(self, since: float) -> float:
        at, written = next(tick for tick in self._written if tick[0] >= since)
        return (self.engine.written - written) / (self.now - at)

    @property
    def held_tokens(self) -> int:
        return sum(sequence.reserved for sequence in self.inside)

    def _admit(self) -> None:
        bounds, held = self.admission.bounds, self.held_tokens
        while True:
            waiter = self._next = self._next or next(self.work)
            fits = len(self.inside) < bounds.items and held + waiter.reserved <= bounds.tokens
            if self.inside and not fits:
                return
            held += waiter.reserved
            self.inside.append(waiter)
            self.engine.add(waiter)
            self._next = None

    def _tick(self) -> None:
        stats = self.engine.stats()
        if self.steered:
            free = len(self.inside) < self.admission.bounds.items
            self.admission.steer(Seen(stats, self.held_tokens, tokens_hold_back=free))
        self._written.append((self.now, self.engine.written))
        bounds = self.admission.bounds
        self.ticks.append((self.now, bounds.items, bounds.tokens, stats))


def texts(
    seed: int, *, shortest: int = 10, longest: int = 200, long_share: float = 0.0
) -> Iterator[Sequence]:
    """Yield translations: a prompt of 40 tokens plus the source, an answer of about its length.

    A permit reserves the planner's estimate, twice the source plus 64. A share of `long_share` is
    five times as long.
    """
    draw = random.Random(seed)
    while True:
        source = draw.randint(shortest, longest)
        if draw.random() < long_share:
            source *= 5
        prompt = 40 + source
        output = max(1, round(source * draw.uniform(0.8, 1.3)))
        yield Sequence(prompt, output, prompt + 2 * source + 64)
