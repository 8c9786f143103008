"""Child processes that read and write documents, so that a hostile file ends one at most."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from subprocess import DEVNULL
from typing import Any, Final

from dragoman_connections.child import ChannelClosed, ChildProcess
from dragoman_connections.terminal import Extra, how_to_install
from dragoman_producer.errors import DragomanError
from dragoman_producer.runs.child_wire import (
    MISSING_PARSER,
    ROWS_PER_MESSAGE,
    Text,
    decoded,
    encoded,
)
from dragoman_producer.runs.progress import PROGRESS, Tell, Telling
from dragoman_producer.runs.refusals import NO_SPACE, DocumentRefused

SECONDS_PER_FILE: Final = 120
"""Of CPU time."""
_MODULE: Final = "dragoman_producer.runs.child"

INTERRUPTED: Final = "interrupted"
"""Reason of a document that a run did not finish because it was asked to end."""

Rows = Callable[[list[list[Any]]], None]


class MissingParser(DragomanError):
    """A package is not installed that reads documents of this run; the message says which."""


class Children:
    """A few child processes, each with one document at a time; started when first needed."""

    def __init__(self, count: int | None = None, seconds: int = SECONDS_PER_FILE) -> None:
        self.count = count or min(4, os.cpu_count() or 1)
        self._seconds = seconds
        self._idle: asyncio.Queue[ChildProcess | None] = (
            asyncio.LifoQueue()
        )  # one that runs comes first
        for _ in range(self.count):
            self._idle.put_nowait(None)
        self._all: set[ChildProcess] = set()

    async def read(
        self, request: dict[str, Any], rows: Rows, tell: Tell | None = None
    ) -> dict[str, Any]:
        """Extract a file: call `rows` with some rows at a time, then return what is known of it.

        A row is [text, place, max_chars, state, context, headings]. Raises DocumentRefused.
        """
        return await self._read(request, "read", rows, tell)

    async def codes(self, request: dict[str, Any], rows: Rows) -> None:
        """Call `rows` with [number, codes] of the segments of a file that have inline codes.

        `request["sha256"]` is the digest of the file. Raises DocumentRefused.
        """
        await self._read(request, "codes", rows)

    async def links(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the links of a page as [line, target], and its ids if they are wanted.

        Raises DocumentRefused.
        """
        async with self._child() as child:
            await self._ask(child, {**request, "do": "links", "seconds": self._seconds})
            return await self._told(child, Telling("read"))

    async def _read(
        self, request: dict[str, Any], what: str, rows: Rows, tell: Tell | None = None
    ) -> dict[str, Any]:
        async with self._child() as child:
            await self._ask(child, {**request, "do": what, "seconds": self._seconds})
            said = Telling("read", tell)
            while "rows" in (answer := await self._told(child, said)):
                rows(answer["rows"])
            return answer

    async def write(
        self, request: dict[str, Any], texts: Iterable[Text], tell: Tell | None = None
    ) -> dict[str, Any]:
        """Write a document to `request["temporary"]`; return its digest and bad segments.

        Raises DocumentRefused.
        """
        async with self._child() as child:
            await self._ask(child, {**request, "do": "write", "seconds": self._seconds})
            sending = asyncio.create_task(self._send_texts(child, texts), name="dragoman-texts")
            try:
                return await self._told(child, Telling("written", tell), sending)
            finally:
                sending.cancel()  # it has ended, unless the answer failed
                await asyncio.gather(sending, return_exceptions=True)

    async def close(self) -> None:
        """Terminate all children."""
        for child in list(self._all):
            await self._end(child)

    @asynccontextmanager
    async def _child(self) -> AsyncIterator[ChildProcess]:
        """Give an idle child; one that is left in the middle of an answer is replaced."""
        child = await self._idle.get()
        try:
            if child is None or child.status is not None:
                child = await self._started()
            yield child
        except DocumentRefused:
            raise
        except BaseException:
            if child is not None:
                await self._end(child)
                child = None
            raise
        finally:
            self._idle.put_nowait(child if child is not None and child.status is None else None)

    async def _started(self) -> ChildProcess:
        child = await ChildProcess.start(
            # -P: a folder of documents may hold a file that is called like a module.
            lambda descriptor: (sys.executable, "-P", "-m", _MODULE, descriptor),
            stdout=DEVNULL,
            stderr=DEVNULL,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "ARROW_DEFAULT_MEMORY_POOL": "system",  # others keep what was freed
            },
        )
        self._all.add(child)
        return child

    async def _end(self, child: ChildProcess) -> None:
        self._all.discard(child)
        await child.end()

    async def _ask(self, child: ChildProcess, message: object) -> None:
        child.channel.send(encoded(message))
        await child.channel.drain()

    async def _send_texts(self, child: ChildProcess, texts: Iterable[Text]) -> None:
        some: list[Text] = []
        for text in texts:
            some.append(text)
            if len(some) == ROWS_PER_MESSAGE:
                await self._ask(child, some)
                some = []
                if child.channel.closed:  # reading its answer finds out why it ended
                    return
        if some:
            await self._ask(child, some)
        await self._ask(child, [])

    async def _told(
        self, child: ChildProcess, said: Telling, *beside: asyncio.Task[None]
    ) -> dict[str, Any]:
        """Return the next answer, and tell of the progress until it comes.

        Raises Refused, MissingParser, and what a task `beside` has failed with.
        """
        while True:
            receiving = asyncio.create_task(self._answer(child), name="dragoman-answer")
            try:
                while not receiving.done():
                    waited_for = [receiving, *(each for each in beside if not each.done())]
                    await asyncio.wait(
                        waited_for, timeout=said.wait_s, return_when=asyncio.FIRST_COMPLETED
                    )
                    for each in beside:
                        if each.done():
                            each.result()
                    said.tell()
                answer = receiving.result()
            finally:
                receiving.cancel()
            if PROGRESS not in answer:
                return answer
            said.note(*answer[PROGRESS])

    async def _answer(self, child: ChildProcess) -> dict[str, Any]:
        """Return the next message of a child. Raises DocumentRefused and MissingParser."""
        try:
            answer: dict[str, Any] = decoded(await child.channel.receive())
        except ChannelClosed:
            self._all.discard(child)
            raise _death(await child.wait(), self._seconds) from None
        if answer.get("reason") == MISSING_PARSER:
            extra: Extra = "parquet" if "pyarrow" in answer["detail"] else "documents"
            raise MissingParser(f"{answer['detail']}; {how_to_install(extra)}")
        if "reason" in answer:
            raise DocumentRefused(answer["reason"], answer["detail"])
        return answer


def _death(status: int, seconds: int) -> DocumentRefused:
    if status in {-signal.SIGALRM, -signal.SIGPROF}:
        return DocumentRefused(
            "timeout", f"it was not done within {seconds} s of CPU time; split the file"
        )
    if status in {-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP}:
        return DocumentRefused(INTERRUPTED, "it is not finished; run the same command again")
    if status == -signal.SIGXFSZ:
        return DocumentRefused(NO_SPACE, "the output is larger than this user may write")
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return DocumentRefused("corrupt", f"the process that read it ended with {how}")
