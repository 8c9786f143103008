"""Documents written while others are translated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman_producer.runs.planning import Target
from dragoman_producer.runs.writing import Document, DocumentWriter


class WritesAlong:
    """Writes files of a target as soon as their segments are settled, in their order."""

    def __init__(self, writer: DocumentWriter, target: Target, files: Sequence[int]) -> None:
        self._writer = writer
        self._target = target
        self._waiting = list(files)[::-1]
        self._first = 0

    async def write_settled(self) -> None:
        """Write the next documents, up to the first one that waits for a segment."""
        while self._waiting:
            found = self._writer.unsettled(self._waiting[-1], self._target, self._first)
            if found is not None:
                self._first = found
                return
            self._first = 0
            await self._writer.write(self._next())
            await asyncio.sleep(0)  # documents that are unchanged wait for nothing: let Ctrl-C in

    async def write_rest(self, *, at_once: int) -> None:
        """Write all that are settled; record the others as interrupted."""
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._write_some(), name="dragoman-write")

    async def _write_some(self) -> None:
        while self._waiting:
            is_settled = self._writer.unsettled(self._waiting[-1], self._target) is None
            document = self._next()
            if is_settled:
                await self._writer.write(document)
            else:
                self._writer.interrupt(document)
            await asyncio.sleep(0)

    def _next(self) -> Document:
        return self._writer.document(self._waiting.pop(), self._target)
