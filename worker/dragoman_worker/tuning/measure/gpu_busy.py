"""How busy were the GPUs over a while? Sampled in a thread; nothing where there is none."""

from __future__ import annotations

import threading
from statistics import fmean
from typing import Final

from dragoman_worker.engines.gpu import Gpus

_EVERY_S: Final = 0.1


class GpuBusy:
    """Says that some kernel ran, not that the GPU was full: tell it beside jobs/s only."""

    def __init__(self, devices: int) -> None:
        self._gpus = Gpus(devices)
        self._samples: list[float] = []

    def start(self) -> None:
        """Sample from now on, for as long as the process lives."""
        threading.Thread(target=self._sample, name="gpu-busy", daemon=True).start()

    def forget(self) -> None:
        """Let `mean` be of what comes from now on."""
        self._samples = []

    def mean(self) -> float | None:
        """In percent, of all GPUs of the engine; None without samples."""
        samples = list(self._samples)
        return round(100 * fmean(samples), 1) if samples else None

    def _sample(self) -> None:
        if not self._gpus.open():
            return
        pause = threading.Event()
        while stats := self._gpus.read():
            self._samples.append(fmean(reading.busy for reading in stats))
            pause.wait(_EVERY_S)
