"""Identity of a model: equal identities mean that it would give the same answers."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Final

from dragoman_worker.engines.vllm.arguments import resolve_model
from dragoman_worker.engines.vllm.profiles import adapters_of
from dragoman_worker.settings import EngineSettings

_SUFFIXES: Final = frozenset(
    {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".json", ".jinja", ".model", ".txt"}
)
"""Weights, configuration, tokenizer and chat template; a README changes no answer."""
_OF_SPEED: Final = frozenset(
    {
        "async_scheduling",
        "block_size",
        "compilation_config",
        "cudagraph_capture_sizes",
        "data_parallel_size",
        "disable_custom_all_reduce",
        "disable_log_stats",
        "distributed_executor_backend",
        "enable_chunked_prefill",
        "enable_log_requests",
        "enable_prefix_caching",
        "enforce_eager",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "load_format",
        "max_model_len",
        "max_num_batched_tokens",
        "max_num_seqs",
        "num_gpu_blocks_override",
        "otlp_traces_endpoint",
        "pipeline_parallel_size",
        "served_model_name",
        "shutdown_timeout",
        "swap_space",
        "tensor_parallel_size",
        "use_tqdm_on_load",
    }
)
"""Options that change how fast an answer comes. Any other one makes another identity: an answer
forgotten for nothing costs less than a stale one."""


def engine_identity(settings: EngineSettings) -> str:
    """Return the SHA-256, in hex, of the files of model and adapters and the options."""
    model = resolve_model(settings.model or "")
    options = {key: value for key, value in settings.options.items() if key not in _OF_SPEED}
    adapters = [files_state(Path(folder)) for folder in adapters_of(settings)]
    members = ["vllm", _model(model, options.get("revision")), options, adapters]
    return sha256(json.dumps(members, sort_keys=True, default=str).encode()).hexdigest()


def files_state(path: Path) -> list[tuple[str, int, int]]:
    """Return name, size in bytes and time of change in ns of a folder's model files, or a file's.

    Works for LoRA adapters too. Reading the content instead would take minutes for large weights.
    """
    files = [path] if path.is_file() else sorted(_model_files(path))
    states = [(file.name, file.stat()) for file in files]
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states]


def _model_files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.suffix in _SUFFIXES and file.is_file()]


def _model(model: str, revision: object) -> list[object]:
    path = Path(model)
    if path.exists():
        return [path.resolve().name, files_state(path)]
    return [model, _commit(model, revision)]


def _commit(model: str, revision: object) -> str:
    """Return the commit of a hub's model, the name of its folder in the cache; '' if unknown."""
    with suppress(Exception):  # of the hub's library, which may be absent
        hub = import_module("huggingface_hub")
        return Path(hub.snapshot_download(model, revision=revision, local_files_only=True)).name
    return ""
