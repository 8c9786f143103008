"""Crashes per record that was being opened, counted for all replicas of one `run`.

Standard library only, like everything that is imported before the first replica starts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from dragoman_worker.process.journal import TABLE_SLOTS, Entry, Slots, journal_file, table_file

Report = Callable[[Entry], None]

_UNREADABLE: Final = (OSError, ValueError)


class Crashes:
    """Counts the records in the journals of dead replicas, and publishes the counts to the others.

    It never prevents a start. Without its files, a record that kills replicas is not detected.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counted: dict[str, Entry] = {}
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

    def _count(self, entry: Entry) -> Entry:
        before = self._counted.pop(entry.name, None)  # moves to the end: counted last
        crashes = 1 + (before.crashes if before else 0)
        counted = self._counted[entry.name] = entry._replace(crashes=crashes)
        while len(self._counted) > TABLE_SLOTS:  # the oldest of those with the fewest
            del self._counted[min(self._counted, key=lambda name: self._counted[name].crashes)]
        return counted

    def _publish(self) -> None:
        if self._table is not None:
            self._table.replace(self._counted.values())
