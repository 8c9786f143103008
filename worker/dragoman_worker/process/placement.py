"""GPUs and settings of one replica, as the supervisor starts it. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_OPTIONS: Final = "engine.options."


@dataclass(frozen=True, slots=True)
class Place:
    """GPUs of a replica by their names for CUDA, and settings of its own by dotted name."""

    gpus: tuple[str, ...] = ()
    """Empty: the replica inherits the GPUs of the supervisor, or uses none."""
    settings: Mapping[str, float] = field(default_factory=dict)
    measures_memory: bool = False
    """Whether the engine finds its KV cache by measuring GPU memory that other engines share."""

    @property
    def engine_options(self) -> Mapping[str, float]:
        """Return the settings that are engine options, by their names in `engine.options`."""
        return {
            name.removeprefix(_OPTIONS): value
            for name, value in self.settings.items()
            if name.startswith(_OPTIONS)
        }

    @property
    def name(self) -> str:
        """Return the GPUs for a message, such as "GPU 2, 3"; empty if the place has none."""
        return f"GPU {', '.join(self.gpus)}" if self.gpus else ""

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables that restrict the replica to its GPUs.

        NVML numbers GPUs by PCI bus, CUDA by speed unless CUDA_DEVICE_ORDER changes that.
        """
        if not self.gpus:
            return {}
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(self.gpus)}
