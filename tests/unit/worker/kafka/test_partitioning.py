"""A record's partition follows from its key, at a cost that is bounded for any key."""

from __future__ import annotations

import pytest
from aiokafka import partitioner

from dragoman_worker.kafka.publisher import LONGEST_HASHED, partition_for

PARTITIONS = list(range(12))


@pytest.mark.parametrize("key", [b"", b"a1", b"\xff" * LONGEST_HASHED])
def test_a_usual_key_has_the_partition_of_the_default_partitioner(key: bytes) -> None:
    usual = partitioner.DefaultPartitioner()(key, PARTITIONS, PARTITIONS)
    assert partition_for(key, PARTITIONS, PARTITIONS) == usual


def test_a_huge_key_is_hashed_in_c_and_has_one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []
    murmur2 = partitioner.murmur2

    def counted(key: bytes) -> int:
        hashed.append(len(key))
        return int(murmur2(key))

    monkeypatch.setattr(partitioner, "murmur2", counted)
    keys = [b"%d" % number + b"k" * 500_000 for number in range(20)]
    first = [partition_for(key, PARTITIONS, PARTITIONS) for key in keys]
    assert [partition_for(key, PARTITIONS, PARTITIONS) for key in keys] == first
    assert len(set(first)) > 3
    assert max(hashed) <= LONGEST_HASHED


def test_a_record_without_a_key_goes_to_an_available_partition() -> None:
    assert partition_for(None, PARTITIONS, [7]) == 7
