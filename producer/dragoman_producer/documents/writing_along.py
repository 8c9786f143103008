"""Documents written while others are translated."""

from __future__ import annotations

import asyncio

from dragoman_producer.documents.writing import Document, Writer


class WritesAlong:
    """Writes documents of a target as soon as their segments are settled, in their order."""

    def __init__(self, writer: Writer, documents: list[Document]) -> None:
        self._writer = writer
        self._waiting = documents[::-1]
        self._first = 0

    async def write_settled(self) -> None:
        """Write the next documents, up to the first one that waits for a segment."""
        while self._waiting:
            document = self._waiting[-1]
            found = self._writer.unsettled(document, self._first)
            if found is not None:
                self._first = found
                return
            self._waiting.pop()
            self._first = 0
            await self._writer.write(document)
            await asyncio.sleep(0)  # documents that are unchanged wait for nothing: let Ctrl-C in

    async def write_rest(self, *, at_once: int) -> None:
        """Write all that are settled; record the others as interrupted."""
        limit = asyncio.Semaphore(at_once)

        async def one(document: Document) -> None:
            async with limit:
                if self._writer.unsettled(document) is None:
                    await self._writer.write(document)
                else:
                    self._writer.interrupt(document)

        async with asyncio.TaskGroup() as group:
            for document in reversed(self._waiting):
                group.create_task(one(document), name="dragoman-write")
        self._waiting = []
