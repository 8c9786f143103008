"""The GPUs that CUDA shows to this process, and their utilisation and memory, read through NVML.

NVML reports the share of its last sample in which a kernel of any process ran, so several engines
on one GPU are counted together. A missing library (`nvidia-ml-py`), driver or GPU is no error:
there is then nothing to read.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

_MIG: Final = "MIG-"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, or one MIG slice of it.

    `name` is its name in CUDA_VISIBLE_DEVICES: the NVML index, which `nvidia-smi` shows, or the
    UUID of a slice. The memory, in bytes, is None if it cannot be read.
    """

    name: str
    uuid: str = ""
    memory_bytes: int | None = None

    @property
    def is_slice(self) -> bool:
        """Whether it is a MIG slice."""
        return self.name.startswith(_MIG)


@dataclass(frozen=True, slots=True)
class GpuStats:
    """State of one GPU: `busy` is 0-1, memory is in bytes, `name` is its NVML index."""

    name: str
    busy: float
    memory_used: int
    memory_total: int


class Gpus:
    """The first `count` GPUs that are visible to CUDA in this process; None: all of them.

    A call takes from 0.1 ms to some milliseconds, longer while the driver is busy: keep it off the
    event loop's thread. After a driver error that GPU is no longer read; the others still are.
    """

    def __init__(self, count: int | None, *, visible: str | None = None) -> None:
        """Select the GPUs; `visible` has the form and default of CUDA_VISIBLE_DEVICES."""
        self._count = count
        self._visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        self._nvml: Any = None
        self._devices: dict[str, Any] = {}

    def open(self) -> bool:
        """Find the GPUs and return whether there is any to read."""
        if self._count == 0:
            return False
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return False
        try:
            nvml.nvmlInit()
            self._nvml = nvml
            self._devices = dict(list(self._found())[: self._count])
        except nvml.NVMLError:
            return False
        return bool(self._devices)

    def count_all(self) -> int:
        """Return the number of GPUs of the host, visible or not; 0 if they cannot be read."""
        if self._nvml is None:
            return 0
        with suppress(self._nvml.NVMLError):
            return int(self._nvml.nvmlDeviceGetCount())
        return 0

    def read(self) -> list[GpuStats]:
        """Return the state of every GPU that can be read."""
        return [stats for name in list(self._devices) if (stats := self._read(name))]

    def capabilities(self) -> set[tuple[int, int]]:
        """Return the different compute capabilities of the GPUs, as far as they can be read."""
        found = set()
        for handle in self._devices.values():
            with suppress(self._nvml.NVMLError):
                found.add(tuple(self._nvml.nvmlDeviceGetCudaComputeCapability(handle)))
        return found

    def listed(self) -> list[Gpu]:
        """Return every GPU that was found, in CUDA's order."""
        return [self._listed(name, handle) for name, handle in self._devices.items()]

    def close(self) -> None:
        """Shut NVML down. Idempotent."""
        nvml, self._nvml = self._nvml, None
        self._devices.clear()
        if nvml is not None:
            nvml.nvmlShutdown()

    # --- which GPUs -------------------------------------------------------------------------------

    def _found(self) -> Iterator[tuple[str, Any]]:
        """Yield names and handles of the visible GPUs.

        As in CUDA, an unknown entry hides all GPUs listed after it.
        """
        if self._visible is None:
            yield from self._all()
            return
        for entry in filter(None, (part.strip() for part in self._visible.split(","))):
            found = self._named(entry)
            if found is None:
                return
            yield found

    def _all(self) -> Iterator[tuple[str, Any]]:
        """Yield every GPU; of one that is divided, its MIG slices: it has no work of its own."""
        for index, handle in self._handles().items():
            if self._is_divided(handle):
                yield from self._slices(handle)
            else:
                yield str(index), handle

    def _named(self, entry: str) -> tuple[str, Any] | None:
        """Return the GPU of an index, a UUID or the unique beginning of one; None if unknown."""
        if entry.startswith(_MIG):
            try:
                return entry, self._nvml.nvmlDeviceGetHandleByUUID(entry)
            except self._nvml.NVMLError:
                return None
        handles = self._handles()
        if entry.isdecimal():
            fits = [int(entry)] if int(entry) in handles else []
        else:
            fits = [i for i, handle in handles.items() if self._uuid(handle).startswith(entry)]
        if len(fits) != 1:
            return None
        whole = (str(fits[0]), handles[fits[0]])
        # Of a divided GPU, CUDA shows the first slice.
        return next(self._slices(whole[1]), None) if self._is_divided(whole[1]) else whole

    def _handles(self) -> dict[int, Any]:
        """Return the GPUs by index, without those that have failed ("fallen off the bus")."""
        nvml, found = self._nvml, {}
        for index in range(nvml.nvmlDeviceGetCount()):
            with suppress(nvml.NVMLError):
                found[index] = nvml.nvmlDeviceGetHandleByIndex(index)
        return found

    def _is_divided(self, handle: Any) -> bool:
        try:
            current, _ = self._nvml.nvmlDeviceGetMigMode(handle)
        except self._nvml.NVMLError:  # a GPU without MIG
            return False
        return bool(current)

    def _slices(self, handle: Any) -> Iterator[tuple[str, Any]]:
        nvml = self._nvml
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except nvml.NVMLError:  # fewer slices than there could be
                continue
            yield self._uuid(part), part

    def _uuid(self, handle: Any) -> str:
        uuid = self._nvml.nvmlDeviceGetUUID(handle)
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    # --- their state ------------------------------------------------------------------------------

    def _listed(self, name: str, handle: Any) -> Gpu:
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
            return Gpu(name, self._uuid(handle), memory.total)
        except self._nvml.NVMLError:
            return Gpu(name)

    def _read(self, name: str) -> GpuStats | None:
        nvml, handle = self._nvml, self._devices[name]
        try:
            rates = nvml.nvmlDeviceGetUtilizationRates(handle)
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError:  # a MIG slice has no utilisation; a lost GPU has no state at all
            del self._devices[name]
            return None
        return GpuStats(name, rates.gpu / 100, memory.used, memory.total)
