"""Arguments and environment variables that vLLM is built with, and the limits it then has."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import how_to_install
from dragoman_schemas.nearest import did_you_mean
from dragoman_worker.engines.decode_graphs import graph_sizes
from dragoman_worker.engines.one_line import one_line
from dragoman_worker.ports import EngineLimits
from dragoman_worker.settings import EngineSettings

_GIB: Final = 1024**3
_LARGE_DEVICE_BYTES: Final = 70 * _GIB
_DRAIN_S: Final = 60
_CPU_KV_SPACE: Final = "VLLM_CPU_KVCACHE_SPACE"
_CPU_KV_OPTIONS: Final = frozenset({"kv_cache_memory_bytes", "gpu_memory_utilization"})

_FULL_BATCH_GPU: Final = 384
"""A GPU reads the weights once per step. That takes as long as computing with them for 150 to 300
sequences (peak FLOP/s divided by bytes per second), and the KV caches are read as well. Measured on
an H200 with 8B, jobs/s relative to 512 sequences: 64 gave 0.51, 128 gave 0.73, 256 gave 0.83."""
_FULL_BATCH_CPU: Final = 32
"""A CPU computes a tenth as many operations per byte read as a GPU."""


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """The device that vLLM runs on, named as vLLM names it."""

    cpu: bool
    memory_bytes: int
    name: str


def require_vllm() -> None:
    """Raise SettingsError if vLLM is not installed. Imports nothing."""
    if importlib.util.find_spec("vllm") is None:
        raise SettingsError(
            f"engine.kind: vLLM is not installed; {how_to_install('worker')} for a GPU or "
            "`make install` for CPUs, or set engine.kind = 'echo'"
        )


def resolve_model(model: str) -> str:
    """Return the model as vLLM accepts it: a folder, a file or a hub name. Raises SettingsError."""
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file() and not (path / "params.json").is_file():
            raise SettingsError(
                f"engine.model: {model} is not a model folder, it has no config.json"
            )
        return str(path)
    if path.exists():
        return str(path)
    if model.startswith(("/", ".", "~")) or len(Path(model).parts) != 2:
        raise SettingsError(f"engine.model: there is no folder {model}")
    return model


def model_name(settings: EngineSettings) -> str:
    """Return the model name for results: ``served_model_name``, or the folder's own name."""
    served = settings.options.get("served_model_name")
    if isinstance(served, list | tuple) and served:
        served = served[0]
    if served:
        return str(served)
    model = settings.model or ""
    return Path(model).expanduser().resolve().name if Path(model).is_dir() else model


def prepare_environment(settings: EngineSettings, *, verbose: bool) -> None:
    """Set the environment variables of vLLM and its libraries; call it before importing them.

    Spawn, not fork: this process has an event loop and threads, and the child must import afresh
    (see core_process). Usage statistics are never sent. With a local model no hub is contacted.
    """
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
    if Path(settings.model or "").expanduser().exists():
        os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "DEBUG" if verbose else "WARNING")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")


def prepare_device(device: Device, options: dict[str, Any]) -> None:
    """Give the KV cache on a CPU 1 GiB unless a size is set; vLLM's default is half the RAM.

    Must run before the engine's configuration is made.
    """
    if device.cpu and not _CPU_KV_OPTIONS & options.keys():
        os.environ.setdefault(_CPU_KV_SPACE, "1")


def defaults(device: Device, options: dict[str, Any]) -> dict[str, Any]:
    """Return the default engine arguments, to be overridden by `options`.

    AsyncLLM's own defaults are 128 sequences and 2,048 tokens per step on every device. These are
    the defaults of vLLM's `LLM`: 1,024 and 16,384 on devices with 70 GiB or more (measured on an
    H200: the same jobs/s as 512 with an 8B model, more with small ones), 256 and 8,192 on smaller
    devices and on the A100, which larger steps slow down. On CPUs a small model's throughput grows
    up to 64 sequences (18.5 jobs/s with one, 255 at 32, 301 at 64).
    """
    seqs, tokens = 256, 8_192
    if device.cpu:
        seqs, tokens = 64, 2_048
    elif device.memory_bytes >= _LARGE_DEVICE_BYTES and "a100" not in device.name.lower():
        seqs, tokens = 1_024, 16_384
    values: dict[str, Any] = {
        "max_num_seqs": min(seqs, _count(options.get("max_num_batched_tokens"), seqs)),
        "max_num_batched_tokens": max(tokens, _count(options.get("max_num_seqs"), tokens)),
        # All sampling is explicit: of a generation_config.json beside the weights vLLM then reads
        # the end tokens alone.
        "generation_config": "vllm",
        "disable_log_stats": False,
        "enable_log_requests": False,
        # Models that also see, as Gemma 3 and 4: no memory and no start-up time for images.
        "language_model_only": True,
        "use_tqdm_on_load": False,
        # After a SIGTERM to the engine's process, requests in flight may finish.
        "shutdown_timeout": _DRAIN_S,
    }
    if device.cpu:
        values["enforce_eager"] = True  # compiling costs a minute and gains nothing on two cores
    return values


def check_options(options: dict[str, Any], arguments_class: Any, version: str) -> None:
    """Raise SettingsError naming the first option that this vLLM does not have."""
    known = {field.name for field in dataclasses.fields(arguments_class) if field.init}
    if "model" in options:
        raise SettingsError("engine.options.model: give the model in engine.model instead")
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known)
            raise SettingsError(f"engine.options.{name}: vLLM {version} has no such option{hint}")


def engine_arguments(
    settings: EngineSettings, arguments_class: Any, version: str, device: Device
) -> Any:
    """Return vLLM's AsyncEngineArgs for `settings`. Raises SettingsError."""
    check_options(settings.options, arguments_class, version)
    known = {field.name for field in dataclasses.fields(arguments_class)}
    values = defaults(device, settings.options) | _graphs(settings, device)
    values = {k: v for k, v in values.items() if k in known}
    model = resolve_model(settings.model or "")
    try:
        return arguments_class(**{**values, **settings.options, "model": model})
    except (TypeError, ValueError) as error:
        raise SettingsError(f"engine.options: {one_line(str(error))}") from error


def real_limits(config: Any, *, on_cpu: bool) -> EngineLimits:
    """Return the limits in vLLM's final configuration; the KV cache is in tokens.

    With data parallelism they are those of all ranks together: vLLM gives the sequences and the
    cache in tokens per rank, the blocks of all ranks.
    """
    parallel = config.parallel_config
    cache = config.cache_config
    ranks = parallel.data_parallel_size
    blocks = (cache.num_gpu_blocks or 0) * cache.block_size
    per_rank = getattr(cache, "kv_cache_size_tokens", None) or 0
    return EngineLimits(
        max_num_seqs=config.scheduler_config.max_num_seqs * ranks,
        max_num_batched_tokens=config.scheduler_config.max_num_batched_tokens,
        max_model_len=config.model_config.max_model_len,
        kv_cache_tokens=per_rank * ranks or blocks,
        devices=0 if on_cpu else parallel.world_size * ranks,
        full_batch=_FULL_BATCH_CPU if on_cpu else _FULL_BATCH_GPU,
    )


def _graphs(settings: EngineSettings, device: Device) -> dict[str, Any]:
    """Return the sizes of CUDA graphs as an option, nothing where they are vLLM's own."""
    given = {**defaults(device, settings.options), **settings.options}
    sizes = graph_sizes(given, settings.grouped_share, _count(given.get("max_num_seqs"), 0))
    return {"cudagraph_capture_sizes": sizes} if sizes else {}


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) and value > 0 else default
