"""How many engines share this machine's GPU, and what is each of them given?

Nothing here imports torch or vLLM: the supervisor asks before it starts its first replica.
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
"""Of the GPU's memory, for all replicas together: vLLM's own default for one."""
MEMORY: Final = "gpu_memory_utilization"
KV_BYTES: Final = "kv_cache_memory_bytes"
CORES_AN_ENGINE: Final = 1.25
"""Four engines of a 0.6B model kept 4.9 cores busy (docs/benchmarks.md)."""
_BY_SIZE: Final = ((1.0e9, 4), (2.5e9, 3), (4.0e9, 2))
"""Measured on one H200: 0.6B gains up to 4, 1.7B up to 3, 8B nothing; in between by judgement."""
_GIB: Final = 1024**3
_LEAST_KV_BYTES: Final = 4 * _GIB
"""An engine with less has no room for the sequences that make a replica worth its memory."""
_BESIDE_BYTES: Final = 2 * _GIB
"""CUDA's context, graphs and activations of one engine."""
_SPREADING: Final = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Machine:
    """What replicas share. `gpu_bytes` is None where no GPU, or none that tells, is to be seen."""

    gpu: bool
    gpu_bytes: int | None
    cores: int


@dataclass(frozen=True, slots=True)
class Share:
    """How many replicas, why as many, and what each engine is told beside its settings."""

    count: int
    reason: str
    options: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Of a model's folder: parameters by its config, bytes by its files where it has them."""

    parameters: float
    weight_bytes: float


def share_out(engine: EngineSettings, machine: Callable[[], Machine]) -> Share:
    """Count the replicas and share the GPU's memory. Looks at the machine only if that matters.

    Raises SettingsError if what each is given by name is more than there is.
    """
    if engine.replicas == 1:
        return Share(1, "engine.replicas = 1")
    found = machine()
    count, reason = engine.replicas, f"engine.replicas = {engine.replicas}"
    if count == "auto":
        count, reason = _counted(engine, found)
    _check_memory(engine, count, found)
    given = MEMORY in engine.options
    if count == 1 or given or engine.kind != "vllm" or not found.gpu:
        return Share(count, reason)
    return Share(count, reason, {f"engine.options.{MEMORY}": round(GPU_SHARE / count, 3)})


def _counted(engine: EngineSettings, machine: Machine) -> tuple[int, str]:
    """The number that `auto` stands for, and why."""
    if (reason := _only_one(engine, machine)) is not None:
        return 1, f"auto: 1, because {reason}"
    size = model_size(engine)
    if size is None:
        return 1, "auto: 1, because the size of the model cannot be told from a folder here"
    billions = f"{size.parameters / 1e9:.2g}B"
    by_size = next((count for below, count in _BY_SIZE if size.parameters < below), 1)
    bounds = [(by_size, f"a model of {billions} was measured to gain up to so many")]
    bounds.append((_by_cores(machine.cores), f"there are {machine.cores} CPU cores"))
    if machine.gpu_bytes is not None:
        fits = _by_memory(engine, size, machine.gpu_bytes)
        bounds.append((fits, f"more would not fit {machine.gpu_bytes / _GIB:.0f} GiB of the GPU"))
    count, why = min(bounds, key=lambda bound: bound[0])
    if by_size == 1:
        why = f"a model of {billions} fills a GPU alone"
    return count, f"auto: {count}, because {why}"


def _only_one(engine: EngineSettings, machine: Machine) -> str | None:
    if engine.kind == "echo":
        return "the echo engine has no GPU to fill"
    if not machine.gpu:
        return "there is no GPU; on CPUs engines only take each other's cores"
    for name in _SPREADING:
        if engine.options.get(name, 1) != 1:
            return f"engine.options.{name} spreads the model over several GPUs"
    return None


def _by_cores(cores: int) -> int:
    return max(1, int(cores / CORES_AN_ENGINE))


def _by_memory(engine: EngineSettings, size: ModelSize, gpu_bytes: int) -> int:
    if (share := _option(engine, MEMORY)) is not None:
        return max(1, int(1 / share))
    kv_bytes = _option(engine, KV_BYTES) or _LEAST_KV_BYTES
    each = size.weight_bytes + kv_bytes + _BESIDE_BYTES
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
            f"out and each takes {GPU_SHARE / count:.2f}"
        )
    if kv_bytes is not None and machine.gpu_bytes and count * kv_bytes > machine.gpu_bytes:
        raise SettingsError(
            f"engine.options.{KV_BYTES}: {kv_bytes:.0f} bytes for each of engine.replicas = "
            f"{count} are more than the GPU's {machine.gpu_bytes}"
        )


# --- the model ------------------------------------------------------------------------------------


def model_size(engine: EngineSettings) -> ModelSize | None:
    """Parameters and bytes of `engine.model`, None if it is no folder that tells."""
    folder = Path(engine.model or "").expanduser()
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = {**config, **config.get("text_config", {})}
        parameters = _parameters(config)
        on_disk = sum(place.stat().st_size for place in _weight_files(folder))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    a_parameter = 4 if config.get("torch_dtype", config.get("dtype")) == "float32" else 2
    in_memory = float(on_disk or parameters * a_parameter)
    if str(engine.options.get("quantization", "")).startswith("fp8") and _is_plain(config):
        in_memory /= 2
    return ModelSize(parameters, in_memory)


def _weight_files(folder: Path) -> list[Path]:
    """Mistral's folders hold the same weights a second time, as `consolidated*`."""
    files = [*folder.glob("*.safetensors")]
    return [file for file in files if not file.name.startswith("consolidated")] or files


def _is_plain(config: Mapping[str, Any]) -> bool:
    return not config.get("quantization_config")


def _parameters(config: Mapping[str, Any]) -> float:
    """Of a transformer's decoder: embeddings, attention and (all experts') feed-forward layers."""
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
    """What is here, by NVML and by the devices' files. Imports no torch."""
    gpu_bytes = _nvidia_bytes()
    devices = ("/dev/nvidiactl", "/dev/kfd")
    gpu = gpu_bytes is not None or any(Path(device).exists() for device in devices)
    return Machine(gpu, gpu_bytes, len(os.sched_getaffinity(0)))


def _nvidia_bytes() -> int | None:
    """Of the GPU that CUDA would take first."""
    gpus = Gpus(1)
    try:
        found = gpus.read() if gpus.open() else []
    finally:
        gpus.close()
    return found[0].memory_total if found else None
