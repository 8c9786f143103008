"""With which arguments, and in which environment, is vLLM built?"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
import os
from pathlib import Path
from typing import Any, Final

from dragoman_connections.installation import how_to_install
from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm.start_failures import one_line
from dragoman_worker.settings import EngineSettings

_GIB: Final = 1024**3
_LARGE_DEVICE_BYTES: Final = 70 * _GIB
_DRAIN_S: Final = 60
_CPU_KV_SPACE: Final = "VLLM_CPU_KVCACHE_SPACE"
_CPU_KV_OPTIONS: Final = frozenset(
    {"kv_cache_memory_bytes", "gpu_memory_utilization", "num_gpu_blocks_override"}
)


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """What vLLM will run on, as vLLM names it."""

    cpu: bool
    memory_bytes: int
    name: str


def require_vllm() -> None:
    """Raises SettingsError if vLLM is not installed. Imports nothing."""
    if importlib.util.find_spec("vllm") is None:
        raise SettingsError(
            f"engine.kind: vLLM is not installed; {how_to_install('worker')} for a GPU or "
            "`make install` for CPUs, or set engine.kind = 'echo'"
        )


def model_place(model: str) -> str:
    """The model as vLLM takes it: a folder, a file or a name. Raises SettingsError."""
    place = Path(model).expanduser()
    if place.is_dir():
        if not (place / "config.json").is_file() and not (place / "params.json").is_file():
            raise SettingsError(f"engine.model: {model} holds no config.json, so it is no model")
        return str(place)
    if place.exists():
        return str(place)
    if model.startswith(("/", ".", "~")) or len(Path(model).parts) != 2:
        raise SettingsError(f"engine.model: there is no folder {model}")
    return model


def model_name(settings: EngineSettings) -> str:
    """The name for results: the served name if given, of a folder its last part."""
    served = settings.options.get("served_model_name")
    if isinstance(served, list | tuple) and served:
        served = served[0]
    if served:
        return str(served)
    model = settings.model or ""
    return Path(model).expanduser().resolve().name if Path(model).is_dir() else model


def prepare_environment(settings: EngineSettings, *, verbose: bool) -> None:
    """Set what vLLM and its libraries read from the environment; before they are imported.

    Spawn, not fork: this process has an event loop and threads, and the child must import afresh
    (see core_process). Usage statistics are never sent.
    """
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
    if Path(settings.model or "").expanduser().exists():
        os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "DEBUG" if verbose else "WARNING")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")


def prepare_device(device: Device, options: dict[str, Any]) -> None:
    """On a CPU the KV cache gets 1 GiB unless a size is given; vLLM's own default is half the RAM.

    Must run before the engine's configuration is made.
    """
    if device.cpu and not _CPU_KV_OPTIONS & options.keys():
        os.environ.setdefault(_CPU_KV_SPACE, "1")


def defaults(device: Device, options: dict[str, Any]) -> dict[str, Any]:
    """Our arguments where `options` is silent.

    AsyncLLM's own defaults are 128 sequences and 2,048 tokens a step whatever the device. Here they
    are what vLLM gives `LLM`: 1,024 and 16,384 on devices of 70 GiB and more (measured on an H200:
    the same jobs/s as 512 with an 8B model, more with small ones), 256 and 8,192 on smaller ones
    and on the A100, which larger steps slow down. On CPUs a small model's throughput grows up to
    64 sequences (18.5 jobs/s alone, 255 at 32, 301 at 64).
    """
    seqs, tokens = 256, 8_192
    if device.cpu:
        seqs, tokens = 64, 2_048
    elif device.memory_bytes >= _LARGE_DEVICE_BYTES and "a100" not in device.name.lower():
        seqs, tokens = 1_024, 16_384
    ours: dict[str, Any] = {
        "max_num_seqs": min(seqs, _count(options.get("max_num_batched_tokens"), seqs)),
        "max_num_batched_tokens": max(tokens, _count(options.get("max_num_seqs"), tokens)),
        # All sampling is explicit; the model's folder must not change it behind our back.
        "generation_config": "vllm",
        "disable_log_stats": False,
        "enable_log_requests": False,
        "use_tqdm_on_load": False,
        # A SIGTERM to the engine's own process lets what is in flight finish.
        "shutdown_timeout": _DRAIN_S,
    }
    if device.cpu:
        ours["enforce_eager"] = True  # compiling costs a minute and gains nothing on two cores
    return ours


def check_options(options: dict[str, Any], arguments_class: Any, version: str) -> None:
    """Raises SettingsError naming the first option that this vLLM does not have."""
    known = {field.name for field in dataclasses.fields(arguments_class) if field.init}
    if "model" in options:
        raise SettingsError("engine.options.model: name the model in engine.model")
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise SettingsError(f"engine.options.{name}: vLLM {version} has no such option{hint}")


def engine_arguments(
    settings: EngineSettings, arguments_class: Any, version: str, device: Device
) -> Any:
    """vLLM's AsyncEngineArgs for `settings`. Raises SettingsError."""
    check_options(settings.options, arguments_class, version)
    known = {field.name for field in dataclasses.fields(arguments_class)}
    ours = {k: v for k, v in defaults(device, settings.options).items() if k in known}
    place = model_place(settings.model or "")
    try:
        return arguments_class(**{**ours, **settings.options, "model": place})
    except (TypeError, ValueError) as error:
        raise SettingsError(f"engine.options: {one_line(str(error))}") from error


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) and value > 0 else default
