"""Where does the process that lowers an engine's limit meet the one that obeys it?"""

from __future__ import annotations

from typing import Final

VARIABLE: Final = "DRAGOMAN_STRATEGIES_LIMIT"
"""Names a file of four bytes: the running requests allowed, 0 for the engine's own number."""
QUALIFIED_NAME: Final = "limited_scheduler.LimitedScheduler"
