"""Version of the installed package, which results and metrics report."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """Return the version of `dragoman`, "unknown" where it is not installed."""
    try:
        return metadata.version("dragoman")
    except metadata.PackageNotFoundError:
        return "unknown"
