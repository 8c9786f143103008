"""Number of replicas per GPU, their GPUs, and the share of GPU memory that each may use.

Nothing here imports torch or vLLM: the supervisor decides before it starts its first replica.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.machine import (
    Group,
    Machine,
    gpu_groups,
    gpus_per_engine,
    this_machine,
)
from dragoman_worker.engines.model_size import ModelSize, model_size
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import EngineSettings

GPU_SHARE: Final = 0.9
"""Share of the GPU's memory for all replicas together: vLLM's own default for one engine."""
MEMORY: Final = "gpu_memory_utilization"
KV_BYTES: Final = "kv_cache_memory_bytes"
CORES_PER_ENGINE: Final = 1.25
"""Measured: four engines of a 0.6B model used 4.9 cores (docs/explanation/benchmarks.md)."""
_BY_SIZE: Final = ((1.0e9, 4), (2.5e9, 3), (4.5e9, 2))
"""Replicas by number of parameters: (less than, count).

Measured on one H200: 0.6B gains up to 4 replicas, 1.7B up to 3, 8B nothing. With 4B two keep the
GPU busy for 95 % of the time on a host on which one does for 72 %. Sizes between these are
estimates.
"""
_GIB: Final = 1024**3
_MIN_KV_BYTES: Final = 4 * _GIB
"""With a smaller KV cache a replica runs too few sequences to be worth its memory."""
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
    """Number of replicas per GPU, or per group of GPUs, the reason, and the place of each."""

    count: int
    reason: str
    places: tuple[Place, ...] = (Place(),)
    """One per replica, the GPUs in turn: the first replicas to start are on different ones."""


def share_out(engine: EngineSettings, machine: Callable[[], Machine]) -> Share:
    """Decide the number of replicas, their GPUs, and divide the memory of each GPU.

    `machine` is called only if the decision needs it. Raises SettingsError if the memory settings
    of all replicas together exceed the GPU, or if the GPUs do not fit the settings.
    """
    if engine.kind == "echo":
        if engine.replicas == "auto":
            return Share(1, "auto: 1, because the echo engine uses no GPU")
        return Share(engine.replicas, _given(engine), (Place(),) * engine.replicas)
    found = machine()
    groups = gpu_groups(engine, found)
    least = min(groups, key=lambda group: _memory_of(group) or 0)
    size = model_size(engine)
    count, reason = engine.replicas, _given(engine)
    if count == "auto":
        cores = found.cores // len(groups)
        count, reason = _auto_count(engine, replace(found, cores=cores), size, _memory_of(least))
    _check_memory(engine, count, on_gpu=found.on_gpu, gpu_bytes=_memory_of(least))
    if len(groups) > 1:
        reason += f"; on each of {len(groups)} {_group_name(groups[0])}"
    places = [_place(engine, count, size, group, found) for group in groups]
    return Share(count, reason, tuple(places * count))


def first_places(engine: EngineSettings, count: int) -> tuple[Place, ...]:
    """Return the places of `count` engines on the first GPU, or on the first group of GPUs.

    Commands that measure use them. Raises SettingsError.
    """
    places = share_out(engine.model_copy(update={"replicas": count}), this_machine).places
    return tuple(place for place in places if place.gpus == places[0].gpus)


def _given(engine: EngineSettings) -> str:
    return f"engine.replicas = {engine.replicas}"


def _group_name(group: Group) -> str:
    return "GPUs" if len(group) == 1 else f"groups of {len(group)} GPUs"


def _memory_of(group: Group) -> int | None:
    """Return the memory of the group's smallest GPU, None if it is not known."""
    known = [gpu.memory_bytes for gpu in group if gpu.memory_bytes is not None]
    return min(known) if known and len(known) == len(group) else None


# --- how many -------------------------------------------------------------------------------------


def _auto_count(
    engine: EngineSettings, machine: Machine, size: ModelSize | None, gpu_bytes: int | None
) -> tuple[int, str]:
    """Return the number of replicas for `auto` on a GPU with `machine.cores`, and the reason."""
    if (reason := _only_one(engine, machine)) is not None:
        return 1, f"auto: 1, because {reason}"
    if size is None:
        return 1, "auto: 1, because the model's size is unknown: engine.model is not a local folder"
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
    return None


def _by_memory(engine: EngineSettings, size: ModelSize, gpu_bytes: int) -> int:
    if (share := _option(engine, MEMORY)) is not None:
        return max(1, int(1 / share))
    kv_bytes = _option(engine, KV_BYTES) or _MIN_KV_BYTES
    each = size.weight_bytes + kv_bytes + size.overhead_bytes(engine, gpu_bytes)
    return max(1, int(GPU_SHARE * gpu_bytes / each))


# --- how much memory ------------------------------------------------------------------------------


def _place(
    engine: EngineSettings, count: int, size: ModelSize | None, group: Group, machine: Machine
) -> Place:
    """Return the place of each of `count` replicas on these GPUs."""
    place = Place(tuple(gpu.name for gpu in group))
    if count == 1 or not machine.on_gpu:
        return place
    options = {} if MEMORY in engine.options else {MEMORY: _rounded_down(GPU_SHARE / count)}
    if KV_BYTES not in engine.options:
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
    unsized = any(engine.options.get(name) for name in _UNSIZED_OPTIONS)
    if size is None or gpu_bytes is None or unsized:
        return None
    share = (_option(engine, MEMORY) or GPU_SHARE / count) * gpu_bytes
    weights = size.weight_bytes / gpus_per_engine(engine)
    left = int(share - weights - size.overhead_bytes(engine, gpu_bytes))
    return left if left >= _MIN_KV_BYTES else None


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
