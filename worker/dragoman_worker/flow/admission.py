"""How full may the engine be? Bounds in items and tokens, steered by the engine's own readings.

Both start from the engine's limits. Items: a margin above what it runs at once, so that a place is
taken the moment it is free; where the engine runs fewer than it could, the bound follows what it
runs, because what waits inside it can be neither overtaken nor turned away. Tokens: a permit counts
prompt and longest output, and answers are shorter, so the bound rises while the KV cache has room
and is what holds jobs back, and falls when the engine preempts. docs/adr/0010 has the reasons.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Final

from dragoman_worker.flow.permits import Permits
from dragoman_worker.ports import Engine, EngineLimits, EngineStats
from dragoman_worker.settings import LimitsSettings

STEER_EVERY_S: Final = 0.25
"""As often as vLLM's gauges are read; they change with every step of the engine."""

_SHRINK: Final = 0.9
"""Of the items, a tick: what has just been let in may need a few steps until it runs."""
_LEAST_OF_SEQS: Final = 0.125

_LEAST_OF_KV: Final = 0.1
_MOST_OF_KV: Final = 8.0
"""Reserved tokens to real ones: a budget of two tokens a source token and 64, against one each."""
_FULL: Final = 0.95
"""The usage steered for: running sequences need some blocks to grow into."""
_RISE_OF_KV: Final = 0.08
"""The most a tick adds, or a cache of young sequences would be taken for one with much room."""
_LEAST_CUT: Final = 0.95
_DEEPEST_CUT: Final = 0.5
"""What a preemption leaves of the tokens, by how many in the engine no longer run."""
_PLANNED_OF_ENGINE: Final = 4
_QUIET_TICKS: Final = 4
"""Without a preemption for so long before tokens rise again: vLLM tells of one when it resumes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Items and tokens that may be in the engine at once."""

    items: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Seen:
    """Engine and permits at one tick."""

    engine: EngineStats
    held_tokens: int
    tokens_hold_back: bool
    """Whether items wait for a permit although their number is free."""


class Admission:
    """The bounds now. Pure: give it what is seen, take what it says."""

    def __init__(self, limits: LimitsSettings, engine: EngineLimits) -> None:
        """An explicit `limits.max_engine_items` or `limits.max_engine_tokens` is never steered."""
        self._items = _Items(limits, engine)
        self._tokens = _Tokens(limits, engine)

    @property
    def bounds(self) -> Bounds:
        """What holds until the next tick."""
        return Bounds(self._items.bound, self._tokens.bound)

    @property
    def most_items(self) -> int:
        """The highest that the bound on items can be."""
        return self._items.most

    def steer(self, seen: Seen) -> Bounds:
        """One tick. An engine that tells nothing of itself leaves everything as it is."""
        if seen.engine.kv_cache_usage is not None:
            crowded = _inside(seen.engine) > self._items.margin
            self._tokens.steer(seen, holds_back=seen.tokens_hold_back and not crowded)
            self._items.steer(seen.engine)
        return self.bounds


class _Items:
    """Between an eighth of the engine's sequences and its sequences with the margin."""

    def __init__(self, limits: LimitsSettings, engine: EngineLimits) -> None:
        seqs, given = engine.max_num_seqs, limits.max_engine_items
        self._steered = given is None
        # Rounded up: a margin of less than one would leave every place empty for a while.
        self.most = given or math.ceil(limits.engine_oversubscription * seqs - 1e-9)
        self.margin = max(0, self.most - seqs) if given is None else 0
        self._least = min(self.most, max(1, round(_LEAST_OF_SEQS * seqs), self.margin))
        self.bound = self.most

    def steer(self, engine: EngineStats) -> None:
        if not self._steered:
            return
        if _inside(engine) > self.margin:
            running = engine.running + self.margin
            wanted = max(running, math.floor(_SHRINK * self.bound), self._least)
            self.bound = min(self.bound, wanted)
        elif 2 * _inside(engine) <= self.margin:
            self.bound = min(self.most, self.bound + max(1, self.margin // 4))


def _inside(engine: EngineStats) -> int:
    """How many wait in the engine itself; what is on its way there and back is not its crowd."""
    return engine.waiting - engine.in_transit


class _Tokens:
    """Between a tenth of the KV cache and eight times its size, in reserved tokens."""

    def __init__(self, limits: LimitsSettings, engine: EngineLimits) -> None:
        size, given = engine.kv_cache_tokens, limits.max_engine_tokens
        self._steered = given is None
        self.bound = given or max(1, round(limits.engine_oversubscription * size))
        self._least = max(1, round(_LEAST_OF_KV * size))
        self._most = max(self.bound, round(_MOST_OF_KV * size))
        self._rise = max(1, round(_RISE_OF_KV * size))
        self._preemptions: int | None = None
        self._quiet = _QUIET_TICKS

    def steer(self, seen: Seen, *, holds_back: bool) -> None:
        if not self._steered:
            return
        before, self._preemptions = self._preemptions, seen.engine.preemptions
        if before is not None and seen.engine.preemptions > before:
            self._quiet = 0
            # Above the bound nobody enters, so the last cut has yet to show what it does.
            if seen.held_tokens <= self.bound:
                self._cut(seen)
            return
        self._quiet += 1
        if holds_back and self._quiet >= _QUIET_TICKS:
            self._raise(seen)

    def _cut(self, seen: Seen) -> None:
        """To the share of those in the engine that run, of what they really hold."""
        inside = max(1, seen.engine.running + seen.engine.waiting)
        kept = min(_LEAST_CUT, max(_DEEPEST_CUT, seen.engine.running / inside))
        self.bound = max(self._least, math.floor(kept * min(self.bound, seen.held_tokens)))

    def _raise(self, seen: Seen) -> None:
        """Towards what would fill the cache, if the next ones use as much of theirs as these."""
        usage = seen.engine.kv_cache_usage or 0.0
        fills = seen.held_tokens * _FULL / usage if usage else math.inf
        # One that runs alone, or is larger than all room, says nothing of the others.
        if fills > self.bound and 2 * seen.held_tokens >= self.bound:
            self.bound = math.floor(min(self._most, fills, self.bound + self._rise))


def most_planned_tokens(limits: LimitsSettings, engine: EngineLimits) -> int:
    """Tokens of planned requests that may wait: a few engines full, unless the settings say."""
    in_engine = limits.max_engine_tokens or round(
        limits.engine_oversubscription * engine.kv_cache_tokens
    )
    return limits.max_planned_tokens or max(1, _PLANNED_OF_ENGINE * in_engine)


async def steering(admission: Admission, permits: Permits, engine: Engine) -> None:
    """Keep the permits' bounds as the policy says, for ever."""
    while True:
        await asyncio.sleep(STEER_EVERY_S)
        seen = Seen(engine.stats(), permits.held_tokens, permits.tokens_hold_back)
        bounds = admission.steer(seen)
        if bounds != Bounds(permits.items, permits.tokens):
            permits.resize(items=bounds.items, tokens=bounds.tokens)
