"""Size of a model and the GPU memory that one engine with it needs besides its KV cache.

Read from the model folder; nothing here imports torch or vLLM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman_worker.settings import EngineSettings

_GIB: Final = 1024**3
_LARGE_GPU_BYTES: Final = 70 * _GIB
_FIXED_BYTES: Final = 1.5 * _GIB
"""CUDA context, CUDA graphs and NCCL buffers of one engine."""
_COUNTS: Final = (
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "moe_intermediate_size",
    "num_attention_heads",
    "num_experts",
    "num_experts_per_tok",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_local_experts",
    "vocab_size",
)
_MOST: Final = 2**31
_SAMPLER_BYTES: Final = 32
"""Per sequence and vocabulary entry: logits, sorted logits, indices and sums in float32."""


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Size of a model: parameters from its config, bytes from its weight files if there are any."""

    parameters: float
    weight_bytes: float
    token_bytes: float = 0.0
    """Activations per token of a step."""
    vocabulary: int = 0

    def overhead_bytes(self, engine: EngineSettings, gpu_bytes: int) -> float:
        """Return the memory of one engine besides weights and KV cache, rather too much.

        Without settings, the numbers of sequences and of tokens per step are those that
        `vllm/arguments.py` gives a GPU of that size.
        """
        large = gpu_bytes >= _LARGE_GPU_BYTES
        sequences = _whole(engine, "max_num_seqs", 1_024 if large else 256)
        tokens = _whole(engine, "max_num_batched_tokens", 16_384 if large else 8_192)
        sampler = _SAMPLER_BYTES * self.vocabulary * sequences
        return _FIXED_BYTES + self.token_bytes * tokens + sampler


def model_size(engine: EngineSettings) -> ModelSize | None:
    """Return the size of `engine.model`, None if it is no local folder with a usable config."""
    folder = Path(engine.model or "").expanduser()
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = {**config, **config.get("text_config", {})}
        _require_counts(config)
        parameters = _parameters(config)
        token_bytes = _token_bytes(config)
        on_disk = sum(file.stat().st_size for file in _weight_files(folder))
    except (OSError, ArithmeticError, ValueError, TypeError, KeyError, AttributeError):
        return None
    except RecursionError:  # the config is nested too deep
        return None
    parameter_bytes = 4 if config.get("torch_dtype", config.get("dtype")) == "float32" else 2
    in_memory = float(on_disk or parameters * parameter_bytes)
    if str(engine.options.get("quantization", "")).startswith("fp8") and _is_plain(config):
        in_memory /= 2
    return ModelSize(parameters, in_memory, token_bytes, config["vocab_size"])


def _whole(engine: EngineSettings, name: str, default: int) -> int:
    value = engine.options.get(name)
    return value if type(value) is int and value > 0 else default


def _weight_files(folder: Path) -> list[Path]:
    """Return the files to count: Mistral's folders hold all weights again as `consolidated*`."""
    files = [*folder.glob("*.safetensors")]
    return [file for file in files if not file.name.startswith("consolidated")] or files


def _is_plain(config: Mapping[str, Any]) -> bool:
    return not config.get("quantization_config")


def _require_counts(config: Mapping[str, Any]) -> None:
    """Raise ValueError unless the sizes in the config are numbers that a model may have."""
    for name in _COUNTS:
        value = config.get(name)
        least = 0 if "expert" in name or "moe" in name else 1  # a model without experts may say so
        if value is not None and not (type(value) is int and least <= value < _MOST):
            raise ValueError(f"{name} is not a size: {value!r:.80}")


def _parameters(config: Mapping[str, Any]) -> float:
    """Estimate a decoder's parameters: embeddings, attention, feed-forward of all experts."""
    width, layers = config["hidden_size"], config["num_hidden_layers"]
    heads = config["num_attention_heads"]
    head = config.get("head_dim") or width // heads
    key_values = config.get("num_key_value_heads") or heads
    attention = 2 * width * head * (heads + key_values)
    experts = _experts(config)
    inner = config.get("moe_intermediate_size") if experts > 1 else None
    forward = 3 * width * (inner or config["intermediate_size"]) * experts
    tables = 1 if config.get("tie_word_embeddings") else 2
    return float(tables * config["vocab_size"] * width + layers * (attention + forward))


def _token_bytes(config: Mapping[str, Any]) -> float:
    """Estimate the activations of one token in 16 bits: the feed-forward and six hidden states."""
    inner, active = config["intermediate_size"], 1
    if _experts(config) > 1:
        inner = config.get("moe_intermediate_size") or inner
        active = config.get("num_experts_per_tok") or 1
    return float(2 * (active * (3 * inner + config["hidden_size"]) + 6 * config["hidden_size"]))


def _experts(config: Mapping[str, Any]) -> int:
    return config.get("num_experts") or config.get("num_local_experts") or 1
