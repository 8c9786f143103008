"""What is tried after the sequences, one thing at a time, and when is it taken?

Each stage starts engines of its own; what it finds is judged against the sweep's chosen point.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman_worker.engines.sizing import GPU_SHARE, KV_BYTES, MEMORY, share_out, this_machine
from dragoman_worker.settings import EngineSettings
from dragoman_worker.tuning.measure.harness import Harness, OutOfBudget, Point
from dragoman_worker.tuning.measure.load_generator import Drive
from dragoman_worker.tuning.measure.results import Row

TAKE: Final = 0.03
"""So many more tokens/s, or it is not taken: two starts of one engine differ by less."""
P99_WORSE: Final = 0.10
_KV_FULL: Final = 0.95
_UTILISATION: Final = 0.95
_MOST_REPLICAS: Final = 4
AFTER_SWEEP: Final = ("batched_tokens", "memory", "fp8", "replicas")
"""In this order: replicas run with whatever was taken for one engine."""
STAGES: Final = (*AFTER_SWEEP, "verify")
ALLOWED: Final = ("replicas", "fp8")
TAKING: Final = (
    f"Another setting is taken if it writes at least {TAKE:.0%} more output tokens/s than the "
    f"chosen point and p99 does not grow by more than {P99_WORSE:.0%}."
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a stage found: options to set (none if nothing is to change), engines, and why."""

    stage: str
    why: str
    options: Mapping[str, Any] = field(default_factory=dict)
    replicas: int | None = None
    rows: Sequence[Row] = ()
    complete: bool = True
    """False if there was no time for it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the stages start from: the sweep's chosen point and its row."""

    engine: EngineSettings
    sequences: int
    row: Row
    allow: frozenset[str]
    named: frozenset[str]
    """Those of `allow` that a person asked for by name."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What earlier stages took."""
    reserve_s: float = 0.0

    @property
    def on_gpu(self) -> bool:
        """Whether the engine computes on a device of its own."""
        return bool(self.row["limits"].get("devices"))


Stage = Callable[[Harness, Given], Awaitable[Decision]]


async def run_stage(name: str, harness: Harness, given: Given) -> Decision:
    """One of `STAGES` after the sweep; out of budget is a decision too."""
    try:
        return await _BY_NAME[name](harness, given)
    except OutOfBudget as error:
        return Decision(name, f"left out: {error}", complete=False)


def better(rows: Sequence[Row], base: Row) -> Row | None:
    """The best of the rows, if it is to be taken in place of `base`."""
    good = [row for row in rows if "refused" not in row]
    if not good:
        return None
    best = max(good, key=lambda row: row["output_tokens_per_s"])
    enough = best["output_tokens_per_s"] >= (1 + TAKE) * base["output_tokens_per_s"]
    slower = _p99(best) > (1 + P99_WORSE) * _p99(base)
    return best if enough and not slower else None


