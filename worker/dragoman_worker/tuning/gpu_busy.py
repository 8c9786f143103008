"""How busy is the GPU? NVML's utilisation, sampled in a thread; nothing where there is none."""

from __future__ import annotations

import threading
from statistics import fmean
from typing import Any, Final

from dragoman_worker.replicas import visible_device

_EVERY_S: Final = 0.1


class GpuBusy:
    """Says that some kernel ran, not that the GPU was full: tell it beside jobs/s only."""

    def __init__(self) -> None:
        self._samples: list[float] = []

    def start(self) -> None:
        """Sample from now on, for as long as the process lives."""
        threading.Thread(target=self._sample, name="gpu-busy", daemon=True).start()

    def forget(self) -> None:
        """Let `mean` be of what comes from now on."""
        self._samples = []

    def mean(self) -> float | None:
        """In percent; None without samples."""
        samples = list(self._samples)
        return fmean(samples) if samples else None

    def _sample(self) -> None:
        try:
            import pynvml  # noqa: PLC0415  comes with vLLM

            pynvml.nvmlInit()
            device = _handle(pynvml)
            pause = threading.Event()
            while not pause.wait(_EVERY_S):
                self._samples.append(float(pynvml.nvmlDeviceGetUtilizationRates(device).gpu))
        except Exception:  # noqa: BLE001  no GPU that tells: no figure
            return


def _handle(pynvml: Any) -> Any:
    name = visible_device()
    if isinstance(name, int):
        return pynvml.nvmlDeviceGetHandleByIndex(name)
    return pynvml.nvmlDeviceGetHandleByUUID(name)
