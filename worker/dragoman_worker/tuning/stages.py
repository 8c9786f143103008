"""Stages after the sweep: settings tried one at a time, and the rule for taking them.

Each point of a stage has engines of its own under the worker's admission, and is compared with the
sweep's choice measured in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman_worker.engines.machine import this_machine
from dragoman_worker.engines.sizing import KV_BYTES, MEMORY, share_out
from dragoman_worker.settings import EngineSettings
from dragoman_worker.tuning.measure.harness import Harness, OutOfBudget, Point
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.results import Row, unusable

TAKE: Final = 0.03
"""Minimum gain in tokens/s to take a setting; two starts of one engine differ by less."""
P99_WORSE: Final = 0.10
_KV_FULL: Final = 0.95
_UTILISATION: Final = 0.95
_MOST_REPLICAS: Final = 4
AFTER_SWEEP: Final = ("batched_tokens", "memory", "fp8", "replicas")
"""Order of the stages: replicas come last and run with all that was taken for one engine."""
STAGES: Final = (*AFTER_SWEEP, "verify")
ALLOWED: Final = ("replicas", "fp8")
TAKING: Final = (
    f"Another setting is taken if it writes at least {TAKE:.0%} more output tokens/s than the "
    f"chosen sequences in an engine of their own, and p99 does not grow by more than "
    f"{P99_WORSE:.0%}."
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of a stage: options to set (empty: no change), number of engines, reason."""

    stage: str
    why: str
    options: Mapping[str, Any] = field(default_factory=dict)
    replicas: int | None = None
    rows: Sequence[Row] = ()
    taken: Row | None = None
    """The row of `options`."""
    complete: bool = True
    """False if the stage was left out for lack of time."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a stage is compared with, and what it may try."""

    engine: EngineSettings
    sequences: int
    row: Row
    """The sweep's choice or what an earlier stage took; for `run_stage` measured like its points.

    Until a stage measures, it is the sweep's own row, which is enough for `obstacle`.
    """
    allow: frozenset[str]
    named: frozenset[str]
    """Members of `allow` that the user named."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The chosen `max_num_seqs`, and what earlier stages took."""
    reserve_s: float = 0.0

    @property
    def on_gpu(self) -> bool:
        """Whether the engine runs on GPUs."""
        return bool(self.row["limits"].get("devices"))


Stage = Callable[[Harness, Baseline], Awaitable[Decision]]


def obstacle(name: str, base: Baseline) -> str | None:
    """Return why one of `AFTER_SWEEP` is left out, None if it is to be run."""
    return _OBSTACLES[name](base)


async def run_stage(name: str, harness: Harness, base: Baseline) -> Decision:
    """Run one of `AFTER_SWEEP`; a lack of time becomes a decision as well."""
    try:
        return await _BY_NAME[name](harness, base)
    except OutOfBudget as error:
        return Decision(name, f"left out: {error}", complete=False)


def better(rows: Sequence[Row], base: Row) -> Row | None:
    """Return the best of the rows if it is taken in place of `base`, otherwise None."""
    good = [row for row in rows if unusable(row) is None and _gains(row, base)]
    return max(good, key=lambda row: row["output_tokens_per_s"], default=None)


def _gains(row: Row, base: Row) -> bool:
    enough = row["output_tokens_per_s"] >= (1 + TAKE) * base["output_tokens_per_s"]
    return enough and _p99(row) <= (1 + P99_WORSE) * _p99(base)


def _batched_tokens_obstacle(base: Baseline) -> str | None:
    return "the echo engine has no steps" if base.engine.kind == "echo" else None


