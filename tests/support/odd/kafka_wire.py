"""Record batches written and read byte by byte, for records that no client library sends.

Produce v7 and Fetch v4 of the Kafka protocol on one plain socket to a single broker; batches are
version 2. Timestamps, header names, counts and codecs are whatever the caller says.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

import cramjam
from aiokafka.codec import (
    gzip_decode,
    gzip_encode,
    lz4_decode,
    lz4_encode,
    snappy_decode,
    snappy_encode,
    zstd_decode,
    zstd_encode,
)
from aiokafka.record.util import calc_crc32c

CODECS: Final = {None: 0, "none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_PRODUCE, _FETCH = 0, 1
_TIMEOUT_S: Final = 60.0
_ENCODE: Final[dict[int, Callable[[bytes], bytes]]] = {
    0: lambda data: data,
    1: gzip_encode,
    2: snappy_encode,
    3: lz4_encode,
    4: zstd_encode,
}
_DECODE: Final[dict[int, Callable[[bytes], bytes]]] = {
    0: lambda data: data,
    1: gzip_decode,
    2: snappy_decode,
    3: lz4_decode,
    4: zstd_decode,
}
_HEAD: Final = struct.Struct(">qiibIhiqqqhii")


class Refused(Exception):
    """The broker refused the batch; it never reaches a worker."""


class Record(Protocol):
    """The parts of one record of a batch."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str | bytes, bytes | None]]: ...
    @property
    def timestamp_ms(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Read:
    """A record as stored in the log."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: dict[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """The records' bytes, compressed by the codec, and the header fields of the batch."""

    payload: bytes
    count: int
    codec: int
    first_ms: int
    largest_ms: int


def batch_of(records: Sequence[Record], *, codec: str | None, now_ms: int) -> Batch:
    """Make the batch of these records; a record without a timestamp gets `now_ms`."""
    stamps = [now_ms if one.timestamp_ms is None else one.timestamp_ms for one in records]
    plain = b"".join(
        _record(one, number, stamp - stamps[0])
        for number, (one, stamp) in enumerate(zip(records, stamps, strict=True))
    )
    number = CODECS[codec]
    return Batch(_ENCODE[number](plain), len(records), number, stamps[0], max(stamps))


def bomb(codec: str, *, records: int, value_bytes: int, now_ms: int) -> Batch:
    """Make a batch of spaces, compressed as a stream: small in the log, large when unpacked."""
    compressor = {
        "gzip": cramjam.gzip.Compressor,
        "lz4": cramjam.lz4.Compressor,
        "zstd": cramjam.zstd.Compressor,
    }[codec]()
    blank = b" " * min(value_bytes, 1_000_000)
    for number in range(records):
        body = b"\0" + _varint(0) + _varint(number) + _varint(-1) + _varint(value_bytes)
        end = _varint(0)
        compressor.compress(_varint(len(body) + value_bytes + len(end)) + body)
        for left in range(value_bytes, 0, -len(blank)):
            compressor.compress(blank[:left])
        compressor.compress(end)
    return Batch(bytes(compressor.finish()), records, CODECS[codec], now_ms, now_ms)


class KafkaWire:
    """One connection to a single broker."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def produce(self, topic: str, partition: int, batch: Batch) -> int:
        """Publish one batch and return its first offset. Raises Refused."""
        data = _encoded(batch)
        body = struct.pack(">hhii", -1, -1, 30_000, 1) + _string(topic)
        body += struct.pack(">iii", 1, partition, len(data)) + data
        reply = _Reader(self._ask(_PRODUCE, 7, body))
        reply.unpack(">i")
        reply.string()
        _, _, error, offset = reply.unpack(">iihq")
        if error:
            raise Refused(f"the broker refused the batch with error {error}")
        return int(offset)

    def fetch(self, topic: str, partition: int, offset: int) -> list[Read]:
        """Return the records of one response from an offset, without control records."""
        body = struct.pack(">iiiibi", -1, 10, 1, 50_000_000, 0, 1) + _string(topic)
        body += struct.pack(">iiqi", 1, partition, offset, 50_000_000)
        reply = _Reader(self._ask(_FETCH, 4, body))
        reply.unpack(">ii")
        reply.string()
        _, _, error, _, _, aborted = reply.unpack(">iihqqi")
        if error:
            raise Refused(f"the broker refused the fetch with error {error}")
        for _ in range(max(0, aborted)):
            reply.unpack(">qq")
        (size,) = reply.unpack(">i")
        return [one for one in _records(reply.raw(max(0, size))) if one.offset >= offset]

    def _ask(self, api: int, version: int, body: bytes) -> bytes:
        self._number += 1
        head = struct.pack(">hhi", api, version, self._number) + _string("odd-records")
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)[4:]

    def _exactly(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(min(1 << 20, count - len(parts)))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)


# --- encoding -----------------------------------------------------------------------------------


def _record(record: Record, number: int, delta_ms: int) -> bytes:
    body = b"\0" + _varint(delta_ms) + _varint(number) + _bytes(record.key) + _bytes(record.value)
    body += _varint(len(record.headers))
    for name, value in record.headers:
        raw = name.encode() if isinstance(name, str) else name
        body += _varint(len(raw)) + raw + _bytes(value)
    return _varint(len(body)) + body


def _encoded(batch: Batch) -> bytes:
    rest = struct.pack(
        ">hiqqqhii",
        batch.codec,
        batch.count - 1,
        batch.first_ms,
        batch.largest_ms,
        -1,
        -1,
        -1,
        batch.count,
    )
    rest += batch.payload
    return struct.pack(">qiibI", 0, len(rest) + 9, -1, 2, calc_crc32c(rest)) + rest


def _bytes(value: bytes | None) -> bytes:
    return _varint(-1) if value is None else _varint(len(value)) + value


def _varint(value: int) -> bytes:
    left = ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


# --- decoding -----------------------------------------------------------------------------------


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def unpack(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._data, self.at)
        self.at += struct.calcsize(layout)
        return found

    def raw(self, count: int) -> bytes:
        found = self._data[self.at : self.at + count]
        self.at += count
        return found

    def string(self) -> str:
        return self.raw(self.unpack(">h")[0]).decode()

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)

    def nullable(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.raw(size)


def _records(data: bytes) -> Iterator[Read]:
    reader = _Reader(data)
    while reader.left >= _HEAD.size:
        base, length = struct.unpack_from(">qi", data, reader.at)
        if reader.left < length + 12:
            return  # cut off where the response was full
        fields = reader.unpack(_HEAD.format)
        attributes, count = fields[5], fields[12]
        body = reader.raw(length + 12 - _HEAD.size)
        if not attributes & 0x20:  # no control batch
            inside = _Reader(_DECODE[attributes & 7](body))
            yield from (_read(inside, base) for _ in range(count))


def _read(reader: _Reader, base: int) -> Read:
    reader.varint()
    reader.unpack(">b")
    reader.varint()
    offset = base + reader.varint()
    key, value = reader.nullable(), reader.nullable()
    headers: dict[bytes, bytes | None] = {}
    for _ in range(reader.varint()):
        name = reader.raw(reader.varint())
        headers[name] = reader.nullable()
    return Read(offset, key, value, headers)
