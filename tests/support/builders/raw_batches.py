"""Record batches that no regular producer sends, and a way to publish them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka import codec as codecs
from aiokafka.errors import NotLeaderForPartitionError, for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.util import calc_crc32c

Header = tuple[bytes | None, bytes | None]
CODECS: dict[str, tuple[int, Any]] = {
    "none": (0, bytes),
    "gzip": (1, codecs.gzip_encode),
    "snappy": (2, lambda payload: codecs.snappy_encode(payload, xerial_compatible=False)),
    "xerial": (2, codecs.snappy_encode),
    "lz4": (3, codecs.lz4_encode),
    "zstd": (4, codecs.zstd_encode),
}


def number(value: int) -> bytes:
    """Encode a zigzag varint."""
    zigzag = (value << 1) if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)


def record(
    value: bytes | None,
    *,
    delta: int,
    key: bytes | None = None,
    headers: Sequence[Header] = (),
    timestamp: int = 0,
) -> bytes:
    """Encode one record of a batch; `delta` and `timestamp` are relative to the batch's."""
    body = b"\0" + number(timestamp) + number(delta) + _field(key) + _field(value)
    body += number(len(headers)) + b"".join(_field(part) for pair in headers for part in pair)
    return number(len(body)) + body


def crowded_record(value: bytes, *, delta: int, many: int) -> bytes:
    """Encode a record with `many` headers without name and value, two bytes each."""
    body = b"\0" + number(0) + number(delta) + _field(None) + _field(value)
    body += number(many) + (number(0) + number(-1)) * many
    return number(len(body)) + body


def batch(
    records: Sequence[bytes],
    *,
    codec: str = "none",
    count: int | None = None,
    last_delta: int | None = None,
    timestamp: int = 1_700_000_000_000,
    base_offset: int = 0,
    payload: bytes | None = None,
    attributes: int = 0,
) -> bytes:
    """Encode a batch of format 2; `count`, `last_delta` and `payload` (compressed) may be false."""
    kind, compress = CODECS[codec]
    body = bytes(compress(b"".join(records))) if payload is None else payload
    many = len(records) if count is None else count
    checked = struct.pack(
        ">hiqqqhii",
        *(kind | attributes, many - 1 if last_delta is None else last_delta),
        *(timestamp, timestamp, -1, -1, -1, many),
    )
    checked += body
    head = struct.pack(">qiibI", base_offset, 9 + len(checked), 0, 2, calc_crc32c(checked))
    return head + checked


def _field(content: bytes | None) -> bytes:
    return number(-1) if content is None else number(len(content)) + content


async def publish_raw(bootstrap: str, topic: str, raw: bytes, partition: int = 0) -> int:
    """Publish the bytes as they are and return the first offset; raises the broker's error.

    A topic that has just been made may be known before its broker leads it: then the broker is
    asked again, as by a regular producer.
    """
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer, asyncio.timeout(30):
        await producer.partitions_for(topic)
        node = next(iter(producer.client.cluster.brokers())).nodeId
        request = ProduceRequest(None, -1, 10_000, [(topic, [(partition, raw)])])
        code, offset = NotLeaderForPartitionError.errno, -1
        while code == NotLeaderForPartitionError.errno:
            answer = await producer.client.send(node, request)
            (_, ((_, code, offset, *_),)), *_ = answer.topics
            await producer.client.force_metadata_update()
    if code:
        raise for_code(code)
    return int(offset)
