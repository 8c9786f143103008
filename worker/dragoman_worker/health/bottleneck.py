"""What limits throughput now? One of six causes, from what a window of moments says together."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from statistics import fmean
from typing import Final

from dragoman_worker.ports import EngineLimits, EngineStats

FED: Final = 0.9
"""So much of what it could run must be in the engine for it to count as fed."""
HELD_FED: Final = 0.8
"""And where the permits' tokens hold others back, so much of what holds a permit."""
KV_FULL: Final = 0.85
"""Running sequences grow: a cache steered for 0.95 is this full on average, and one of few blocks
even less."""
RUNS_ALL: Final = 0.6
"""vLLM counts what runs after those that ended have left: a few short of its bound."""
MOST_PREEMPTED: Final = 0.02
"""Preemptions an item; fewer cost less than the emptier cache would that had none."""
GPU_BUSY: Final = 0.85
"""One engine with a 0.6B model showed 37-47 % and one with 8B 94-99 %, both with a backlog."""
LOOP_BUSY: Final = 0.7
"""CPU of the event loop's thread; more is not to be had on cores that others use too."""
LOOP_LATE_S: Final = 0.1
STALLED_S: Final = 1.0
"""A step of a job at Redis or Kafka takes milliseconds."""


class Cause(StrEnum):
    """What would have to change for more jobs a second."""

    QUEUE_EMPTY = "queue_empty"
    FEED = "feed"
    SEQUENCES = "sequences"
    KV_CACHE = "kv_cache"
    ENGINE_CPU = "engine_cpu"
    COMPUTE = "compute"


class Feed(StrEnum):
    """Which part of the way to the engine is too slow."""

    FETCH = "fetch"
    LOOP = "loop"
    STORE = "store"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class Moment:
    """What is seen at one time."""

    cut_off: bool
    """Whether no broker answers: then nobody knows what is queued."""
    queued: int
    """Jobs that are known and have not entered the engine."""
    storing: int
    """Jobs in hand that wait for Redis, or for Kafka to take what they ended with."""
    stalled: int
    """Those of them that have for longer than `STALLED_S`."""
    in_flight: int
    held: int
    """Items with a permit."""
    items: int
    """The bound of the permits in items."""
    tokens: int
    """And in tokens."""
    tokens_hold_back: bool
    """Whether items wait for a permit and only its tokens are wanting."""
    engine: EngineStats
    preempted: int
    """Preemptions since the moment before."""
    ended: int
    """Items that the engine has ended since then."""
    loop_busy: float
    loop_late_s: float
    gpu_busy: float | None
    quarantined: int = 0
    """Suspects for which the engine is kept empty of all others."""


@dataclass(frozen=True, slots=True)
class Load:
    """A window of moments: shares of time, and means, those of the engine of when it was fed."""

    seconds: float
    empty: float
    """Share of the moments in which the queue had nothing that the engine had room for."""
    starved: float
    """Share in which it had, and the engine lacked it."""
    queued: float
    in_flight: float
    storing: float
    stalled: float
    held: float
    items: float
    most_items: float
    """What that bound can rise to: it is lower while the engine is crowded."""
    tokens: float
    tokens_hold_back: float
    running: float
    waiting: float
    kv_cache_usage: float
    preemptions_per_s: float
    items_per_s: float
    loop_busy: float
    loop_late_s: float
    max_num_seqs: float
    kv_cache_tokens: float
    full_batch: float
    devices: float
    gpu_busy: float | None = None
    quarantined: float = 0.0

    @property
    def seqs(self) -> float:
        """Sequences that may run at once: the engine's bound, or ours if that is lower."""
        return min(self.max_num_seqs, self.most_items)


def bottleneck(load: Load) -> Cause:
    """The first limit that holds, looking from the queue towards the GPU."""
    fed = 1 - load.empty - load.starved
    if load.empty >= max(load.starved, fed):
        return Cause.QUEUE_EMPTY
    if load.starved >= fed:
        return Cause.FEED
    return _engine_limit(load)


def _engine_limit(load: Load) -> Cause:
    full = load.kv_cache_usage >= KV_FULL
    wasteful = load.preemptions_per_s > max(0.1, MOST_PREEMPTED * load.items_per_s)
    runs_all = load.running >= RUNS_ALL * load.seqs
    no_room = full or load.tokens_hold_back >= 0.5
    if wasteful or (no_room and load.running < FED * load.seqs):
        return Cause.KV_CACHE
    if runs_all and load.seqs < load.full_batch:
        return Cause.SEQUENCES
    if load.gpu_busy is not None and load.gpu_busy < GPU_BUSY:
        return Cause.ENGINE_CPU
    return Cause.COMPUTE


