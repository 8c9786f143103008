"""Record batches of Kafka's message format 2: header, record boundaries, and new batches.

Formats 0 and 1 are left to aiokafka: no broker since Kafka 0.11 writes them to its own topics.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from aiokafka.record.util import calc_crc32c

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_OVERHEAD: Final = 12
"""Bytes of base offset and length, which the length field does not count."""
_LENGTH: Final = struct.Struct(">i")
CODEC_BITS: Final = 0x07
CONTROL: Final = 0x20
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_CRC_FROM: Final = 21


class Malformed(Exception):
    """The bytes of a batch do not hold the records that its header announces."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """Header of a batch."""

    base_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def codec(self) -> int:
        """The compression type; 0 is none."""
        return self.attributes & CODEC_BITS

    @property
    def is_control(self) -> bool:
        """Whether the batch is a transaction marker."""
        return bool(self.attributes & CONTROL)

    def emptied(self) -> bytes:
        """Return a batch of the same offsets without records that is not a transaction marker.

        Compaction empties a marker to keep its producer's state; aiokafka refuses an empty marker.
        """
        plain = replace(self, attributes=self.attributes & ~CONTROL)
        return plain.batch(b"", last_offset=self.last_offset_delta, count=0)

    def batch(self, records: bytes, *, last_offset: int, count: int) -> bytes:
        """Return an uncompressed batch with these records."""
        attributes = self.attributes & ~CODEC_BITS
        times = (self.first_timestamp, self.max_timestamp)
        producer = (self.producer_id, self.producer_epoch, self.base_sequence)
        length = HEADER.size - _OVERHEAD + len(records)
        epoch = self.leader_epoch
        fields = (self.base_offset, length, epoch, 2, 0, attributes, last_offset)
        head = bytearray(HEADER.pack(*fields, *times, *producer, count))
        crc = calc_crc32c(b"".join((head[_CRC_FROM:], records)))
        _CRC.pack_into(head, _CRC_AT, crc)
        return b"".join((head, records))


def spans(message_set: bytes | memoryview) -> Iterator[tuple[int, int]]:
    """Yield start and end of each whole batch; a broker truncates the last one at its limit."""
    start, size, unpack = 0, len(message_set), _LENGTH.unpack_from
    while start + HEADER.size <= size:
        end = start + _OVERHEAD + unpack(message_set, start + 8)[0]
        if not start + HEADER.size <= end <= size:
            return
        yield start, end
        start = end


def header(batch: memoryview) -> BatchHeader | None:
    """Return the header of a batch; None for an older format or an invalid checksum."""
    base, _, leader_epoch, magic, crc, *others = HEADER.unpack_from(batch)
    if magic != 2 or crc != calc_crc32c(batch[_CRC_FROM:].tobytes()):
        return None
    return BatchHeader(base, leader_epoch, crc, *others)


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a zigzag-encoded number and the position behind it. Raises Malformed."""
    result, shift = 0, 0
    while shift < 70:
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
    raise Malformed("a number has no end")


def encoded_varint(number: int) -> bytes:
    """Return a number in zigzag encoding, the inverse of `varint`."""
    zigzag, encoded = (number << 1) ^ (number >> 63), bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)
