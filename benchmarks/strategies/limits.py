"""Name of the memory shared by the process that lowers an engine's limit and the engine."""

from __future__ import annotations

from typing import Final

VARIABLE: Final = "DRAGOMAN_STRATEGIES_LIMIT"
"""Names a file of four bytes: the running requests allowed, 0 for the engine's own number."""
QUALIFIED_NAME: Final = "limited_scheduler.LimitedScheduler"
