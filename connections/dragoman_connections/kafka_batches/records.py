"""Tolerant reader of a batch's records: an unusable part marks its record, without an error."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from dragoman_connections.kafka_batches.batches import Malformed, encoded_varint, varint

BAD_HEADERS: Final = "it has header names that are not UTF-8, which are omitted"
MAX_HEADERS: Final = 500
"""A header may take 2 bytes of a batch and takes 70 once parsed, in C code that never yields:
without a bound, 6 KB of zstd block a process for a minute and take 2.4 GB of its memory."""
MANY_HEADERS: Final = f"it has more than {MAX_HEADERS} headers, which are omitted"
MARK: Final = f"unreadable-{secrets.token_hex(8)}"
"""Name of the last header of a record that could not be read completely.

No producer can know it, so it stays with the record in aiokafka's parser and buffers.
"""
_Header = tuple[bytes, bytes | None]
_Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """Fields of one record; offset and timestamp are relative to those of its batch."""

    attributes: bytes
    timestamp: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[_Header]

    def at(self, offset: int) -> Record:
        """Return the same record at another offset."""
        return replace(self, offset=offset)

    def encoded(self) -> bytes:
        """Return the record's bytes in a batch."""
        parts = [self.attributes, encoded_varint(self.timestamp), encoded_varint(self.offset)]
        parts += [_sized(self.key), _sized(self.value), encoded_varint(len(self.headers))]
        parts += [_sized(part) for header in self.headers for part in header]
        body = b"".join(parts)
        return encoded_varint(len(body)) + body


def placeholder(offset: int, why: str) -> Record:
    """Return a record of which only the offset is known."""
    return Record(b"\0", 0, offset, None, None, [(MARK.encode(), why.encode())])


def starts(data: memoryview) -> Iterator[int]:
    """Yield where each record begins, then the end of the last. Raises Malformed."""
    at = 0
    while at < len(data):
        yield at
        at = _end(data, at)[1]
    yield at


def offset_of(data: memoryview, start: int) -> int:
    """Return the relative offset of the record at `start`. Raises Malformed."""
    _, at = varint(data, start)
    _, at = varint(data, at + 1)  # behind the attributes: the timestamp
    return varint(data, at)[0]


def has_too_many_headers(data: memoryview) -> bool:
    """Return whether any record has more than MAX_HEADERS headers. Raises Malformed."""
    start = 0
    while start < len(data):
        at, end = _end(data, start)
        if end - at > 2 * MAX_HEADERS and _header_count(data, at) > MAX_HEADERS:
            return True
        start = end
    return False


def _header_count(data: memoryview, at: int) -> int:
    """Return the number of headers of the record whose fields begin at `at`."""
    _, at = varint(data, at + 1)  # behind the attributes: the timestamp
    _, at = varint(data, at)
    for _ in ("key", "value"):
        length, at = varint(data, at)
        at += max(0, length)
    return varint(data, at)[0]


def read_record(data: memoryview, start: int) -> tuple[Record, int]:
    """Return the record at `start` and where the next one begins. Raises Malformed.

    Headers whose names are not UTF-8 are omitted, as are all headers of a record with more than
    MAX_HEADERS; the record is then marked as unreadable.
    """
    at, end = _end(data, start)
    attributes, (timestamp, at) = data[at : at + 1].tobytes(), varint(data, at + 1)
    offset, at = varint(data, at)
    key, at = _field(data, at, end)
    value, at = _field(data, at, end)
    if varint(data, at)[0] > MAX_HEADERS:
        mark = (MARK.encode(), MANY_HEADERS.encode())
        return Record(attributes, timestamp, offset, key, value, [mark]), end
    headers, at = _headers(data, at, end)
    if at != end:
        raise Malformed("a record is longer than its fields")
    kept = [(name, content) for name, content in headers if name is not None and _utf8(name)]
    if len(kept) < len(headers):
        kept.append((MARK.encode(), BAD_HEADERS.encode()))
    return Record(attributes, timestamp, offset, key, value, kept), end


def _end(data: memoryview, start: int) -> tuple[int, int]:
    """Return where the fields of a record begin and end."""
    length, at = varint(data, start)
    if length <= 0 or at + length > len(data):
        raise Malformed("a record exceeds its batch")
    return at, at + length


def _field(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = varint(data, at)
    if length < 0:
        return None, at
    if at + length > end:
        raise Malformed("a field is longer than its record")
    return data[at : at + length].tobytes(), at + length


def _headers(data: memoryview, at: int, end: int) -> tuple[list[tuple[Any, bytes | None]], int]:
    count, at = varint(data, at)
    if not 0 <= count <= end - at:
        raise Malformed("a record cannot have so many headers")
    headers: list[tuple[Any, bytes | None]] = []
    for _ in range(count):
        name, at = _field(data, at, end)
        content, at = _field(data, at, end)
        headers.append((name, content))
    return headers, at


def _utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sized(content: bytes | None) -> bytes:
    return encoded_varint(-1) if content is None else encoded_varint(len(content)) + content


def unmarked(headers: _Headers) -> tuple[_Headers, str | None]:
    """Return the producer's headers, and why the record is unreadable; None if it is readable."""
    if not headers or headers[-1][0] != MARK:
        return headers, None
    return headers[:-1], (headers[-1][1] or b"").decode()
