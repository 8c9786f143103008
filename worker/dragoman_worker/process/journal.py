"""Memory-mapped journals of the records being opened, and the crashes counted from them.

A replica's journal survives its death; the supervisor reads it then, and publishes the counts to
all replicas. Standard library only, like everything that is imported before the first replica.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Callable, Iterable, MutableSequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

JOURNAL_SLOTS: Final = 64
"""Records that one replica may be opening at once; the file has 20 KiB."""
TABLE_SLOTS: Final = 256
"""Records whose crashes are counted; the file has 80 KiB."""

_SLOT_BYTES: Final = 320
_VERSION: Final = struct.Struct("<Q")
_HEAD: Final = struct.Struct("<HBB")  # length of the name, stage, crashes
_NAME_AT: Final = 1 + _HEAD.size
_LONGEST: Final = _SLOT_BYTES - _NAME_AT
"""A topic has at most 249 characters, a partition 10, offset and timestamp 20 each."""


class Stage(IntEnum):
    """How far the opening of a record had come."""

    READING = 1
    """Its job id was not known yet."""
    PLANNING = 2
    """Its job id was known."""


class JournalEntry(NamedTuple):
    """A record's origin and timestamp, the stage of its last opening, and its number of crashes."""

    name: str
    stage: Stage
    crashes: int = 0


def journal_file(folder: Path, number: int) -> Path:
    """Return the path of the journal of replica `number`."""
    return folder / f"{number}.journal"


def table_file(folder: Path) -> Path:
    """Return the path of the file in which the supervisor publishes all crash counts."""
    return folder / "crashes"


class Slots:
    """Slots of fixed size in shared memory, readable whatever bytes they hold.

    A slot counts once its first byte is set. That byte is stored last and cleared first: a writer
    that is killed between two stores leaves the slot empty or complete.
    """

    def __init__(self, memory: MutableSequence[int] | mmap.mmap) -> None:
        self._memory: Any = memory

    @classmethod
    def create(cls, file: Path, count: int) -> Slots:
        """Create an empty file of `count` slots. Raises OSError, also if the disk is full.

        The space is allocated now: a store into a mapped hole on a full disk would be a SIGBUS.
        """
        size = _VERSION.size + count * _SLOT_BYTES
        with file.open("w+b") as opened:
            opened.write(bytes(size))
            opened.flush()
            return cls(mmap.mmap(opened.fileno(), size))

    @classmethod
    def open(cls, file: Path) -> Slots:
        """Open an existing file for reading. Raises OSError, and ValueError if it is empty."""
        with file.open("rb") as opened:
            return cls(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))

    def __len__(self) -> int:
        return max(0, len(self._memory) - _VERSION.size) // _SLOT_BYTES

    @property
    def version(self) -> int:
        """Number that changes with every `replace`; odd while one is running."""
        if len(self._memory) < _VERSION.size:
            return 0
        found: int = _VERSION.unpack_from(self._memory)[0]
        return found

    def put(self, slot: int, entry: JournalEntry) -> None:
        """Fill a slot."""
        memory, at, name = self._memory, self._at(slot), _encoded(entry.name)
        length = len(name)
        memory[at] = 0
        head = _HEAD.pack(length, entry.stage, min(entry.crashes, 255))
        memory[at + 1 : at + _NAME_AT + length] = head + name
        memory[at] = 1

    def clear(self, slot: int) -> None:
        """Empty a slot."""
        self._memory[self._at(slot)] = 0

    def replace(self, entries: Iterable[JournalEntry]) -> None:
        """Fill the slots with these entries, as many as fit, and empty the others."""
        version = self.version | 1
        _VERSION.pack_into(self._memory, 0, version)
        given = iter(entries)
        for slot in range(len(self)):
            if (entry := next(given, None)) is not None:
                self.put(slot, entry)
            else:
                self.clear(slot)
        _VERSION.pack_into(self._memory, 0, version + 1)

    def entries(self) -> list[JournalEntry]:
        """Return the entries of all slots; damaged slots are skipped."""
        found = (self._entry(self._at(slot)) for slot in range(len(self)))
        return [entry for entry in found if entry is not None]

    def _entry(self, at: int) -> JournalEntry | None:
        if self._memory[at] != 1:
            return None
        length, stage, crashes = _HEAD.unpack_from(self._memory, at + 1)
        with suppress(ValueError):  # no valid stage, or no UTF-8
            name = bytes(self._memory[at + _NAME_AT : at + _NAME_AT + length]).decode()
            if 0 < length <= _LONGEST:
                return JournalEntry(name, Stage(stage), crashes)
        return None

    def _at(self, slot: int) -> int:
        return _VERSION.size + slot * _SLOT_BYTES


def _encoded(name: str) -> bytes:
    encoded = name.encode(errors="replace")
    if len(encoded) <= _LONGEST:
        return encoded
    return hashlib.sha256(encoded).hexdigest().encode()


Report = Callable[[JournalEntry], None]

_UNREADABLE: Final = (OSError, ValueError)


class Crashes:
    """Counts the records in the journals of dead replicas, and publishes the counts to the others.

    It never prevents a start. Without its files, a record that kills replicas is not detected.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counted: dict[str, JournalEntry] = {}
        self._table: Slots | None = None
        with suppress(*_UNREADABLE):
            self._table = Slots.create(table_file(folder), TABLE_SLOTS)

    @property
    def published(self) -> bool:
        """Whether replicas can see the counts."""
        return self._table is not None

    def replica_exited(self, number: int, report: Report) -> None:
        """Count one crash for each record that replica `number` was opening when it exited."""
        file = journal_file(self._folder, number)
        with suppress(*_UNREADABLE):
            opened = {entry.name: entry for entry in Slots.open(file).entries()}
            file.unlink()  # a successor that cannot make its own must not be counted by this one
            for entry in opened.values():
                report(self._count(entry))
            if opened:
                self._publish()

    def forget(self, name: str) -> None:
        """Drop the count of a record that has been opened: it was not the cause of the crash."""
        if self._counted.pop(name, None) is not None:
            self._publish()

    def _count(self, entry: JournalEntry) -> JournalEntry:
        before = self._counted.pop(entry.name, None)  # moves to the end: counted last
        crashes = 1 + (before.crashes if before else 0)
        counted = self._counted[entry.name] = entry._replace(crashes=crashes)
        while len(self._counted) > TABLE_SLOTS:  # the oldest of those with the fewest
            del self._counted[min(self._counted, key=lambda name: self._counted[name].crashes)]
        return counted

    def _publish(self) -> None:
        if self._table is not None:
            self._table.replace(self._counted.values())
