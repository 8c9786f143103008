"""Bounds on the items and tokens in the engine, steered by the engine's own stats.

Both bounds start from the engine's limits. docs/adr/0010 has the reasons.

Items: a margin above what the engine runs at once, so that a free slot is filled at once. Where the
engine runs fewer items than it could, the bound follows what it runs, because items that wait
inside the engine can be neither overtaken nor rejected.

Tokens: a permit counts the prompt and an estimate of the output, which is a little high. The bound
therefore rises while the KV cache has space and the bound is what blocks jobs. It falls when the
engine preempts.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Final

from dragoman_worker.flow import Flow
from dragoman_worker.flow.permits import Permits
from dragoman_worker.flow.planning import Planning
from dragoman_worker.ports import Engine, EngineLimits, EngineStats
from dragoman_worker.settings import LimitsSettings, WorkerSettings

STEER_EVERY_S: Final = 0.25
"""Seconds between two ticks; vLLM's gauges are read as often, and change with every step."""

_SHRINK: Final = 0.9
"""Lowest factor per tick on the items: admitted items may need a few steps until they run."""
_LEAST_OF_SEQS: Final = 0.125
"""Lower limit of the bound on items, as a share of the engine's `max_num_seqs`."""

_LEAST_OF_KV: Final = 0.1
_MOST_OF_KV: Final = 8.0
"""Limits of the bound on tokens, in multiples of the KV cache's size.

The upper one is the largest ratio of reserved to real tokens: that of estimates for a language that
the tokenizer knows badly.
"""
_FULL: Final = 0.95
"""Target usage of the KV cache: running sequences need some blocks to grow into."""
_RISE_OF_KV: Final = 0.08
"""Largest rise per tick, in cache sizes: a cache of young sequences only seems to have space."""
_LEAST_CUT: Final = 0.95
_DEEPEST_CUT: Final = 0.5
"""Limits of the factor that a preemption applies, by the share of items that still run."""
_PLANNED_OF_ENGINE: Final = 4
"""Default bound on planned tokens, in engines full."""
_QUIET_TICKS: Final = 4
"""Ticks without a preemption before tokens rise: vLLM reports one when the sequence resumes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Numbers of items and tokens that may be in the engine at once."""

    items: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Seen:
    """State of the engine and the permits at one tick."""

    engine: EngineStats
    held_tokens: int
    tokens_hold_back: bool
    """Whether items wait for a permit only because their tokens do not fit."""


class Admission:
    """The policy for the bounds. Pure: it maps what is seen at each tick to new bounds."""

    def __init__(self, limits: LimitsSettings, engine: EngineLimits) -> None:
        """Start from the engine's limits; a bound that the settings give is never steered."""
        self._items = _Items(limits, engine)
        self._tokens = _Tokens(limits, engine)

    @property
    def bounds(self) -> Bounds:
        """The bounds until the next tick."""
        return Bounds(self._items.bound, self._tokens.bound)

    @property
    def most_items(self) -> int:
        """The highest possible bound on items."""
        return self._items.most

    def steer(self, seen: Seen) -> Bounds:
        """Return the bounds after one tick.

        An engine that reports no KV cache usage changes nothing.
        """
        if seen.engine.kv_cache_usage is not None:
            crowded = _inside(seen.engine) > self._items.margin
            self._tokens.steer(seen, holds_back=seen.tokens_hold_back and not crowded)
            self._items.steer(seen.engine)
        return self.bounds


class _Items:
    """Bound on items: at most the sequences plus the margin, at least the margin or 1/8 of them."""

    def __init__(self, limits: LimitsSettings, engine: EngineLimits) -> None:
        seqs, given = engine.max_num_seqs, limits.max_engine_items
        self._steered = given is None
        # Rounded up: with a margin below 1 every slot would stay empty for a while.
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
    """Return how many items wait in the engine itself, without those in transit to or from it."""
    return engine.waiting - engine.in_transit


class _Tokens:
    """Bound on reserved tokens: between a tenth of the KV cache and eight times its size."""

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
            # Above the bound no item enters: the effect of the last cut is not visible yet.
            if seen.held_tokens <= self.bound:
                self._cut(seen)
            return
        self._quiet += 1
        if holds_back and self._quiet >= _QUIET_TICKS:
            self._raise(seen)

    def _cut(self, seen: Seen) -> None:
        """Reduce the bound to the held tokens times the share of items in the engine that run."""
        inside = max(1, seen.engine.running + seen.engine.waiting)
        kept = min(_LEAST_CUT, max(_DEEPEST_CUT, seen.engine.running / inside))
        self.bound = max(self._least, math.floor(kept * min(self.bound, seen.held_tokens)))

    def _raise(self, seen: Seen) -> None:
        """Raise the bound towards a full cache, as if the next items will use as much as these."""
        usage = seen.engine.kv_cache_usage or 0.0
        fills = seen.held_tokens * _FULL / usage if usage else math.inf
        # One item alone, or one larger than the whole bound, is no sample of the others.
        if fills > self.bound and 2 * seen.held_tokens >= self.bound:
            self.bound = math.floor(min(self._most, fills, self.bound + self._rise))


def open_flow(settings: WorkerSettings, engine: EngineLimits, bounds: Bounds) -> Flow:
    """Return the gates of a replica, with `bounds` on what is in the engine at first."""
    return Flow(
        Planning(
            _most_planned_tokens(settings.limits, engine), tokenises=settings.engine.kind != "echo"
        ),
        Permits(items=bounds.items, tokens=bounds.tokens, weights=settings.kafka.topic_weights),
    )


def _most_planned_tokens(limits: LimitsSettings, engine: EngineLimits) -> int:
    """Return the bound on tokens of planned requests: the setting, or a few engines full."""
    in_engine = limits.max_engine_tokens or round(
        limits.engine_oversubscription * engine.kv_cache_tokens
    )
    return limits.max_planned_tokens or max(1, _PLANNED_OF_ENGINE * in_engine)


async def steering(admission: Admission, permits: Permits, engine: Engine) -> None:
    """Apply the policy to the permits' bounds until cancelled."""
    while True:
        await asyncio.sleep(STEER_EVERY_S)
        seen = Seen(engine.stats(), permits.held_tokens, permits.tokens_hold_back)
        bounds = admission.steer(seen)
        if bounds != Bounds(permits.items, permits.tokens):
            permits.resize(items=bounds.items, tokens=bounds.tokens)
