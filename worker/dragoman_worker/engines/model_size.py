"""Size of a model and the GPU memory that one engine with it needs besides its KV cache.

Read from the model folder; nothing here imports torch or vLLM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman_worker.engines.decode_graphs import VLLM_LARGEST, graph_sizes
from dragoman_worker.settings import EngineSettings

_GIB: Final = 1024**3
_LARGE_GPU_BYTES: Final = 70 * _GIB
_FIXED_BYTES: Final = 1.5 * _GIB
"""CUDA context, NCCL buffers and CUDA graphs for up to 512 sequences of one engine."""
_GRAPH_BYTES: Final = 90 * 1024
"""CUDA graphs per layer and sequence beyond 512, which prefills in groups need.

Measured: 1.1 GiB from 512 to 1,024 sequences with 28 layers (0.6B, vLLM 0.26, H100).
"""
_LEAST: Final = {
    **dict.fromkeys(
        (
            "head_dim",
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "num_hidden_layers",
            "num_key_value_heads",
            "vocab_size",
        ),
        1,
    ),
    # 0 says, as null does, that the model has none.
    **dict.fromkeys(
        (
            "kv_lora_rank",
            "max_position_embeddings",
            "moe_intermediate_size",
            "n_routed_experts",
            "num_experts",
            "num_experts_per_tok",
            "num_local_experts",
            "qk_rope_head_dim",
            "sliding_window",
        ),
        0,
    ),
}
"""The sizes that are read from a config, each with the least that it may be."""
_MOST: Final = 2**31
_SAMPLER_BYTES: Final = 32
"""Per sequence and vocabulary entry: logits, sorted logits, indices and sums in float32."""
USEFUL_KV_BYTES: Final = 4 * _GIB
"""With a smaller KV cache an engine runs too few sequences to be worth its memory."""
_UNKNOWN_KV_BYTES: Final = 16 * _GIB
"""KV cache that holds one request of a model whose shape is unknown, rather too much."""
_STEP_TOKENS: Final = 16_384
"""Tokens that a layer with a sliding window holds besides the window: those of a step."""


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Size of a model: parameters from its config, bytes from its weight files if there are any."""

    parameters: float
    weight_bytes: float
    token_bytes: float = 0.0
    """Activations per token of a step."""
    vocabulary: int = 0
    context: int = 0
    """Tokens of the longest request that the model allows; 0: unknown."""
    kv_token_bytes: float = 0.0
    """KV cache per token of a request."""
    kv_window_bytes: float = 0.0
    """KV cache per request of the layers that hold a sliding window only."""
    layers: int = 0
    """Layers of the model; CUDA graphs grow with them."""
    shaped: bool = True
    """Whether the config gives the model's shape; without it only the weights are known."""

    def overhead_bytes(self, engine: EngineSettings, gpu_bytes: int) -> float:
        """Return the memory of one engine besides weights and KV cache, rather too much.

        Without settings, the numbers of sequences and of tokens per step are those that
        `vllm/arguments.py` gives a GPU of that size.
        """
        large = gpu_bytes >= _LARGE_GPU_BYTES
        sequences = _whole(engine, "max_num_seqs", 1_024 if large else 256)
        tokens = _whole(engine, "max_num_batched_tokens", 16_384 if large else 8_192)
        sampler = _SAMPLER_BYTES * self.vocabulary * sequences
        sizes = graph_sizes(engine.options, engine.grouped_share, sequences)
        graphs = _GRAPH_BYTES * self.layers * (sizes[-1] - VLLM_LARGEST) if sizes else 0
        return _FIXED_BYTES + self.token_bytes * tokens + sampler + graphs

    def least_kv_bytes(self, engine: EngineSettings) -> float:
        """Return the smallest KV cache that an engine is worth starting with.

        vLLM refuses a cache that does not hold one request of `max_model_len` tokens.
        """
        if not self.shaped:
            return _UNKNOWN_KV_BYTES
        request = self.kv_token_bytes * _whole(engine, "max_model_len", self.context)
        return max(USEFUL_KV_BYTES, request + self.kv_window_bytes)


def model_size(engine: EngineSettings) -> ModelSize | None:
    """Return the size of `engine.model`, None if it is no local folder with a usable config.

    Of a config that leaves out the shape, as transformers does where it is the default, only the
    size of the weight files is known.
    """
    folder = Path(engine.model or "").expanduser()
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = {**config, **config.get("text_config", {})}
        on_disk = sum(file.stat().st_size for file in _weight_files(folder))
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    except RecursionError:  # the config is nested too deep
        return None
    stored_bytes = 4 if _is_float32(config.get("torch_dtype", config.get("dtype"))) else 2
    # vLLM loads weights in 32 bits only if `dtype` asks for it.
    value_bytes = 4 if _is_float32(engine.options.get("dtype")) else 2
    quantized = str(engine.options.get("quantization", "")).startswith("fp8")
    loaded_bytes = 1 if quantized else value_bytes
    in_memory = on_disk * (loaded_bytes / stored_bytes if _is_plain(config) else 1)
    # Where the files are quantised: as many parameters as 4 bits each would be.
    stored = on_disk / (stored_bytes if _is_plain(config) else 0.5)
    try:
        _require_counts(config)
        parameters = _parameters(config)
        kv_bytes = 1 if str(engine.options.get("kv_cache_dtype")).startswith("fp8") else value_bytes
        return ModelSize(
            max(parameters, stored) if _is_plain(config) else parameters,
            in_memory or parameters * loaded_bytes,
            _token_bytes(config),
            config["vocab_size"],
            config.get("max_position_embeddings") or 0,
            _layers(config, full=True) * _kv_layer_bytes(config, kv_bytes),
            _layers(config, full=False) * _kv_layer_bytes(config, kv_bytes) * _window(config),
            config["num_hidden_layers"],
        )
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return ModelSize(stored, in_memory, shaped=False) if on_disk else None


def _is_float32(dtype: object) -> bool:
    return dtype in ("float32", "float")


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
    for name, least in _LEAST.items():
        value = config.get(name)
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
    names = ("num_experts", "num_local_experts", "n_routed_experts")
    return next((count for name in names if (count := config.get(name))), 1)


# --- the KV cache ---------------------------------------------------------------------------------


def _layers(config: Mapping[str, Any], *, full: bool) -> int:
    """Return the number of layers that keep the whole request, or else a sliding window of it."""
    kinds = config.get("layer_types")
    if not isinstance(kinds, list) or not config.get("sliding_window"):
        return config["num_hidden_layers"] if full else 0
    return sum((kind == "full_attention") == full for kind in kinds)


def _window(config: Mapping[str, Any]) -> int:
    return (config.get("sliding_window") or 0) + _STEP_TOKENS


def _kv_layer_bytes(config: Mapping[str, Any], value_bytes: int) -> float:
    """Return the bytes that one layer keeps of one token."""
    if rank := config.get("kv_lora_rank"):  # one compressed vector, as DeepSeek's models have it
        return float(value_bytes * (rank + (config.get("qk_rope_head_dim") or 0)))
    heads = config["num_attention_heads"]
    head = config.get("head_dim") or config["hidden_size"] // heads
    return float(2 * value_bytes * head * (config.get("num_key_value_heads") or heads))
