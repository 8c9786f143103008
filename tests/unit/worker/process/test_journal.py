"""The journal names the records being opened, at whatever store the process was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.process.journal import (
    TABLE_SLOTS,
    Crashes,
    JournalEntry,
    Slots,
    Stage,
    journal_file,
    table_file,
)

SLOTS = 3
SIZE = 8 + SLOTS * 320
STAGES = st.sampled_from(Stage)
NAMES = st.builds(
    lambda topic, partition, offset, ms: f"{topic}/{partition}/{offset}@{ms}",
    st.text("abcXYZ019._-", min_size=1, max_size=249),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
)


class Killed(Exception):
    """The process dies between two bytes."""


class Memory(bytearray):
    """Bytes that are stored one at a time, until no more are allowed."""

    stores = 10**9

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, slice):
            for place, byte in zip(range(at.start, at.stop), value, strict=True):
                self[place] = byte
            return
        if self.stores == 0:
            raise Killed
        self.stores -= 1
        super().__setitem__(at, value)


OPERATIONS = st.lists(
    st.tuples(st.integers(0, SLOTS - 1), st.none() | st.tuples(NAMES, STAGES)), max_size=8
)


@given(operations=OPERATIONS, stores=st.integers(0, 2_000))
def test_a_kill_at_any_store_leaves_the_records_from_before_or_after_that_step(
    operations: list[Any], stores: int
) -> None:
    memory = Memory(SIZE)
    slots, open_now = Slots(memory), dict[int, JournalEntry]()
    memory.stores = stores
    for slot, opened in operations:
        before = dict(open_now)
        open_now.pop(slot, None)
        emptied = dict(open_now)
        if opened is not None:
            open_now[slot] = JournalEntry(*opened)
        try:
            slots.clear(slot) if opened is None else slots.put(slot, JournalEntry(*opened))
        except Killed:
            allowed = [list(each.values()) for each in (before, emptied, open_now)]
            assert sorted(slots.entries()) in [sorted(each) for each in allowed]
            return
        assert sorted(slots.entries()) == sorted(open_now.values())


def test_a_kill_while_a_slot_is_overwritten_leaves_one_record_or_none() -> None:
    before, after = (
        JournalEntry("topic/0/7@1", Stage.READING),
        JournalEntry("another/3/123@22", Stage.PLANNING),
    )
    stores = 0
    while True:
        memory = Memory(SIZE)
        slots = Slots(memory)
        slots.put(0, before)
        memory.stores = stores
        try:
            slots.put(0, after)
        except Killed:
            assert slots.entries() in ([before], [], [after])
            stores += 1
            continue
        assert slots.entries() == [after]
        assert stores > len(after.name)
        return


@given(damage=st.binary(max_size=SIZE + 400))
def test_any_bytes_can_be_read(damage: bytes) -> None:
    slots = Slots(bytearray(damage))
    assert len(slots.entries()) <= len(slots)
    assert slots.version >= 0


@given(damage=st.binary(min_size=4 + 10, max_size=300))
def test_a_damaged_slot_hides_no_other(damage: bytes) -> None:
    memory = bytearray(SIZE)
    slots = Slots(memory)
    slots.put(2, JournalEntry("whole", Stage.READING))
    memory[8 : 8 + 1 + len(damage)] = b"\x01" + damage  # a slot that counts, with random content
    assert slots.entries()[-1] == JournalEntry("whole", Stage.READING)


@given(name=st.text(max_size=1_000))
def test_a_name_of_any_length_has_a_slot_of_its_own(name: str) -> None:
    memory = bytearray(SIZE)
    Slots(memory).put(1, JournalEntry(name or "x", Stage.READING))
    assert len(Slots(memory).entries()) == 1
    assert not any(memory[8 + 2 * 320 :])


def test_the_longest_place_is_kept_in_full(tmp_path: Path) -> None:
    name = f"{'t' * 249}/{2**31 - 1}/{2**63 - 1}@{-(2**63)}"
    Slots.create(tmp_path / "j", SLOTS).put(2, JournalEntry(name, Stage.PLANNING, 3))
    assert Slots.open(tmp_path / "j").entries() == [JournalEntry(name, Stage.PLANNING, 3)]


# --- the supervisor's counts ----------------------------------------------------------------------


def died_opening(folder: Path, number: int, *names: str, stage: Stage = Stage.READING) -> None:
    journal = Slots.create(journal_file(folder, number), 64)
    for slot, name in enumerate(names):
        journal.put(slot, JournalEntry(name, stage))


def published(folder: Path) -> dict[str, int]:
    """Return the counts that a replica which starts now reads."""
    return {entry.name: entry.crashes for entry in Slots.open(table_file(folder)).entries()}


def test_each_crash_is_counted_once_and_published_to_all_replicas(tmp_path: Path) -> None:
    crashes, seen = Crashes(tmp_path), list[JournalEntry]()
    died_opening(tmp_path, 0, "a", "b")
    crashes.replica_exited(0, seen.append)
    crashes.replica_exited(0, seen.append)  # it died again before it had a journal
    died_opening(tmp_path, 7, "a", stage=Stage.PLANNING)
    crashes.replica_exited(7, seen.append)
    assert published(tmp_path) == {"a": 2, "b": 1}
    assert seen[-1] == JournalEntry("a", Stage.PLANNING, 2)
    crashes.forget("b")
    crashes.forget("unknown")
    assert published(tmp_path) == {"a": 2}


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\xff" * 20_000])
def test_a_damaged_journal_counts_no_crash_and_raises_no_error(
    tmp_path: Path, damage: bytes
) -> None:
    crashes = Crashes(tmp_path)
    journal_file(tmp_path, 0).write_bytes(damage)
    crashes.replica_exited(0, lambda _: None)
    assert published(tmp_path) == {}


def test_without_a_directory_no_crash_is_counted_and_no_error_raised(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path / "gone")
    assert not crashes.published
    crashes.replica_exited(0, lambda _: None)
    crashes.forget("a")


def test_the_counts_are_bounded_and_keep_the_highest(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path)
    for _ in range(3):
        died_opening(tmp_path, 0, "bad")
        crashes.replica_exited(0, lambda _: None)
    for batch in range(10):
        died_opening(tmp_path, 0, *(f"{batch}-{number}" for number in range(60)))
        crashes.replica_exited(0, lambda _: None)
    found = published(tmp_path)
    assert len(found) == TABLE_SLOTS
    assert found["bad"] == 3
    assert "9-59" in found
