"""Partitioner of the records that the worker writes: murmur2 of the key, as Kafka's clients."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from aiokafka.partitioner import DefaultPartitioner

LONGEST_HASHED: Final = 1024
"""aiokafka's murmur2 is Python: a key of 500 KB blocks the event loop for 130 ms."""
_MURMUR2: Final = DefaultPartitioner()


def partition_for(
    key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]
) -> int:
    """Return the partition of a key; a key longer than any job's is hashed with SHA-256 first."""
    if key is not None and len(key) > LONGEST_HASHED:
        key = hashlib.sha256(key).digest()
    partition: int = _MURMUR2(key, all_partitions, available)
    return partition
