"""Crashes counted at each record that was being opened, shared by all replicas of one `run`.

Standard library only, as all that comes before the first replica.
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
    """Counts what the journals of dead replicas name, and publishes the counts to the living.

    Never a reason not to start: without its files a record that kills is not found, that is all.
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

    def replica_ended(self, number: int, report: Report) -> None:
        """Count one crash for each record that replica `number` was opening; it has ended."""
        file = journal_file(self._folder, number)
        with suppress(*_UNREADABLE):
            opened = {entry.name: entry for entry in Slots.open(file).entries()}
            file.unlink()  # a successor that cannot make its own must not be counted by this one
            for entry in opened.values():
                report(self._count(entry))
            if opened:
                self._publish()

    def forget(self, name: str) -> None:
        """The record opened well: the crash was not its doing."""
        if self._counted.pop(name, None) is not None:
            self._publish()

    def _count(self, entry: Entry) -> Entry:
        before = self._counted.pop(entry.name, None)  # to the end: the last one counted
        crashes = 1 + (before.crashes if before else 0)
        counted = self._counted[entry.name] = entry._replace(crashes=crashes)
        while len(self._counted) > TABLE_SLOTS:  # the oldest of those with the fewest
            del self._counted[min(self._counted, key=lambda name: self._counted[name].crashes)]
        return counted

    def _publish(self) -> None:
        if self._table is not None:
            self._table.replace(self._counted.values())
