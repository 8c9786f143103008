"""Fetched message sets are readable after their repair, whatever a producer wrote."""

from __future__ import annotations

import os
import resource
import struct
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.kafka_batches.records import MAX_HEADERS, unmarked
from dragoman_connections.kafka_batches.repair import MAX_PLACES, PIECE, Repair, is_sound
from support.builders.raw_batches import CODECS, Header, batch, crowded_record, number, record

MIB = 1 << 20
COMPRESSED = sorted(set(CODECS) - {"none"})
TWO = [record(b"one", delta=0, key=b"k", headers=[(b"h", None)]), record(b"two", delta=1)]


def repaired(message_set: bytes, budget: int = 16 * MIB) -> bytes:
    return Repair(budget=budget).readable(message_set)


def read(message_set: bytes) -> list[Any]:
    """Return all records as aiokafka reads them, and raise its errors."""
    assert is_sound(message_set)
    found, records = [], MemoryRecords(message_set)
    while records.has_next():
        each: Any = records.next_batch()
        assert each.validate_crc()
        found += list(each)
    return found


def why(found: Any) -> str | None:
    return unmarked(tuple(found.headers))[1]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_records_of_a_compressed_batch_are_read(codec: str) -> None:
    one, two = read(repaired(batch(TWO, codec=codec, base_offset=40)))
    assert (one.offset, one.key, one.value, one.headers) == (40, b"k", b"one", [("h", None)])
    assert (two.offset, two.key, two.value, two.headers) == (41, None, b"two", [])


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_all_records_of_a_batch_with_several_frames_are_read(codec: str) -> None:
    frames = b"".join(bytes(CODECS[codec][1](each)) for each in TWO)
    assert [each.value for each in read(repaired(batch(TWO, codec=codec, payload=frames)))] == [
        b"one",
        b"two",
    ]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_batch_that_expands_beyond_the_limit_becomes_unreadable_records(codec: str) -> None:
    # gzip compresses these to a thousandth; two records exceed the limit with each codec
    large = [record(bytes(33 * MIB), delta=delta) for delta in range(2)]
    found = read(repaired(batch(large, codec=codec, base_offset=7)))
    assert [(each.offset, each.key, each.value) for each in found] == [
        (7, None, None),
        (8, None, None),
    ]
    assert all("64 MiB" in (why(each) or "") for each in found)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "half noise"])
