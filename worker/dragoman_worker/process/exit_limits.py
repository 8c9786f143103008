"""Time limits that the watchdog of a replica and its supervisor share."""

from __future__ import annotations

from typing import Final

ENDS_S: Final = 300.0
"""Without a sign of life for so long the replica ends itself."""
HALT_WITHIN_S: Final = 60.0
"""A halt that takes longer hangs itself: releasing and leaving the group are bounded below it."""
