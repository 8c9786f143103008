"""Installation advice for the optional parts of Dragoman, the same in every message and page.

Nothing is on a package index yet, so the advice works in a clone of the repository.
"""

from __future__ import annotations

from typing import Literal

Extra = Literal["documents", "echo", "worker", "plots", "demo", "msk", "otel"]


def how_to_install(extra: Extra) -> str:
    """Return the command that installs one extra."""
    return f"in a clone of the repository, `pip install '.[{extra}]'`"
