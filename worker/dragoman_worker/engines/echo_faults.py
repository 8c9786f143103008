"""Faults of the echo engine (docs/reference/settings.md).

A fault line such as ``#!sleep 2.5`` asks for one in a single text; a file stalls the whole engine.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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


_LOOK_S: Final = 0.2


class StallFile:
    """Whether the file exists, as of at most 0.2 s ago. Without a file it never stalls."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._gone = asyncio.Event()
        self._gone.set()
        self._watch: asyncio.Task[None] | None = None

    @property
    def stalled(self) -> bool:
        """Whether the file exists."""
        return not self._gone.is_set()

    async def gone(self) -> None:
        """Return once the file does not exist, or after `close`."""
        await self._gone.wait()

    def start(self) -> None:
        """Watch the file until `close`."""
        if self._file is not None and self._watch is None:
            self._look(self._file)
            self._watch = asyncio.create_task(self._look_forever(self._file), name="stall-file")

    def close(self) -> None:
        """Stop watching and stall nothing any more. Idempotent."""
        if self._watch is not None:
            self._watch.cancel()
        self._gone.set()

    async def _look_forever(self, file: Path) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self._look(file)

    def _look(self, file: Path) -> None:
        if file.exists():
            self._gone.clear()
        else:
            self._gone.set()
