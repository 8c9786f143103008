"""Count of the messages that arrive from vLLM's engine processes.

vLLM's front end checks each message that it receives with `validate_alive`, before anything else:
those with outputs, with statistics alone, and empty ones. Its gauges are no sign of life: they
keep their last values while the engine hangs.
"""

from __future__ import annotations

from typing import Any

from dragoman_worker.log import logger


class Messages:
    """Counts messages of all engine processes together, data-parallel ones too.

    One of several processes that hangs is not found by that: its requests run into
    `retry.attempt_timeout_s`, and vLLM gives new ones to those with fewer in flight.
    """

    def __init__(self) -> None:
        self._received = 0
        self._counted = False

    def count(self) -> int:
        """Return the messages so far; a vLLM in which they cannot be counted always seems alive."""
        if not self._counted:
            self._received += 1
        return self._received

    def watch(self, client: Any) -> None:
        """Count from now on what vLLM's AsyncLLM receives."""
        resources = getattr(getattr(client, "engine_core", None), "resources", None)
        check = getattr(resources, "validate_alive", None)
        if resources is None or check is None:
            logger().warning("engine_not_watched")
            return

        def counting(frames: Any) -> None:
            self._received += 1
            check(frames)

        resources.validate_alive = counting
        self._counted = True
