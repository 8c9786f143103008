"""Identity of a model: equal identities mean that it would give the same answers."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from dragoman_worker.engines.vllm.arguments import resolve_model
from dragoman_worker.engines.vllm.file_contents import contents
from dragoman_worker.engines.vllm.profiles import adapters_of
from dragoman_worker.settings import EngineSettings

_OF_SPEED: Final = frozenset(
    {
        "allowed_local_media_path",
        "async_scheduling",
        "block_size",
        "compilation_config",
        "cudagraph_capture_sizes",
        "data_parallel_size",
        "disable_custom_all_reduce",
        "disable_log_stats",
        "distributed_executor_backend",
        "download_dir",
        "enable_chunked_prefill",
        "enable_log_requests",
        "enable_prefix_caching",
        "enforce_eager",
        "gpu_memory_utilization",
        "hf_token",
        "kv_cache_memory_bytes",
        "log_config_file",
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
"""Options that change how fast an answer comes, or nothing. Any other one makes another identity:
an answer forgotten for nothing costs less than a stale one."""
_OF_FILES: Final = frozenset(
    {"generation_config", "hf_config_path", "model", "model_weights", "spec_model", "tokenizer"}
)
"""Options, also inside of others, that name a folder, a file or a model of the hub."""


def engine_identity(settings: EngineSettings) -> str:
    """Return the SHA-256, in hex, of what the files of model and adapters hold, and the options."""
    options = {key: value for key, value in settings.options.items() if key not in _OF_SPEED}
    cache = settings.options.get("download_dir")
    model = _model(resolve_model(settings.model or ""), options.get("revision"), cache)
    adapters = [contents(Path(folder)) for folder in adapters_of(settings)]
    members = ["vllm", model, _with_contents(options, cache), adapters]
    return sha256(json.dumps(members, sort_keys=True, default=str).encode()).hexdigest()


def _with_contents(option: object, cache: object) -> object:
    """Return options with the contents of files in place of what names them.

    Those of a draft model too: `speculative_config` names it inside.
    """
    if isinstance(option, Mapping):
        revision = option.get("revision")
        return {
            key: _model(value, revision, cache)
            if key in _OF_FILES and isinstance(value, str)
            else _with_contents(value, cache)
            for key, value in option.items()
        }
    return option


def _model(model: str, revision: object, cache: object) -> list[Any]:
    """Return the contents of a folder, a file or a model of the hub, or else its name."""
    path = Path(model).expanduser()
    if path.exists():
        return list(contents(path))
    if "/" not in model:  # a word such as `vllm` for generation_config
        return [model]
    snapshot = _snapshot(model, revision, cache)
    # With files that are not found every start forgets: a name may mean another model tomorrow.
    return list(contents(snapshot)) if snapshot else [model, secrets.token_hex()]


def _snapshot(model: str, revision: object, cache: object) -> Path | None:
    """Return the folder of a hub's model in the cache, None if there is none."""
    with suppress(Exception):  # of the hub's library, which may be absent
        hub = import_module("huggingface_hub")
        found = hub.snapshot_download(
            model, revision=revision, cache_dir=cache, local_files_only=True
        )
        return Path(found)
    return None
