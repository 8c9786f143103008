"""Number of replicas on this machine's GPU and the share of GPU memory that each may use.

Nothing here imports torch or vLLM: the supervisor decides before it starts its first replica.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.gpu import Gpus
from dragoman_worker.settings import EngineSettings

GPU_SHARE: Final = 0.9
"""Share of the GPU's memory for all replicas together: vLLM's own default for one engine."""
MEMORY: Final = "gpu_memory_utilization"
KV_BYTES: Final = "kv_cache_memory_bytes"
CORES_PER_ENGINE: Final = 1.25
"""Measured: four engines of a 0.6B model used 4.9 cores (docs/explanation/benchmarks.md)."""
_BY_SIZE: Final = ((1.0e9, 4), (2.5e9, 3), (4.0e9, 2))
"""Replicas by number of parameters: (less than, count).

Measured on one H200: 0.6B gains up to 4 replicas, 1.7B up to 3, 8B nothing. Sizes between these
are estimates.
"""
_GIB: Final = 1024**3
_MIN_KV_BYTES: Final = 4 * _GIB
"""With a smaller KV cache a replica runs too few sequences to be worth its memory."""
_OVERHEAD_BYTES: Final = 2 * _GIB
"""Memory of one engine for the CUDA context, CUDA graphs and activations."""
_MULTI_GPU_OPTIONS: Final = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Machine:
    """Hardware that the replicas share; `gpu_bytes` is None without a GPU that NVML can read."""

    gpu: bool
    gpu_bytes: int | None
    cores: int


@dataclass(frozen=True, slots=True)
class Share:
    """Number of replicas, the reason for it, and extra settings for each replica's engine."""

    count: int
    reason: str
    options: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Size of a model: parameters from its config, bytes from its weight files if there are any."""

    parameters: float
    weight_bytes: float


def share_out(engine: EngineSettings, machine: Callable[[], Machine]) -> Share:
    """Decide the number of replicas and divide the GPU's memory among them.

    `machine` is called only if the decision needs it. Raises SettingsError if the memory settings
    of all replicas together exceed the GPU.
    """
    if engine.replicas == 1:
        return Share(1, "engine.replicas = 1")
    found = machine()
    count, reason = engine.replicas, f"engine.replicas = {engine.replicas}"
    if count == "auto":
        count, reason = _auto_count(engine, found)
    _check_memory(engine, count, found)
    given = MEMORY in engine.options
    if count == 1 or given or engine.kind != "vllm" or not found.gpu:
        return Share(count, reason)
    return Share(count, reason, {f"engine.options.{MEMORY}": round(GPU_SHARE / count, 3)})


def _auto_count(engine: EngineSettings, machine: Machine) -> tuple[int, str]:
    """Return the number of replicas for `auto`, and the reason."""
    if (reason := _only_one(engine, machine)) is not None:
        return 1, f"auto: 1, because {reason}"
    size = model_size(engine)
    if size is None:
        return 1, "auto: 1, because the model's size is unknown: engine.model is not a local folder"
    billions = f"{size.parameters / 1e9:.2g}B"
    by_size = next((count for below, count in _BY_SIZE if size.parameters < below), 1)
    bounds = [(by_size, f"more engines with a {billions} model gain no throughput")]
    bounds.append((_by_cores(machine.cores), f"there are {machine.cores} CPU cores"))
    if machine.gpu_bytes is not None:
        fits = _by_memory(engine, size, machine.gpu_bytes)
        bounds.append((fits, f"more would not fit the GPU's {machine.gpu_bytes / _GIB:.0f} GiB"))
    count, reason = min(bounds, key=lambda bound: bound[0])
    if by_size == 1:
        reason = f"one engine with a {billions} model uses the whole GPU"
    return count, f"auto: {count}, because {reason}"


def _only_one(engine: EngineSettings, machine: Machine) -> str | None:
    if engine.kind == "echo":
        return "the echo engine uses no GPU"
    if not machine.gpu:
        return "there is no GPU; on CPUs several engines only compete for the cores"
    for name in _MULTI_GPU_OPTIONS:
        if engine.options.get(name, 1) != 1:
            return f"engine.options.{name} spreads the model over several GPUs"
    return None


def _by_cores(cores: int) -> int:
    return max(1, int(cores / CORES_PER_ENGINE))


def _by_memory(engine: EngineSettings, size: ModelSize, gpu_bytes: int) -> int:
    if (share := _option(engine, MEMORY)) is not None:
        return max(1, int(1 / share))
    kv_bytes = _option(engine, KV_BYTES) or _MIN_KV_BYTES
    each = size.weight_bytes + kv_bytes + _OVERHEAD_BYTES
    return max(1, int(GPU_SHARE * gpu_bytes / each))


def _option(engine: EngineSettings, name: str) -> float | None:
    value = engine.options.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise SettingsError(f"engine.options.{name}: give a number above 0, not {value!r}")
    return float(value)


def _check_memory(engine: EngineSettings, count: int, machine: Machine) -> None:
    share, kv_bytes = _option(engine, MEMORY), _option(engine, KV_BYTES)
    if share is not None and count * share > 1 and machine.gpu:
        raise SettingsError(
            f"engine.options.{MEMORY}: {share:g} is for each of engine.replicas = {count}, "
            f"{count * share:.2f} of the GPU together; give at most {1 / count:.2f}, or leave it "
            f"out and each gets {GPU_SHARE / count:.2f}"
        )
    if kv_bytes is not None and machine.gpu_bytes and count * kv_bytes > machine.gpu_bytes:
        raise SettingsError(
            f"engine.options.{KV_BYTES}: {kv_bytes:.0f} bytes for each of engine.replicas = "
            f"{count} are more than the GPU's {machine.gpu_bytes} bytes; give less"
        )


# --- the model ------------------------------------------------------------------------------------


def model_size(engine: EngineSettings) -> ModelSize | None:
    """Return the size of `engine.model`, None if it is no local folder with a usable config."""
    folder = Path(engine.model or "").expanduser()
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = {**config, **config.get("text_config", {})}
        parameters = _parameters(config)
        on_disk = sum(file.stat().st_size for file in _weight_files(folder))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    parameter_bytes = 4 if config.get("torch_dtype", config.get("dtype")) == "float32" else 2
    in_memory = float(on_disk or parameters * parameter_bytes)
    if str(engine.options.get("quantization", "")).startswith("fp8") and _is_plain(config):
        in_memory /= 2
    return ModelSize(parameters, in_memory)


def _weight_files(folder: Path) -> list[Path]:
    """Return the files to count: Mistral's folders hold all weights again as `consolidated*`."""
    files = [*folder.glob("*.safetensors")]
    return [file for file in files if not file.name.startswith("consolidated")] or files


