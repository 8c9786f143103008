"""Mean GPU utilisation over a period, sampled in a thread; no samples without NVML."""

from __future__ import annotations

import threading
from statistics import fmean
from typing import Final

from dragoman_worker.engines.gpu import Gpus

_EVERY_S: Final = 0.1


class GpuBusy:
    """Share of time in which some kernel ran; it does not show that the GPU was full."""

    def __init__(self, devices: int) -> None:
        self._gpus = Gpus(devices)
        self._samples: list[float] = []

    def start(self) -> None:
        """Start sampling; the thread runs until the process exits."""
        threading.Thread(target=self._sample, name="gpu-busy", daemon=True).start()

    def reset(self) -> None:
        """Discard all samples so far."""
        self._samples = []

    def mean(self) -> float | None:
        """Return the mean over all GPUs of the engine in percent, None without samples."""
        samples = list(self._samples)
        return round(100 * fmean(samples), 1) if samples else None

    def _sample(self) -> None:
        if not self._gpus.open():
            return
        pause = threading.Event()
        while stats := self._gpus.read():
            self._samples.append(fmean(reading.busy for reading in stats))
            pause.wait(_EVERY_S)