async def _batched_tokens(harness: Harness, base: Baseline) -> Decision:
    now = base.row["limits"]["max_num_batched_tokens"]
    tried = [tokens for tokens in (now // 2, now * 2) if tokens >= max(base.sequences, 256)]
    points = [
        _point("batched_tokens", {**base.options, "max_num_batched_tokens": tokens})
        for tokens in tried
    ]
    rows = await _measured(harness, base, points)
    taken = better(rows, base.row)
    if taken is None:
        why = f"{now} stays: {_compared(rows, base.row, 'max_num_batched_tokens')}"
        return Decision("batched_tokens", why, rows=rows)
    tokens = taken["options"]["max_num_batched_tokens"]
    why = f"{tokens}: {_compared(rows, base.row, 'max_num_batched_tokens')}"
    options = {"max_num_batched_tokens": tokens}
    return Decision("batched_tokens", why, options, rows=rows, taken=taken)


def _memory_obstacle(base: Baseline) -> str | None:
    if not base.on_gpu:
        return "the engine uses no GPU"
    if base.engine.options.get(KV_BYTES):
        return f"engine.options.{KV_BYTES} sets the size"
    if share_out(base.engine, this_machine).count > 1:
        return "the engines of engine.replicas share the GPU's memory"
    used, preempted = base.row["kv_usage_max"] or 0.0, base.row["preemptions"]
    if used < _KV_FULL and not preempted:
        return (
            f"at most {used:.0%} of the KV cache was used and nothing was preempted, so more would "
            "not help"
        )
    share = base.engine.options.get(MEMORY) or 0.0
    return f"{share:g} of the GPU is the safe maximum" if share >= _UTILISATION else None


async def _memory(harness: Harness, base: Baseline) -> Decision:
    more = {MEMORY: _UTILISATION}
    rows = await _measured(harness, base, [_point("memory", {**base.options, **more})])
    comparison = _compared(rows, base.row, MEMORY)
    if (taken := better(rows, base.row)) is None:
        given = base.engine.options.get(MEMORY)
        now = "vLLM's default" if given is None else f"{given:g}"
        return Decision("memory", f"{now} stays: {comparison}", rows=rows)
    return Decision("memory", f"{_UTILISATION}: {comparison}", more, rows=rows, taken=taken)


def _replicas_obstacle(base: Baseline) -> str | None:
    if "replicas" not in base.allow:
        return "not allowed (--allow replicas)"
    most, why = _most_replicas(base)
    return f"{why} (--allow replicas tries it anyway)" if most == 1 else None


def _most_replicas(base: Baseline) -> tuple[int, str]:
    """Return the largest number of engines to try, and the reason."""
    if "replicas" in base.named:
        return _MOST_REPLICAS, "--allow names it"
    options = {**base.engine.options, **base.options}
    auto = base.engine.model_copy(update={"replicas": "auto", "options": options})
    share = share_out(auto, this_machine)
    return share.count, share.reason.partition("because ")[2]


async def _replicas(harness: Harness, base: Baseline) -> Decision:
    most, _ = _most_replicas(base)
    # A memory share that was taken is that of one engine alone: the places divide the GPU.
    options = {name: value for name, value in base.options.items() if name != MEMORY}
    points = []
    for count in range(2, most + 1):
        # 1.5 times the equal share: each engine gets a different mixture of lengths.
        each = min(8 * math.ceil(1.5 * base.sequences / count / 8), base.sequences)
        points.append(_point("replicas", {**options, "max_num_seqs": each}, engines=count))
    rows = await _measured(harness, base, points)
    taken = better(rows, base.row)
    comparison = _compared(rows, base.row, None)
    if taken is None:
        return Decision("replicas", f"1: {comparison}", replicas=1, rows=rows)
    each, count = taken["options"]["max_num_seqs"], taken["replicas"]
    options = {"max_num_seqs": each}
    return Decision("replicas", f"{count}: {comparison}", options, count, rows, taken)


def _fp8_obstacle(base: Baseline) -> str | None:
    if "fp8" not in base.allow:
        return "it changes translations slightly (--allow fp8)"
    if not base.on_gpu:
        return "the engine uses no GPU"
    given = base.engine.options.get("quantization")
    return "the settings give a quantization" if given else None


async def _fp8(harness: Harness, base: Baseline) -> Decision:
    fp8 = {"quantization": "fp8"}
    rows = await _measured(harness, base, [_point("fp8", {**base.options, **fp8})])
    comparison = _compared(rows, base.row, "quantization")
    if (taken := better(rows, base.row)) is None:
        return Decision("fp8", f"not taken: {comparison}", rows=rows)
    why = f"taken: {comparison}; check some translations"
    return Decision("fp8", why, fp8, rows=rows, taken=taken)


def _point(stage: str, options: Mapping[str, Any], *, engines: int = 1) -> Point:
    return Point(stage, Drive(), options, engines=engines)


async def _measured(harness: Harness, base: Baseline, points: Sequence[Point]) -> list[Row]:
    """Measure all points. Raises OutOfBudget: the best of some may not be the best of all."""
    return [await harness.measure(point, reserve_s=base.reserve_s) for point in points]


def _compared(rows: Sequence[Row], base: Row, option: str | None) -> str:
    parts = []
    for row in rows:
        name = f"{row['replicas']} engines" if option is None else f"{row['options'][option]}"
        if (why := unusable(row)) is not None:
            what = "was refused" if "refused" in row else "was not measured"
            parts.append(f"{name} {what} ({why})")
            continue
        gain = row["output_tokens_per_s"] / max(1e-9, base["output_tokens_per_s"]) - 1
        slower = _p99(row) / max(1e-9, _p99(base)) - 1
        parts.append(f"{name} changes tokens/s by {gain:+.1%} and p99 by {slower:+.0%}")
    return "; ".join(parts) or "there is nothing to try"


def _p99(row: Row) -> float:
    return float((row["latency_ms"] or {}).get("p99", 0.0))


_OBSTACLES: Final[Mapping[str, Callable[[Baseline], str | None]]] = {
    "batched_tokens": _batched_tokens_obstacle,
    "memory": _memory_obstacle,
    "replicas": _replicas_obstacle,
    "fp8": _fp8_obstacle,
}
_BY_NAME: Final[Mapping[str, Stage]] = {
    "batched_tokens": _batched_tokens,
    "memory": _memory,
    "replicas": _replicas,
    "fp8": _fp8,
}
