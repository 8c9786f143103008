"""Scheduler that makes a resident engine act as one with fewer sequences.

Starting an 8B engine takes most of a minute of the GPU; `max_num_seqs` is fixed at its start. This
scheduler is vLLM's own, but reads the bound on running requests from four shared bytes. Batches
of 16 run the same captured graphs that an engine started with 16 would run.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Any

from limits import VARIABLE
from vllm.v1.core.sched.async_scheduler import AsyncScheduler


class LimitedScheduler(AsyncScheduler):  # type: ignore[misc]
    """vLLM's scheduler; change the limit only while nothing runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        with Path(os.environ[VARIABLE]).open("rb") as file:
            self._limit = mmap.mmap(file.fileno(), 4, access=mmap.ACCESS_READ)
        self._most = self.max_num_running_reqs

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """Run one step with the current limit; 0 means the engine's own."""
        limit = struct.unpack("<I", self._limit[:4])[0] or self._most
        self.max_num_running_reqs = min(limit, self._most)
        if hasattr(self, "max_num_active_reqs"):  # since 0.3x, admission has a limit of its own
            self.max_num_active_reqs = self.max_num_running_reqs
        return super().schedule(*args, **kwargs)