async def _batched_tokens(harness: Harness, given: Given) -> Decision:
    if given.engine.kind == "echo":
        return Decision("batched_tokens", "left out: the echo engine has no steps")
    now = given.row["limits"]["max_num_batched_tokens"]
    tried = [tokens for tokens in (now // 2, now * 2) if tokens >= max(given.sequences, 256)]
    points = [
        _point("batched_tokens", given, {**given.options, "max_num_batched_tokens": tokens})
        for tokens in tried
    ]
    rows = await _measured(harness, given, points)
    taken = better(rows, given.row)
    if taken is None:
        why = f"{now} stays: {_compared(rows, given.row, 'max_num_batched_tokens')}"
        return Decision("batched_tokens", why, rows=rows)
    tokens = taken["options"]["max_num_batched_tokens"]
    why = f"{tokens}: {_compared(rows, given.row, 'max_num_batched_tokens')}"
    return Decision("batched_tokens", why, {"max_num_batched_tokens": tokens}, rows=rows)


def _no_more_memory(given: Given) -> str | None:
    """Why more of it is not tried."""
    if not given.on_gpu:
        return "the engine has no GPU of its own"
    if given.engine.options.get(KV_BYTES):
        return f"engine.options.{KV_BYTES} says how much"
    if given.engine.replicas != 1:
        return "the engines of engine.replicas share the GPU's memory"
    used, preempted = given.row["kv_usage_max"] or 0.0, given.row["preemptions"]
    if used < _KV_FULL and not preempted:
        return (
            f"at most {used:.0%} of the KV cache was used and nothing was preempted, so more would "
            "not help"
        )
    share = _share(given)
    return f"{share:g} of the GPU is the most that is safe" if share >= _UTILISATION else None


def _share(given: Given) -> float:
    return float(given.engine.options.get(MEMORY, GPU_SHARE))


async def _memory(harness: Harness, given: Given) -> Decision:
    if (why := _no_more_memory(given)) is not None:
        return Decision("memory", f"left out: {why}")
    more = {MEMORY: _UTILISATION}
    rows = await _measured(harness, given, [_point("memory", given, {**given.options, **more})])
    said = _compared(rows, given.row, MEMORY)
    if better(rows, given.row) is None:
        return Decision("memory", f"{_share(given):g} stays: {said}", rows=rows)
    return Decision("memory", f"{_UTILISATION}: {said}", more, rows=rows)


async def _replicas(harness: Harness, given: Given) -> Decision:
    if "replicas" not in given.allow:
        return Decision("replicas", "left out: not allowed (--allow replicas)")
    most, why = _MOST_REPLICAS, ""
    if "replicas" not in given.named:
        auto = given.engine.model_copy(
            update={"replicas": "auto", "options": {**given.engine.options, **given.options}}
        )
        share = share_out(auto, this_machine)
        most, why = share.count, share.reason.partition("because ")[2]
    if most == 1:
        why = f"left out: {why} (--allow replicas tries it all the same)"
        return Decision("replicas", why)
    options = dict(given.options)
    if given.on_gpu and MEMORY not in given.engine.options:
        options[MEMORY] = round(GPU_SHARE / most, 3)
    points = []
    for count in range(2, most + 1):
        # A little more than their share: each engine meets its own mixture of lengths.
        each = max(1, 8 * math.ceil(1.5 * given.sequences / count / 8))
        drive = Drive(items=min(each, given.row["limits"]["max_num_seqs"]))
        points.append(Point("replicas", drive, options, engines=count, of=most))
    rows = await _measured(harness, given, points)
    taken = better(rows, given.row)
    said = _compared(rows, given.row, None)
    if taken is None:
        return Decision("replicas", f"1: {said}", replicas=1, rows=rows)
    each = taken["drive"]["items"]
    count = taken["replicas"]
    return Decision("replicas", f"{count}: {said}", {"max_num_seqs": each}, count, rows)


async def _fp8(harness: Harness, given: Given) -> Decision:
    if "fp8" not in given.allow:
        return Decision("fp8", "left out: it changes translations a little (--allow fp8)")
    if not given.on_gpu:
        return Decision("fp8", "left out: the engine has no GPU of its own")
    if given.engine.options.get("quantization"):
        return Decision("fp8", "left out: the settings name a quantization")
    fp8 = {"quantization": "fp8"}
    rows = await _measured(harness, given, [_point("fp8", given, {**given.options, **fp8})])
    said = _compared(rows, given.row, "quantization")
    if better(rows, given.row) is None:
        return Decision("fp8", f"not taken: {said}", rows=rows)
    return Decision("fp8", f"taken: {said}; look at some translations", fp8, rows=rows)


def _point(stage: str, given: Given, options: Mapping[str, Any]) -> Point:
    return Point(stage, Drive(items=given.sequences), options)


async def _measured(harness: Harness, given: Given, points: Sequence[Point]) -> list[Row]:
    """As many of them as there is time for. Raises OutOfBudget if there is none for the first."""
    rows: list[Row] = []
    for point in points:
        try:
            rows.append(await harness.measure(point, reserve_s=given.reserve_s))
        except OutOfBudget:
            if not rows:
                raise
            break
    return rows


def _compared(rows: Sequence[Row], base: Row, option: str | None) -> str:
    said = []
    for row in rows:
        name = f"{row['replicas']} engines" if option is None else f"{row['options'][option]}"
        if "refused" in row:
            said.append(f"{name} was refused ({row['refused']})")
            continue
        gain = row["output_tokens_per_s"] / max(1e-9, base["output_tokens_per_s"]) - 1
        slower = _p99(row) / max(1e-9, _p99(base)) - 1
        said.append(f"{name} changes tokens/s by {gain:+.1%} and p99 by {slower:+.0%}")
    return "; ".join(said) or "there is nothing to try"


def _p99(row: Row) -> float:
    return float((row["latency_ms"] or {}).get("p99", 0.0))


_BY_NAME: Final[Mapping[str, Stage]] = {
    "batched_tokens": _batched_tokens,
    "memory": _memory,
    "replicas": _replicas,
    "fp8": _fp8,
}
