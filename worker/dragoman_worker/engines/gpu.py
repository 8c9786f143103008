"""How busy are the GPUs that the engine computes on? NVML's word, where there is one.

NVML says in what share of its last sample some kernel ran, by whatever process: with several
engines on one GPU it counts them all. Without the library (`nvidia-ml-py`), the driver or a GPU
there is nothing to read, and nothing is wrong.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GpuStats:
    """One GPU now. `busy` is 0-1, memory in bytes; `name` is its number as NVML counts."""

    name: str
    busy: float
    memory_used: int
    memory_total: int


class Gpus:
    """The first `count` GPUs that CUDA lets this process see.

    A call takes from a tenth of a millisecond to some, longer while the driver is busy: not for the
    event loop's thread. The driver's own errors end the reading of one GPU, not of the others.
    """

    def __init__(self, count: int, *, visible: str | None = None) -> None:
        """`visible` as in CUDA_VISIBLE_DEVICES, which holds if it is not given."""
        self._count = count
        self._visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        self._nvml: Any = None
        self._devices: dict[str, Any] = {}

    def open(self) -> bool:
        """Find them; whether there is any to read."""
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
        """All that can be read now."""
        return [reading for name in list(self._devices) if (reading := self._read(name))]

    def close(self) -> None:
        """Let NVML go. Idempotent."""
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
            # As CUDA does: what it does not know hides all that come after.
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
        except nvml.NVMLError:  # a slice of a GPU (MIG) has no utilisation; a lost one has nothing
            del self._devices[name]
            return None
        return GpuStats(name, rates.gpu / 100, memory.used, memory.total)
