"""The cause that limits throughput now, one of eight, judged from a window of moments."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from statistics import fmean
from typing import Final

from dragoman_worker.ports import EngineLimits, EngineStats

FED: Final = 0.9
"""The engine counts as fed if it holds at least this share of the items that it could run."""
HELD_FED: Final = 0.8
"""While items wait only for tokens: fed if it holds this share of the items with a permit."""
KV_FULL: Final = 0.85
"""Running sequences grow, so a cache that admission keeps at 0.95 is this full on average. A cache
of few blocks is even less full."""
RUNS_ALL: Final = 0.6
"""vLLM counts running sequences after finished ones have left: a few less than its bound."""
MOST_PREEMPTED: Final = 0.02
"""Preemptions per item; fewer cost less than the emptier cache that would avoid them."""
GPU_BUSY: Final = 0.85
"""Measured with a backlog: 37-47 % with one engine of a 0.6B model, 94-99 % with one of 8B."""
LOOP_BUSY: Final = 0.7
"""CPU share of the event loop's thread; on shared cores it rarely gets more."""
LOOP_LATE_S: Final = 0.1
SILENT_S: Final = 10.0
"""An engine sends a message with every step, many per second; on a CPU a step may take seconds."""
STALLED_S: Final = 1.0
"""Normally a job waits milliseconds for Redis or Kafka."""


class Cause(StrEnum):
    """The limit to change for more jobs per second."""

    QUEUE_EMPTY = "queue_empty"
    FEED = "feed"
    SEQUENCES = "sequences"
    KV_CACHE = "kv_cache"
    ENGINE_CPU = "engine_cpu"
    COMPUTE = "compute"
    NO_ANSWER = "no_answer"
    SERVER = "server"


class Feed(StrEnum):
    """The slowest part of the path from the queue to the engine."""

    FETCH = "fetch"
    LOOP = "loop"
    STORE = "store"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class Moment:
    """State of a replica at one point in time."""

    no_broker: bool
    """Whether no broker answers: the number of queued jobs is then unknown."""
    queued: int
    """Known jobs that have not entered the engine."""
    storing: int
    """Jobs in flight that are being claimed or settled: they wait for Redis or Kafka."""
    stalled: int
    """Jobs among `storing` that have waited for longer than `STALLED_S`."""
    in_flight: int
    """Jobs polled and not yet settled."""
    held: int
    """Items with a permit."""
    items: int
    """Bound on the items with a permit."""
    tokens: int
    """Bound on the tokens of the items with a permit."""
    tokens_hold_back: bool
    """Whether items wait for a permit only because their tokens do not fit."""
    engine: EngineStats
    preempted: int
    """Preemptions since the previous moment."""
    finished: int
    """Items that the engine answered since the previous moment."""
    loop_busy: float
    """CPU of the event loop's thread; 1 is one core."""
    loop_late_s: float
    """Delay of a timer of the event loop."""
    gpu_busy: float | None
    """Mean utilisation of the GPUs, 0-1; None if it cannot be read."""
    quarantined: int = 0
    """Suspects in quarantine, for which the engine is kept free of other jobs."""
    silent_s: float = 0.0
    """Seconds for which the engine has had requests and given no sign of life."""


@dataclass(frozen=True, slots=True)
class Load:
    """Summary of a window of moments: shares of time and means.

    Means of the engine and the GPU cover only the moments in which the engine was fed, if there
    are any. The field names are labels of the metric ``dragoman_load``.
    """

    seconds: float
    """Length of the window."""
    empty: float
    """Share of the moments in which the engine had capacity and too few jobs were queued."""
    starved: float
    """Share of the moments in which the engine had capacity although enough jobs were queued."""
    queued: float
    in_flight: float
    storing: float
    stalled: float
    held: float
    items: float
    most_items: float
    """Highest value of `items`, which admission lowers while the engine is crowded."""
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
    silent_s: float = 0.0
    """As of the last moment; of several engines, the longest."""
    server_away: float = 0.0
    """Share of the moments in which the engine's server got no requests."""
    servers: float = 0.0
    """Servers that others run, in which the engine generates."""

    @property
    def seqs(self) -> float:
        """Sequences that may run at once: the lower of the engine's bound and `most_items`."""
        return min(self.max_num_seqs, self.most_items)