def feed_limit(load: Load) -> Feed:
    """Of a feed that is too slow, the slowest part."""
    if load.quarantined >= 1:
        return Feed.QUARANTINE
    if load.loop_busy >= LOOP_BUSY:
        return Feed.LOOP
    if load.stalled >= 1 or load.storing >= 0.5 * max(1.0, load.in_flight):
        return Feed.STORE
    return Feed.LOOP if load.loop_late_s >= LOOP_LATE_S else Feed.FETCH


class Window:
    """The last moments, and what they say together. Pure."""

    def __init__(
        self, limits: EngineLimits, *, most_items: int, every_s: float, seconds: float = 10.0
    ) -> None:
        """`most_items` is the highest that the bound of the permits can be."""
        self._limits = limits
        self._most_items = most_items
        self._every_s = every_s
        self._moments: deque[Moment] = deque(maxlen=max(1, round(seconds / every_s)))

    def add(self, moment: Moment) -> bool:
        """Take one in, and tell whether the engine was starved in it while there was work."""
        self._moments.append(moment)
        return _state(moment, self._limits.max_num_seqs) is Cause.FEED

    def load(self) -> Load:
        """Of the moments so far, one at least."""
        moments, limits = list(self._moments), self._limits
        states = [_state(moment, limits.max_num_seqs) for moment in moments]
        fed = [moment for moment, state in zip(moments, states, strict=True) if state is None]
        engine = [moment.engine for moment in fed or moments]
        busy = [moment.gpu_busy for moment in fed or moments if moment.gpu_busy is not None]
        seconds = len(moments) * self._every_s
        return Load(
            seconds=seconds,
            empty=states.count(Cause.QUEUE_EMPTY) / len(states),
            starved=states.count(Cause.FEED) / len(states),
            queued=fmean(moment.queued for moment in moments),
            in_flight=fmean(moment.in_flight for moment in moments),
            storing=fmean(moment.storing for moment in moments),
            stalled=fmean(moment.stalled for moment in moments),
            held=fmean(moment.held for moment in moments),
            items=fmean(moment.items for moment in moments),
            most_items=self._most_items,
            tokens=fmean(moment.tokens for moment in moments),
            tokens_hold_back=fmean(moment.tokens_hold_back for moment in fed or moments),
            running=fmean(each.running for each in engine),
            waiting=fmean(each.waiting for each in engine),
            kv_cache_usage=fmean(each.kv_cache_usage or 0.0 for each in engine),
            preemptions_per_s=sum(moment.preempted for moment in moments) / seconds,
            items_per_s=sum(moment.ended for moment in moments) / seconds,
            loop_busy=fmean(moment.loop_busy for moment in moments),
            loop_late_s=fmean(moment.loop_late_s for moment in moments),
            max_num_seqs=limits.max_num_seqs,
            kv_cache_tokens=limits.kv_cache_tokens,
            full_batch=limits.full_batch,
            devices=limits.devices,
            gpu_busy=fmean(busy) if busy else None,
            quarantined=fmean(moment.quarantined for moment in moments),
        )


def _state(moment: Moment, max_num_seqs: int) -> Cause | None:
    """Why the engine lacks work, None if it does not."""
    inside = moment.engine.running + moment.engine.waiting
    room = min(max_num_seqs, moment.items)
    if inside >= FED * room or (moment.tokens_hold_back and inside >= HELD_FED * moment.held):
        return None
    # With little in the queue the engine would not be full; what is stuck should yet be in it.
    stuck = moment.cut_off or moment.stalled > inside
    return Cause.FEED if stuck or moment.queued > room - inside else Cause.QUEUE_EMPTY


def together(loads: Sequence[Load]) -> Load:
    """One load of many engines: counts and rates are added up, shares and times averaged."""
    added = {
        *("queued", "in_flight", "storing", "stalled", "held", "items", "most_items"),
        *("tokens", "running", "waiting"),
        *("preemptions_per_s", "items_per_s", "max_num_seqs", "kv_cache_tokens"),
        *("full_batch", "devices", "quarantined"),
    }
    values: dict[str, float | None] = {}
    for field in fields(Load):
        each = [value for load in loads if (value := getattr(load, field.name)) is not None]
        values[field.name] = (sum if field.name in added else fmean)(each) if each else None
    return Load(**values)  # type: ignore[arg-type]  # only gpu_busy may be None, and is
