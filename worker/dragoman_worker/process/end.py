"""How `run` ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class End:
    """Its exit status, and why in one line if that is not 0."""

    status: Literal[0, 1, 2]
    message: str = ""
