"""Places of the replicas: the GPUs of each, turns at them, and the end when none can work.

Standard library only, like everything that is imported before the first replica starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from dragoman_worker.process.exits import Exit

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


@dataclass(slots=True)
class Shared:
    """What the restarters know of one another. `places` are those of all replicas."""

    places: Sequence[Place] = ()
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    any_was_ready: bool = False
    aborted: bool = False
    _measuring: dict[tuple[str, ...], asyncio.Lock] = field(default_factory=dict)
    _given_up: dict[int, Exit] = field(default_factory=dict)

    def start_turn(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Return the context of a start, from the process until it is ready or has exited.

        Replicas start side by side. Only engines that measure the free memory of the same GPUs
        take turns: each would count what another takes meanwhile as its own.
        """
        if not place.measures_memory:
            return nullcontext()
        return self._measuring.setdefault(place.gpus, asyncio.Lock())

    def became_ready(self, number: int) -> None:
        """Note that replica `number` is ready: it has not given up, whatever failed before."""
        self.any_was_ready = True
        self._given_up.pop(number, None)

    def gave_up(self, number: int, result: Exit) -> Exit | None:
        """Return the exit of the whole run now that replica `number` has given up, if it ends.

        With several GPUs, one that fails does not stop the others: the run ends once every replica
        has given up and none has been ready since. Until then each is started again, and a start
        under way is no reason to wait: else two that fail in turn would never end the run.
        """
        if len({place.gpus for place in self.places}) <= 1:
            return result
        self._given_up[number] = result
        if len(self._given_up) < len(self.places):
            return None
        # Status 2 says that starting again does not help; a single failure of another kind denies
        # that.
        first = min(self._given_up.values(), key=lambda each: each.status)
        others = "the replicas on all other GPUs have failed too"
        return replace(first, message=f"{first.message}; {others}")
