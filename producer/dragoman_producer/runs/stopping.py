"""The request to stop a run."""

from __future__ import annotations

import asyncio


class Stop:
    """Ends a run: it submits nothing more, keeps what arrives within 5 s, and reports."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def __call__(self) -> None:
        """Stop the run. Call it in the thread of the event loop."""
        self.asked.set()