def bottleneck(load: Load) -> Cause:
    """Return the first limit that applies, from the queue towards the GPU.

    An engine that does not answer comes before all.
    """
    if load.server_away >= 0.5:
        return Cause.SERVER
    if load.silent_s >= SILENT_S:
        return Cause.NO_ANSWER
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
    no_capacity = full or load.tokens_hold_back >= 0.5
    if wasteful or (no_capacity and load.running < FED * load.seqs):
        return Cause.KV_CACHE
    if runs_all and load.seqs < load.full_batch:
        return Cause.SEQUENCES
    if load.gpu_busy is not None and load.gpu_busy < GPU_BUSY:
        return Cause.ENGINE_CPU
    return Cause.COMPUTE


def feed_limit(load: Load) -> Feed:
    """Return the slowest part of the path to the engine; meaningful if the cause is `FEED`."""
    if load.quarantined >= 1:
        return Feed.QUARANTINE
    if load.loop_busy >= LOOP_BUSY:
        return Feed.LOOP
    if load.stalled >= 1 or load.storing >= 0.5 * max(1.0, load.in_flight):
        return Feed.STORE
    return Feed.LOOP if load.loop_late_s >= LOOP_LATE_S else Feed.FETCH


class LoadWindow:
    """The most recent moments and their summary. Pure."""

    def __init__(
        self, limits: EngineLimits, *, most_items: int, every_s: float, seconds: float = 10.0
    ) -> None:
        """Keep the moments of `seconds`, one every `every_s`.

        `most_items` is the highest value that the bound on the permits can have.
        """
        self._limits = limits
        self._most_items = most_items
        self._every_s = every_s
        self._moments: deque[Moment] = deque(maxlen=max(1, round(seconds / every_s)))

    def add(self, moment: Moment) -> bool:
        """Add a moment; return whether the engine lacked work in it although jobs were queued."""
        self._moments.append(moment)
        return _starved_by(moment, self._limits.max_num_seqs) is Cause.FEED

    @property
    def is_filled(self) -> bool:
        """Whether a moment has been added."""
        return bool(self._moments)

    def load(self) -> Load:
        """Summarise the moments in the window; at least one must have been added."""
        moments, limits = list(self._moments), self._limits
        causes = [_starved_by(moment, limits.max_num_seqs) for moment in moments]
        fed = [moment for moment, cause in zip(moments, causes, strict=True) if cause is None]
        engine = [moment.engine for moment in fed or moments]
        busy = [moment.gpu_busy for moment in fed or moments if moment.gpu_busy is not None]
        seconds = len(moments) * self._every_s
        return Load(
            seconds=seconds,
            empty=causes.count(Cause.QUEUE_EMPTY) / len(causes),
            starved=causes.count(Cause.FEED) / len(causes),
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
            items_per_s=sum(moment.finished for moment in moments) / seconds,
            loop_busy=fmean(moment.loop_busy for moment in moments),
            loop_late_s=fmean(moment.loop_late_s for moment in moments),
            max_num_seqs=limits.max_num_seqs,
            kv_cache_tokens=limits.kv_cache_tokens,
            full_batch=limits.full_batch,
            devices=limits.devices,
            gpu_busy=fmean(busy) if busy else None,
            quarantined=fmean(moment.quarantined for moment in moments),
            silent_s=moments[-1].silent_s,
            server_away=fmean(bool(moment.engine.away) for moment in moments),
            servers=limits.servers,
        )


def _starved_by(moment: Moment, max_num_seqs: int) -> Cause | None:
    """Return why the engine lacks work, None if it does not."""
    inside = moment.engine.running + moment.engine.waiting
    bound = min(max_num_seqs, moment.items)
    if inside >= FED * bound or (moment.tokens_hold_back and inside >= HELD_FED * moment.held):
        return None
    # A short queue cannot fill the engine; but jobs that wait for a server should be in it.
    stuck = moment.no_broker or moment.stalled > inside
    return Cause.FEED if stuck or moment.queued > bound - inside else Cause.QUEUE_EMPTY


def together(loads: Sequence[Load]) -> Load:
    """Combine the loads of several engines: sum counts and rates, average shares and times.

    One engine that does not answer is shown for all.
    """
    added = {
        *("queued", "in_flight", "storing", "stalled", "held", "items", "most_items"),
        *("tokens", "running", "waiting"),
        *("preemptions_per_s", "items_per_s", "max_num_seqs", "kv_cache_tokens"),
        *("full_batch", "devices", "quarantined", "servers"),
    }
    values: dict[str, float | None] = {}
    for field in fields(Load):
        each = [value for load in loads if (value := getattr(load, field.name)) is not None]
        values[field.name] = (sum if field.name in added else fmean)(each) if each else None
    values["silent_s"] = max(load.silent_s for load in loads)
    return Load(**values)  # type: ignore[arg-type]  # only gpu_busy may be None, and is