def _is_plain(config: Mapping[str, Any]) -> bool:
    return not config.get("quantization_config")


def _parameters(config: Mapping[str, Any]) -> float:
    """Estimate a decoder's parameters: embeddings, attention, feed-forward of all experts."""
    width, layers = config["hidden_size"], config["num_hidden_layers"]
    heads = config["num_attention_heads"]
    head = config.get("head_dim") or width // heads
    key_values = config.get("num_key_value_heads") or heads
    attention = 2 * width * head * (heads + key_values)
    experts = config.get("num_experts") or config.get("num_local_experts") or 1
    inner = config.get("moe_intermediate_size") if experts > 1 else None
    forward = 3 * width * (inner or config["intermediate_size"]) * experts
    tables = 1 if config.get("tie_word_embeddings") else 2
    return float(tables * config["vocab_size"] * width + layers * (attention + forward))


# --- the machine ----------------------------------------------------------------------------------


def this_machine() -> Machine:
    """Return this machine's hardware, by NVML and device files. Imports no torch."""
    gpu_bytes = _nvidia_bytes()
    devices = ("/dev/nvidiactl", "/dev/kfd")
    gpu = gpu_bytes is not None or any(Path(device).exists() for device in devices)
    return Machine(gpu, gpu_bytes, len(os.sched_getaffinity(0)))


def _nvidia_bytes() -> int | None:
    """Return the memory of the GPU that CUDA lists first, None if NVML cannot read it."""
    gpus = Gpus(1)
    try:
        found = gpus.read() if gpus.open() else []
    finally:
        gpus.close()
    return found[0].memory_total if found else None
