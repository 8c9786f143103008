"""Multipart bodies, read part by part while they arrive, in little memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import unquote

from aiohttp import web

from dragoman_gateway.errors import ApiError

_SILENT_S: Final = 60.0
"""For which a sender may send nothing."""
_MOST_PARTS: Final = 100
_HEAD_BYTES: Final = 16 * 1024
_BOUNDARY: Final = re.compile(r'boundary=(?:"([^"]{1,200})"|([^";,\s]{1,200}))', re.IGNORECASE)
_NAME: Final = re.compile(r'[;\s]name="?([^";\r\n]*)"?', re.IGNORECASE)
_FILE: Final = re.compile(
    r'[;\s]filename="((?:\\.|[^"\\\r\n])*)"?|[;\s]filename=([^";\s]+)', re.IGNORECASE
)
_FILE_CODED: Final = re.compile(r"[;\s]filename\*=utf-8''([^;\s]+)", re.IGNORECASE)
_WRONG: Final = "The body is not valid multipart/form-data."


class Content(Protocol):
    """What is needed of aiohttp's stream of a body."""

    async def readany(self) -> bytes: ...


@dataclass(slots=True)
class BodyPart:
    """A part: its field's name, a file's name, and its bytes, which are read once."""

    name: str
    filename: str | None
    chunks: AsyncGenerator[bytes]


class MultipartBody:
    """Yields the parts of a body, the rest of each skipped. Every read raises ApiError."""

    def __init__(self, content_type: str, content: Content, limit: int) -> None:
        match = _BOUNDARY.search(content_type)
        if "multipart/" not in content_type.lower() or match is None:
            raise ApiError(400, "Send the document as multipart/form-data.")
        boundary = (match[1] or match[2]).encode("utf-8", "replace")
        self._mark = b"\r\n--" + boundary
        self._content = content
        self._limit = limit
        self._left = limit
        self._buffer = bytearray(b"\r\n")  # so that the first boundary is like the others

    async def parts(self) -> AsyncIterator[BodyPart]:
        """Yield the parts."""
        await self._skip(self._until_mark())
        for _ in range(_MOST_PARTS):
            while len(self._buffer) < 2:
                await self._more()
            if self._buffer.startswith(b"--"):
                return
            head = (await self._head()).decode("utf-8", "replace")
            chunks = self._until_mark()
            name = _NAME.search(head)
            yield BodyPart(name[1] if name else "", _filename(head), chunks)
            await self._skip(chunks)
        raise ApiError(400, f"The body has more than {_MOST_PARTS} parts.")

    async def _head(self) -> bytes:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _HEAD_BYTES:
                raise ApiError(400, _WRONG)
            await self._more()
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return head

    async def _until_mark(self) -> AsyncGenerator[bytes]:
        keep = len(self._mark) - 1
        while (at := self._buffer.find(self._mark)) < 0:
            if len(self._buffer) > keep:
                chunk = bytes(self._buffer[:-keep])
                del self._buffer[:-keep]
                yield chunk
            await self._more()
        chunk = bytes(self._buffer[:at])
        del self._buffer[: at + len(self._mark)]
        yield chunk

    async def _skip(self, chunks: AsyncIterator[bytes]) -> None:
        async for _ in chunks:
            pass

    async def _more(self) -> None:
        try:
            async with asyncio.timeout(_SILENT_S):
                chunk = await self._content.readany()
        except TimeoutError:
            raise ApiError(408, "The body did not arrive in time.") from None
        except web.RequestPayloadError:
            raise ApiError(400, "The body does not fit its headers.") from None
        if not chunk:
            raise ApiError(400, _WRONG)
        self._left -= len(chunk)
        if self._left < 0:
            raise ApiError(413, f"The document is too large; the limit is {self._limit} bytes.")
        self._buffer += chunk


def _filename(head: str) -> str | None:
    if (coded := _FILE_CODED.search(head)) is not None:
        return unquote(coded[1], errors="replace")
    if (match := _FILE.search(head)) is None:
        return None
    return (match[1] or match[2] or "").replace('\\"', '"').replace("%22", '"')
