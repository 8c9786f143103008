"""Utilisation and memory of the engine's GPUs, read through NVML.

NVML reports the share of its last sample in which a kernel of any process ran, so several engines
on one GPU are counted together. A missing library (`nvidia-ml-py`), driver or GPU is no error:
there is then nothing to read.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GpuStats:
    """State of one GPU: `busy` is 0-1, memory is in bytes, `name` is its NVML index."""

    name: str
    busy: float
    memory_used: int
    memory_total: int


class Gpus:
    """The first `count` GPUs that are visible to CUDA in this process.

    A call takes from 0.1 ms to some milliseconds, longer while the driver is busy: keep it off the
    event loop's thread. After a driver error that GPU is no longer read; the others still are.
    """

    def __init__(self, count: int, *, visible: str | None = None) -> None:
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
            self._devices = dict(map(self._named, self._handles()))
        except nvml.NVMLError:
            return False
        return bool(self._devices)

    def read(self) -> list[GpuStats]:
        """Return the state of every GPU that can be read."""
        return [stats for name in list(self._devices) if (stats := self._read(name))]

    def close(self) -> None:
        """Shut NVML down. Idempotent."""
        nvml, self._nvml = self._nvml, None
        self._devices.clear()
        if nvml is not None:
            nvml.nvmlShutdown()

    def _handles(self) -> list[Any]:
        every = self._nvml.nvmlDeviceGetCount()
        if self._visible is None:
            wanted = [str(number) for number in range(every)]
        else:
            wanted = [name.strip() for name in self._visible.split(",") if name.strip()]
        handles = []
        for name in wanted[: self._count]:
            # As in CUDA, an unknown index hides all GPUs listed after it.
            if name.isdecimal() and int(name) >= every:
                break
            handles.append(self._handle(name))
        return handles

    def _handle(self, name: str) -> Any:
        if name.isdecimal():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(name))
        return self._nvml.nvmlDeviceGetHandleByUUID(name)

    def _named(self, handle: Any) -> tuple[str, Any]:
        return str(self._nvml.nvmlDeviceGetIndex(handle)), handle

    def _read(self, name: str) -> GpuStats | None:
        nvml, handle = self._nvml, self._devices[name]
        try:
            rates = nvml.nvmlDeviceGetUtilizationRates(handle)
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError:  # a MIG slice has no utilisation; a lost GPU has no state at all
            del self._devices[name]
            return None
        return GpuStats(name, rates.gpu / 100, memory.used, memory.total)
