"""Words how an optional part of Dragoman is installed; every message and page says it alike.

Nothing is on a package index yet, so the advice works in a clone of the repository.
"""

from __future__ import annotations

from typing import Literal

Extra = Literal["echo", "worker", "plots", "demo"]


def how_to_install(extra: Extra) -> str:
    """The command that installs one extra."""
    return f"in a clone of the repository, `pip install '.[{extra}]'`"
