"""One-line explanations of failed vLLM starts, which name the setting and the fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.one_line import one_line
from dragoman_worker.engines.vllm.start_circumstances import too_much_memory, wrong_setting
from dragoman_worker.errors import Halt
from dragoman_worker.process.full_disk import NO_SPACE, full_disk, full_disk_message


class DeviceFault(SettingsError):
    """A failed start that engines on other GPUs may not share."""


class TooLittleMemory(DeviceFault):
    """A setting needs more memory than this engine's GPUs have free."""


class WrongAnswer(DeviceFault):
    """The model's answer to the test sentence is no text: by its files, its settings or the GPU."""


def start_failure(
    error: BaseException,
    reason: str | None,
    model: str,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> SettingsError | Halt:
    """Return the exception to raise for `error`; `reason` is the engine process's report, if any.

    Known failures are recognised by vLLM's wording (0.26 to 0.33); anything else becomes Halt.
    A setting that another GPU may have the memory for is TooLittleMemory.
    """
    text = one_line(reason or f"{type(error).__name__}: {error}", max_chars=4_000)
    if (known := _known(error, text, model, options)) is not None:
        return known
    if (full := full_disk(error)) or NO_SPACE in text:
        return Halt(full or full_disk_message())
    if reason is None and isinstance(error, OSError):
        return SettingsError(
            f"engine.model: {model} is not a local folder and could not be downloaded: "
            f"{one_line(text)}"
        )
    return Halt(f"the engine did not start: {one_line(text)}")


def _known(
    error: BaseException, text: str, model: str, options: Mapping[str, Any]
) -> SettingsError | None:
    """Return the failure of a setting whose cause is recognised, None for any other."""
    if (wrong := wrong_setting(text, model, options)) is not None:
        return SettingsError(one_line(wrong))
    if isinstance(error, ValidationError):
        return SettingsError(_validation(error))
    if (wrong := too_much_memory(text, options)) is not None:
        return TooLittleMemory(wrong)
    for pattern, explain in _KNOWN:
        if found := re.search(pattern, text):
            of_memory = pattern in _OF_MEMORY
            return (TooLittleMemory if of_memory else SettingsError)(explain(found))
    return None


def _validation(error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_url=False, include_input=False):
        message = problem["msg"].removeprefix("Value error, ")
        for pattern, explain in _KNOWN:
            if found := re.search(pattern, message):
                return explain(found)
        name = ".".join(("engine.options", *(str(part) for part in problem["loc"])))
        problems.append(f"{name}: {message}")
    return one_line("; ".join(problems))


def _over_kv_cache(found: re.Match[str]) -> str:
    largest = found["largest"]
    fits = (
        f"the largest that fits is {largest}" if largest else "even a very short one does not fit"
    )
    return (
        f"engine.options.max_model_len: {found['wanted']} tokens need {found['need']} GiB of KV "
        f"cache, {found['have']} GiB are available; {fits}, or give the cache more memory "
        "(engine.options.gpu_memory_utilization, fewer engine.replicas per GPU, on CPUs "
        "VLLM_CPU_KVCACHE_SPACE)"
    )


def _over_model(found: re.Match[str]) -> str:
    return (
        f"engine.options.max_model_len: {found['wanted']} tokens exceed the model's context "
        f"of {found['largest']}; give at most {found['largest']}"
    )


def _no_memory(_: re.Match[str]) -> str:
    return (
        "engine.options.gpu_memory_utilization: the model leaves no memory for the KV cache; raise "
        "it, or choose a smaller or quantised model"
    )


def _memory_taken(found: re.Match[str]) -> str:
    held = float(found["all"]) - float(found["free"])
    return (
        f"engine.options.gpu_memory_utilization: {found['want']} GiB are requested and "
        f"{found['free']} of {found['all']} GiB are free: other processes hold {held:.1f} GiB "
        "(nvidia-smi lists them; perhaps the engine of a killed worker); stop them, or lower it"
    )


def _out_of_memory(found: re.Match[str]) -> str:
    held = _held_by_others(found)
    others = f" (other processes hold {held:.1f} GiB of it; nvidia-smi lists them)" if held else ""
    return (
        f"engine.options.gpu_memory_utilization: the device ran out of memory{others} while the "
        "engine started; lower it, lower max_num_seqs or max_num_batched_tokens, or choose a "
        "smaller model"
    )


def _held_by_others(found: re.Match[str]) -> float:
    """Return the GiB of the device that neither are free nor belong to the engine, from 1 up.

    Below 1 GiB it may be the driver's own memory. 0 if the message has no figures.
    """
    if found["capacity"] is None:
        return 0.0
    capacity, free, own = (
        float(found[name]) / (1024 if found[f"{name}_unit"] == "MiB" else 1)
        for name in ("capacity", "free", "own")
    )
    held = capacity - free - own
    return held if held >= 1 else 0.0


def _cpu_memory_taken(found: re.Match[str]) -> str:
    return (
        f"engine.options.gpu_memory_utilization: on a CPU it is the share of the machine's memory; "
        f"{found['share']} are {found['want']} GiB, and {found['free']} of {found['all']} GiB are "
        "free; lower it, or leave it out and give the cache its GiB in VLLM_CPU_KVCACHE_SPACE"
    )


def _cpu_cache_taken(found: re.Match[str]) -> str:
    return (
        f"VLLM_CPU_KVCACHE_SPACE, or engine.options.kv_cache_memory_bytes: the KV cache is to have "
        f"{found['want']} GiB, and {found['free']} of {found['all']} GiB are free; lower it"
    )


def _no_numa_nodes(found: re.Match[str]) -> str:
    return (
        f"engine.options.tensor_parallel_size (or pipeline_parallel_size): on a CPU each of "
        f"{found['count']} parts needs a NUMA node, and the machine has fewer; set it to 1, or "
        "bind the cores by VLLM_CPU_OMP_THREADS_BIND"
    )


def _bad_batch(found: re.Match[str]) -> str:
    return (
        f"engine.options.max_num_batched_tokens: {found['tokens']} is below "
        f"{found['name']} ({found['least']}); give at least {found['least']}"
    )


_OVER_KV_CACHE: Final = (
    r"model's max seq len \((?P<wanted>\d+)\), \(+(?P<need>[\d.]+) GiB KV cache is needed.*?"
    r"available KV cache memory \((?P<have>[\d.]+) GiB\)"
    r"(?:.*?estimated maximum model length is (?P<largest>\d+))?"
)
_OVER_MODEL: Final = (
    r"max_model_len \((?P<wanted>\d+)\) is greater than the derived max_model_len "
    r"\((?:\D*=)?(?P<largest>\d+)"
)
_NO_MEMORY: Final = r"No available memory for the cache blocks"
_MEMORY_TAKEN: Final = (
    r"Free memory on device[^(]*\((?P<free>[\d.]+)/(?P<all>[\d.]+) GiB\).*?less than desired "
    r"GPU memory utilization \([\d.]+, (?P<want>[\d.]+) GiB\)"
)
_OUT_OF_MEMORY: Final = (
    r"(?:(?:CUDA|HIP|XPU) out of memory|OutOfMemoryError)"
    r"(?:.*?total capacity of (?P<capacity>[\d.]+) (?P<capacity_unit>[MG]iB)"
    r" of which (?P<free>[\d.]+) (?P<free_unit>[MG]iB) is free"
    r".*?this process has (?P<own>[\d.]+) (?P<own_unit>[MG]iB) memory in use)?"
)
_BAD_BATCH: Final = (
    r"max_num_batched_tokens \((?P<tokens>\d+)\) (?:must be greater than or equal to|is "
    r"smaller than) (?P<name>\w+) \((?P<least>\d+)\)"
)
_CPU_MEMORY_TAKEN: Final = (
    r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<all>[\d.]+) GiB\) on startup is less "
    r"than desired CPU memory utilization \((?P<share>[\d.]+), (?P<want>[\d.]+) GiB\)"
)
_CPU_CACHE_TAKEN: Final = (
    r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<all>[\d.]+) GiB\) on kv cache "
    r"allocation is less than requested memory for kv \((?P<want>[\d.]+)"
)
_NO_NUMA_NODES: Final = r"Not enough allowed NUMA nodes to bind threads of (?P<count>\d+)"
_KNOWN: Final[tuple[tuple[str, Callable[[re.Match[str]], str]], ...]] = (
    (_OVER_KV_CACHE, _over_kv_cache),
    (_OVER_MODEL, _over_model),
    (_NO_MEMORY, _no_memory),
    (_MEMORY_TAKEN, _memory_taken),
    (_OUT_OF_MEMORY, _out_of_memory),
    (_BAD_BATCH, _bad_batch),
    (_CPU_MEMORY_TAKEN, _cpu_memory_taken),
    (_CPU_CACHE_TAKEN, _cpu_cache_taken),
    (_NO_NUMA_NODES, _no_numa_nodes),
)
_OF_MEMORY: Final = frozenset(
    (
        _OVER_KV_CACHE,
        _NO_MEMORY,
        _MEMORY_TAKEN,
        _OUT_OF_MEMORY,
        _CPU_MEMORY_TAKEN,
        _CPU_CACHE_TAKEN,
    )
)
"""Failures that a GPU with more free memory would not have."""
