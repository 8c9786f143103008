"""Parser of the echo engine's fault lines, such as ``#!sleep 2.5`` (docs/reference/settings.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FAULT = re.compile(
    r"#!(?:(?P<plain>hang|exit|engine-dead|fatal|empty|length|repeat|copy)"
    r"|(?P<sleep>sleep)[ \t]+(?P<seconds>\d+(?:\.\d+)?)"
    r"|(?P<transient>transient)[ \t]+(?P<times>\d+))"
    r"[ \t]*\r?(?:\n|\Z)"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A requested fault; `seconds` is set for ``sleep``, `times` for ``transient``."""

    name: str
    seconds: float = 0.0
    times: int = 0


def split_fault(source: str) -> tuple[Fault | None, str]:
    """Return the fault in the first line, or None, and the source without its fault line."""
    if not source.startswith("#!"):
        return None, source
    found = _FAULT.match(source)
    if found is None:
        return None, source
    fault = Fault(
        name=found["plain"] or found["sleep"] or found["transient"],
        seconds=float(found["seconds"] or 0),
        times=int(found["times"] or 0),
    )
    return fault, source[found.end() :]