def test_a_damaged_payload_becomes_unreadable_records(codec: str, damage: str) -> None:
    whole = bytes(CODECS[codec][1](b"".join(TWO) * 50))
    payload = {
        "cut": whole[:-9],
        "empty": b"",
        "noise": os.urandom(300),
        "half noise": whole[: len(whole) // 2] + os.urandom(50),
    }[damage]
    found = read(repaired(batch([], codec=codec, payload=payload, count=2)))
    assert [each.offset for each in found] == [0, 1]
    assert all(map(why, found))


def test_a_snappy_block_of_negative_size_stops_the_expansion() -> None:
    frame = bytes(CODECS["xerial"][1](b"")) + struct.pack("!i", -4)
    (found,) = read(repaired(batch([], codec="xerial", payload=frame, count=1)))
    assert why(found)


def test_a_batch_that_claims_billions_of_records_is_one_dead_letter() -> None:
    claimed = batch([], codec="zstd", payload=b"?", count=2**31 - 1)
    (found,) = read(repaired(claimed))
    assert f"up to offset {2**31 - 2}" in (why(found) or "")
    most = read(repaired(batch([], codec="zstd", payload=b"?", count=MAX_PLACES)))
    assert [each.offset for each in most] == list(range(MAX_PLACES))


def test_a_large_batch_is_split_and_keeps_its_offsets() -> None:
    records = [record(bytes([delta]) * MIB, delta=delta) for delta in range(5)]
    pieces = repaired(batch(records, codec="zstd", base_offset=100))
    sizes, message_set = [], MemoryRecords(pieces)
    while message_set.has_next():
        each: Any = message_set.next_batch()
        sizes.append(sum(len(found.value) for found in each))
    assert max(sizes) <= 2 * PIECE
    assert [(each.offset, each.value[:1]) for each in read(pieces)] == [
        (100 + delta, bytes([delta])) for delta in range(5)
    ]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("many", [MAX_HEADERS + 1, 400_000])
def test_a_record_with_too_many_headers_keeps_its_value_and_no_header(
    codec: str, many: int
) -> None:
    crowded = crowded_record(b"job", delta=1, many=many)
    most = crowded_record(b"three", delta=2, many=MAX_HEADERS)
    message_set = batch([TWO[0], crowded, most], codec=codec)
    assert not is_sound(message_set)
    one, two, three = read(repaired(message_set))
    assert (one.offset, one.value, why(one)) == (0, b"one", None)
    assert (two.offset, two.value, len(two.headers)) == (1, b"job", 1)
    assert str(MAX_HEADERS) in (why(two) or "")
    assert (three.offset, three.value, len(three.headers)) == (2, b"three", MAX_HEADERS)


def test_a_batch_that_expands_to_millions_of_headers_creates_no_object_for_them() -> None:
    # parsed, these would take half a gigabyte and block the event loop for a minute
    crowded = [crowded_record(b"", delta=delta, many=8_000_000) for delta in range(2)]
    message_set = batch(crowded, codec="zstd")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(read(repaired(message_set))) == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024


def test_a_transaction_marker_that_compaction_emptied_only_moves_the_position() -> None:
    marker = batch([], attributes=0x30, base_offset=3, count=0, last_delta=0)
    assert not is_sound(marker)
    after = batch([record(b"next", delta=0)], base_offset=4)
    records = PartitionRecords(
        TopicPartition("jobs", 0), MemoryRecords(repaired(marker + after)), [], 3, None, None, 1, 1
    )
    assert [each.offset for each in records] == [4]
    assert records.next_fetch_offset == 5


def test_a_repeated_first_offset_behind_a_large_record_loses_no_record() -> None:
    records = [record(bytes(PIECE), delta=0), record(b"two", delta=0), record(b"three", delta=1)]
    found = read(repaired(batch(records)))
    assert [each.offset for each in found] == [0, 1, 2]


def test_many_small_batches_expand_no_further_than_the_budget() -> None:
    each = batch([record(bytes(MIB), delta=0)], codec="zstd")
    sets = b"".join(struct.pack(">q", offset) + each[8:] for offset in range(100))
    found = read(repaired(sets, budget=4 * MIB))
    assert [one.offset for one in found] == [0, 1, 2, 3]


def test_the_first_batch_is_returned_whatever_the_budget() -> None:
    assert len(read(repaired(batch(TWO, codec="gzip"), budget=1))) == 2


def test_header_names_that_are_not_utf_8_are_left_out_and_other_headers_kept() -> None:
    headers: list[Header] = [(b"kept", b"1"), (b"\xff", b"2"), (b"null", None)]
    odd = [record(b"odd", delta=0, key=b"k", headers=headers), record(b"fine", delta=1)]
    for codec in ("none", "zstd"):
        broken, fine = read(repaired(batch(odd, codec=codec)))
        assert (broken.key, broken.value) == (b"k", b"odd")
        assert unmarked(tuple(broken.headers))[0] == (("kept", b"1"), ("null", None))
        assert "UTF-8" in (why(broken) or "")
        assert (fine.value, why(fine)) == (b"fine", None)


@pytest.mark.parametrize("deltas", [(0, 7), (5, 6), (-3, 1), (0, 0), (2**31 - 1, 0), (1, 0)])
def test_records_have_the_offsets_of_the_broker_whatever_their_deltas(
    deltas: tuple[int, int],
) -> None:
    claimed = [record(str(at).encode(), delta=delta) for at, delta in enumerate(deltas)]
    for codec in ("none", "lz4"):
        found = read(repaired(batch(claimed, codec=codec, base_offset=10)))
        assert [(each.offset, each.value) for each in found] == [(10, b"0"), (11, b"1")]


def test_the_gaps_of_a_compacted_batch_are_kept() -> None:
    left = [record(b"1", delta=2), record(b"2", delta=5)]
    for codec in ("none", "gzip"):
        found = read(repaired(batch(left, codec=codec, last_delta=9)))
        assert [each.offset for each in found] == [2, 5]
    assert read(repaired(batch([], last_delta=9))) == []


def test_the_readable_records_of_a_damaged_batch_are_returned() -> None:
    damaged = [*TWO, number(40) + b"too short"]
    one, two, broken = read(repaired(batch(damaged)))
    assert (one.value, two.value) == (b"one", b"two")
    assert broken.offset == 2
    assert "damaged" in (why(broken) or "")


def test_a_batch_with_an_invalid_checksum_is_not_changed() -> None:
    bad = bytearray(batch(TWO, codec="zstd"))
    bad[-1] ^= 1
    assert repaired(bytes(bad)) == bytes(bad)


def test_a_batch_truncated_by_the_broker_is_not_changed() -> None:
    whole = batch(TWO)
    assert repaired(whole + whole[:70]) == whole + whole[:70]
    assert is_sound(whole + whole[:70])


_bytes = st.none() | st.binary(max_size=30)
_records = st.lists(
    st.tuples(_bytes, _bytes, st.lists(st.tuples(st.binary(max_size=5), _bytes), max_size=3)),
    min_size=1,
    max_size=8,
)


@given(records=_records, codec=st.sampled_from(sorted(CODECS)), base=st.integers(0, 2**40))
def test_every_record_keeps_its_key_value_and_offset(
    records: list[tuple[bytes | None, bytes | None, list[Header]]], codec: str, base: int
) -> None:
    raw = [
        record(value, delta=delta, key=key, headers=headers)
        for delta, (key, value, headers) in enumerate(records)
    ]
    found = read(repaired(batch(raw, codec=codec, base_offset=base)))
    assert [(each.offset, each.key, each.value) for each in found] == [
        (base + delta, key, value) for delta, (key, value, _) in enumerate(records)
    ]


@given(
    payload=st.binary(max_size=80),
    codec=st.sampled_from(sorted(CODECS)),
    count=st.integers(-5, 50),
    last=st.integers(-5, 50),
)
def test_any_payload_becomes_readable_records_within_the_batch(
    payload: bytes, codec: str, count: int, last: int
) -> None:
    raw = batch([], codec=codec, payload=payload, count=count, last_delta=last, base_offset=1000)
    offsets = [each.offset for each in read(repaired(raw))]
    assert offsets == sorted(set(offsets))
    assert all(1000 <= offset <= 1000 + max(0, last) for offset in offsets)


@given(damaged=st.binary(max_size=200))
def test_bytes_that_are_not_batches_are_not_changed(damaged: bytes) -> None:
    assert repaired(damaged) == damaged
