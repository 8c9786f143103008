"""Number of replicas per GPU, their GPUs, and the share of GPU memory that each may use.

Nothing here imports torch or vLLM: the supervisor decides before it starts its first replica.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.machine import (
    Group,
    Machine,
    gpu_groups,
    gpus_per_copy,
    gpus_per_engine,
    spans_hosts,
    this_machine,
)
from dragoman_worker.engines.model_size import USEFUL_KV_BYTES, ModelSize, model_size
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import EngineSettings

GPU_SHARE: Final = 0.9
"""Share of the GPU's memory for several replicas together. vLLM gives one engine 0.9 to 0.92."""
MEMORY: Final = "gpu_memory_utilization"
KV_BYTES: Final = "kv_cache_memory_bytes"
CORES_PER_ENGINE: Final = 1.25
"""Measured: four engines of a 0.6B model used 4.9 cores (docs/explanation/benchmarks-gpu.md)."""
_BY_SIZE: Final = ((1.0e9, 4), (2.5e9, 3), (3.5e9, 2))
"""Replicas by number of parameters: (less than, count).

Measured on H200s of several hosts: 0.6B gains up to 4 replicas, 1.7B up to 3, 8B nothing. With 4B
two do 209 to 225 jobs/s on every host, and one 225 to 242 where its core is fast, 146 to 215 where
it is slow: two divide the GPU's time and halve each other's batches.
Sizes between these are estimates (docs/explanation/benchmarks-gpu.md).
"""
_GIB: Final = 1024**3
_UNSIZED_OPTIONS: Final = (
    "cpu_offload_gb",
    "enable_lora",
    "hf_overrides",
    "num_gpu_blocks_override",
    "speculative_config",
)
"""Options that change an engine's memory in ways that its model's size does not show."""


@dataclass(frozen=True, slots=True)
class Share:
    """Number of replicas per GPU, or per group of GPUs, the reason, and the place of each.

    Where GPUs of unequal memory have different numbers, `count` is that of the first.
    """

    count: int
    reason: str
    places: tuple[Place, ...] = (Place(),)
    """One per replica, the GPUs in turn: the first replicas to start are on different ones."""


