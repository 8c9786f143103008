"""Decompression within a bound, whatever size the compressed bytes claim.

The codecs release the interpreter's lock, so a thread may expand while the event loop works.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable
from typing import Any, Final

import cramjam

_GZIP: Final = 31
"""zlib's window bits for a gzip header and the largest window."""
_PIECE: Final = 1 << 18
_XERIAL: Final = struct.pack("!bccccccBii", -126, *(bytes([each]) for each in b"SNAPPY"), 0, 1, 1)
_BLOCK: Final = struct.Struct("!i")
CODECS: Final = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_Buffer = Any
"""Writable buffer; a payload that does not fit is refused."""


class NotExpanded(Exception):
    """The bytes are damaged, use an unknown codec, or exceed the limit."""


class Expander:
    """Expands one payload after another into the same `limit` bytes of memory.

    Untouched pages cost nothing: the system maps a page at the first write to it.
    """

    def __init__(self, limit: int) -> None:
        self._buffer = mmap.mmap(-1, limit)

    def expand(self, codec: int, payload: memoryview) -> memoryview:
        """Return the expanded bytes, valid until the next call. Raises NotExpanded."""
        decompress = _DECOMPRESS.get(codec)
        if decompress is None:
            raise NotExpanded(f"codec {codec} is not known")
        try:
            size = decompress(payload, self._buffer)
        except Exception as error:  # every error of a codec means the same
            raise NotExpanded(CODECS[codec]) from error
        return memoryview(self._buffer)[:size]


def _gzip(payload: memoryview, buffer: _Buffer) -> int:
    """Expand every member of a gzip file; zeros after the last one are padding."""
    size, left = 0, payload.tobytes()
    while left.strip(b"\0"):
        member = zlib.decompressobj(_GZIP)
        size = _gzip_member(member, left, buffer, size)
        left = member.unused_data
    return size


def _gzip_member(member: Any, data: bytes, buffer: _Buffer, size: int) -> int:
    while not member.eof:
        piece = member.decompress(data, _PIECE)
        buffer[size : size + len(piece)] = piece
        size += len(piece)
        if not piece and not member.eof:
            raise zlib.error("the stream is truncated")
        data = member.unconsumed_tail
    return size


def _snappy(payload: memoryview, buffer: _Buffer) -> int:
    if payload[: len(_XERIAL)] != _XERIAL:
        return _snappy_block(payload, buffer, 0)
    size, at = 0, len(_XERIAL)
    while at < len(payload):
        (length,) = _BLOCK.unpack_from(payload, at)
        at += _BLOCK.size
        if not 0 < length <= len(payload) - at:
            raise ValueError("a block exceeds its payload")
        size = _snappy_block(payload[at : at + length], buffer, size)
        at += length
    return size


def _snappy_block(block: memoryview, buffer: _Buffer, size: int) -> int:
    wanted = cramjam.snappy.decompress_raw_len(block)
    if wanted > len(buffer) - size:  # checked first: the codec allocates what the block claims
        raise ValueError("it does not fit")
    into = memoryview(buffer)[size : size + wanted]
    return size + int(cramjam.snappy.decompress_raw_into(block, into))


def _lz4(payload: memoryview, buffer: _Buffer) -> int:
    return int(cramjam.lz4.decompress_into(payload, buffer))


def _zstd(payload: memoryview, buffer: _Buffer) -> int:
    return int(cramjam.zstd.decompress_into(payload, buffer))


_DECOMPRESS: Final[dict[int, Callable[[memoryview, _Buffer], int]]] = {
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}