def share_out(engine: EngineSettings, machine: Callable[[], Machine]) -> Share:
    """Decide the number of replicas, their GPUs, and divide the memory of each GPU.

    `machine` is called only if the decision needs it. Raises SettingsError if the memory settings
    of all replicas together exceed the GPU, or if the GPUs do not fit the settings.
    """
    if engine.kind != "vllm":
        if engine.replicas == "auto":
            why = (
                "the echo engine uses no GPU" if engine.kind == "echo" else "the server translates"
            )
            return Share(1, f"auto: 1, because {why}")
        return Share(engine.replicas, _given(engine), (Place(),) * engine.replicas)
    found = machine()
    size = model_size(engine)
    groups, left_out = _fitting(engine, gpu_groups(engine, found), size)
    found = replace(found, cores=found.cores // len(groups))
    decided = [_decided(engine, found, size, group) for group in groups]
    places: list[Place] = []
    for turn in range(max(count for count, _ in decided)):
        for group, (count, _) in zip(groups, decided, strict=True):
            if turn < count:
                places.append(_place(engine, count, size, group, found))
    return Share(decided[0][0], _reason(groups, decided) + left_out, tuple(places))


def first_places(engine: EngineSettings, count: int) -> tuple[Place, ...]:
    """Return the places of `count` engines on the first GPU, or on the first group of GPUs.

    Commands that measure use them. Raises SettingsError.
    """
    places = share_out(engine.model_copy(update={"replicas": count}), this_machine).places
    return tuple(place for place in places if place.gpus == places[0].gpus)


def _given(engine: EngineSettings) -> str:
    return f"engine.replicas = {engine.replicas}"


def _reason(groups: Sequence[Group], decided: Sequence[tuple[int, str]]) -> str:
    """Return the reasons for the number on each GPU, one only where all have the same."""
    reasons = [reason for _, reason in decided]
    if len(set(reasons)) > 1:
        named = zip(groups, reasons, strict=True)
        return "; ".join(f"GPU {_names(group)}: {reason}" for group, reason in named)
    if len(groups) == 1:
        return reasons[0]
    kind = "GPUs" if len(groups[0]) == 1 else f"groups of {len(groups[0])} GPUs"
    return f"{reasons[0]}; on each of {len(groups)} {kind}"


def _names(group: Group) -> str:
    return ", ".join(gpu.name for gpu in group)


def _fitting(
    engine: EngineSettings, groups: list[Group], size: ModelSize | None
) -> tuple[list[Group], str]:
    """Return the groups whose memory holds the weights, and a text on those that are left out.

    Where no group does, all are returned: vLLM says what is missing.
    """
    if size is None or _is_unsized(engine):
        return groups, ""
    weights = size.weight_bytes / gpus_per_copy(engine)
    small = [group for group in groups if weights > GPU_SHARE * (_memory_of(group) or math.inf)]
    if not small or len(small) == len(groups):
        return groups, ""
    names = "; ".join(_names(group) for group in small)
    text = f"; left out, because the weights of {weights / _GIB:.1f} GiB do not fit: GPU {names}"
    return [group for group in groups if group not in small], text


def _memory_of(group: Group) -> int | None:
    """Return the memory of the group's smallest GPU, None if it is not known."""
    known = [gpu.memory_bytes for gpu in group if gpu.memory_bytes is not None]
    return min(known) if known and len(known) == len(group) else None


# --- how many -------------------------------------------------------------------------------------


def _decided(
    engine: EngineSettings, machine: Machine, size: ModelSize | None, group: Group
) -> tuple[int, str]:
    """Return the number of replicas on a group with `machine.cores`, and the reason."""
    count, reason = engine.replicas, _given(engine)
    if count == "auto":
        count, reason = _auto_count(engine, machine, size, _memory_of(group))
    _check_memory(engine, count, on_gpu=machine.on_gpu, gpu_bytes=_memory_of(group))
    return count, reason


def _auto_count(
    engine: EngineSettings, machine: Machine, size: ModelSize | None, gpu_bytes: int | None
) -> tuple[int, str]:
    if (reason := _only_one(engine, machine)) is not None:
        return 1, f"auto: 1, because {reason}"
    if size is None:
        local = Path(engine.model or "").expanduser().is_dir()
        why = "its config.json gives none" if local else "engine.model is not a local folder"
        return 1, f"auto: 1, because the model's size is unknown: {why}"
    billions = f"{size.parameters / 1e9:.2g}B"
    by_size = next((count for below, count in _BY_SIZE if size.parameters < below), 1)
    bounds = [(by_size, f"more engines with a {billions} model gain no throughput")]
    by_cores = max(1, int(machine.cores / CORES_PER_ENGINE))
    bounds.append((by_cores, f"there are {machine.cores} CPU cores per GPU"))
    if gpu_bytes is not None:
        fits = _by_memory(engine, size, gpu_bytes)
        bounds.append((fits, f"more would not fit the GPU's {gpu_bytes / _GIB:.0f} GiB"))
    count, reason = min(bounds, key=lambda bound: bound[0])
    if by_size == 1:
        reason = f"one engine with a {billions} model uses the whole GPU"
    return count, f"auto: {count}, because {reason}"


def _only_one(engine: EngineSettings, machine: Machine) -> str | None:
    if not machine.on_gpu:
        return "there is no GPU; on CPUs several engines only compete for the cores"
    if gpus_per_engine(engine) > 1:
        return f"an engine is spread over {gpus_per_engine(engine)} GPUs"
    if spans_hosts(engine):
        return "vLLM places the engine itself"
    return None


def _by_memory(engine: EngineSettings, size: ModelSize, gpu_bytes: int) -> int:
    if (share := _option(engine, MEMORY)) is not None:
        return max(1, int(1 / share))
    kv_bytes = _option(engine, KV_BYTES) or size.least_kv_bytes(engine)
    each = size.weight_bytes + kv_bytes + size.overhead_bytes(engine, gpu_bytes)
    count = int(GPU_SHARE * gpu_bytes / each)
    while count > 1 and _rounded_down(GPU_SHARE / count) * gpu_bytes < each:
        count -= 1
    return max(1, count)


# --- how much memory ------------------------------------------------------------------------------


def _place(
    engine: EngineSettings, count: int, size: ModelSize | None, group: Group, machine: Machine
) -> Place:
    """Return the place of each of `count` replicas on these GPUs."""
    alone = len(machine.gpus) == 1 and machine.gpus[0].is_slice
    # vLLM looks up the GPUs that it is given by number, which a slice does not have.
    place = Place(() if alone else tuple(gpu.name for gpu in group))
    if count == 1 or not machine.on_gpu:
        return place
    given = engine.options.get(MEMORY) is not None
    options = {} if given else {MEMORY: _rounded_down(GPU_SHARE / count)}
    if engine.options.get(KV_BYTES) is None:
        kv_bytes = _kv_bytes(engine, count, size, _memory_of(group))
        if kv_bytes is None:
            place = replace(place, measures_memory=True)
        else:
            options[KV_BYTES] = kv_bytes
    return replace(place, settings={f"engine.options.{k}": v for k, v in options.items()})


def _kv_bytes(
    engine: EngineSettings, count: int, size: ModelSize | None, gpu_bytes: int | None
) -> int | None:
    """Return the KV cache of one engine in bytes, None if the engine must measure it.

    With a size in bytes vLLM does not measure free memory, in which it would count what engines
    that start beside it take. None too where the estimate leaves less than a useful cache.
    """
    if size is None or not size.shaped or gpu_bytes is None or _is_unsized(engine):
        return None
    share = (_option(engine, MEMORY) or GPU_SHARE / count) * gpu_bytes
    weights = size.weight_bytes / gpus_per_copy(engine)
    left = int(share - weights - size.overhead_bytes(engine, gpu_bytes))
    return left if left >= USEFUL_KV_BYTES else None


def _is_unsized(engine: EngineSettings) -> bool:
    return any(engine.options.get(name) for name in _UNSIZED_OPTIONS)


def _rounded_down(share: float) -> float:
    """Return the share with three decimals; rounded up, all together would exceed the whole."""
    return math.floor(share * 1000) / 1000


def _option(engine: EngineSettings, name: str) -> float | None:
    value = engine.options.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise SettingsError(f"engine.options.{name}: give a number above 0, not {value!r}")
    return float(value)


def _check_memory(
    engine: EngineSettings, count: int, *, on_gpu: bool, gpu_bytes: int | None
) -> None:
    share, kv_bytes = _option(engine, MEMORY), _option(engine, KV_BYTES)
    if share is not None and count * share > 1 and on_gpu:
        raise SettingsError(
            f"engine.options.{MEMORY}: {share:g} is for each of engine.replicas = {count}, "
            f"{count * share:.2f} of the GPU together; give at most {1 / count:.2f}, or leave it "
            f"out and each gets {GPU_SHARE / count:.2f}"
        )
    if kv_bytes is not None and gpu_bytes and count * kv_bytes > gpu_bytes:
        raise SettingsError(
            f"engine.options.{KV_BYTES}: {kv_bytes:.0f} bytes for each of engine.replicas = "
            f"{count} are more than the GPU's {gpu_bytes} bytes; give less"
        )
