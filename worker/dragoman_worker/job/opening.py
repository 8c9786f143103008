"""Gate for reading and planning records: each is journaled, suspects one at a time.

A record that kills the process before its claim leaves no trace in Redis, but its entry in the
journal stays: the supervisor counts the crashes per record over all replicas and their restarts.
See docs/adr/0013-journal-of-openings.md.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from dragoman_worker.errors import Poisoned
from dragoman_worker.log import logger
from dragoman_worker.ports import Delivery
from dragoman_worker.process.journal import (
    JOURNAL_SLOTS,
    JournalEntry,
    Slots,
    Stage,
    journal_file,
    table_file,
)
from dragoman_worker.process.parent_link import ReplicaSlot

_NO_TABLE: Final = bytearray()


class Openings:
    """Opens up to 64 records at once, and a suspect only while no other record is being opened.

    Event loop only; the work inside may run in other threads and processes.
    """

    def __init__(
        self,
        journal: Slots | None = None,
        table: Slots | None = None,
        *,
        poison_after: int = 4,
        cleared: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Call `cleared` with the name of each suspect that was opened without a crash."""
        self._journal = journal
        self._table = table or Slots(_NO_TABLE)
        self._poison_after = poison_after
        self._cleared = cleared
        self._free = list(range(len(journal) if journal else JOURNAL_SLOTS))
        self._all = len(self._free)
        self._exclusive = False
        self._suspects: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()
        self._crashes: dict[str, JournalEntry] = {}
        self._version = 0

    def of(self, delivery: Delivery) -> Opening:
        """Return the opening of a delivery; the timestamp distinguishes a recreated topic."""
        return Opening(self, f"{delivery.origin}@{delivery.timestamp_ms}")

    @property
    def crashes(self) -> Mapping[str, JournalEntry]:
        """The suspects: records that were being opened when a process died, by the supervisor."""
        if (version := self._table.version) != self._version and not version % 2:
            entries = self._table.entries()
            if self._table.version == version:  # the supervisor did not write meanwhile
                self._crashes = {entry.name: entry for entry in entries}
                self._version = version
        return self._crashes

    def enter_now(self, name: str, stage: Stage) -> int | None:
        """Journal the opening in a slot; None for a suspect or if it has to wait for others."""
        if name in self.crashes or not self._may_enter(alone=False):
            return None
        return self._journaled(name, stage)

    async def enter(self, name: str, stage: Stage) -> int:
        """Wait for a slot and journal the opening in it. Raises Poisoned. Undone by `leave`."""
        suspect = self.crashes.get(name)
        while not self._may_enter(alone=suspect is not None):
            await self._turn(self._others if suspect is None else self._suspects)
            suspect = self.crashes.get(name)
        if suspect is not None:
            self._refuse_poisoned(suspect, stage)
            self._exclusive = True
        return self._journaled(name, stage)

    def _journaled(self, name: str, stage: Stage) -> int:
        slot = self._free.pop()
        if self._journal is not None:
            self._journal.put(slot, JournalEntry(name, stage))
        return slot

    def leave(self, slot: int) -> None:
        """Free the slot: the record was opened or abandoned without a crash."""
        if self._journal is not None:
            self._journal.clear(slot)
        self._free.append(slot)
        self._exclusive = False
        if self._suspects or self._others:
            self._wake()

    def suspects(self, name: str) -> bool:
        """Whether the record was being opened when a process died."""
        return name in self.crashes

    def opened(self, name: str) -> None:
        """Clear a suspect that was opened completely: it did not cause the crash."""
        suspect = self.crashes.get(name)
        if suspect is not None and suspect.crashes < self._poison_after:
            del self._crashes[name]
            self._cleared(name)

    def _refuse_poisoned(self, suspect: JournalEntry, stage: Stage) -> None:
        """Raise Poisoned for a suspect of too many crashes in this stage or an earlier one.

        A record that only crashes in planning is still read, so that it fails under its id.
        """
        if suspect.crashes >= self._poison_after and stage >= suspect.stage:
            self._wake()
            raise Poisoned(
                f"the worker process died {suspect.crashes} times while this record was being "
                "opened; it was not opened again"
            )

    # --- waiting ----------------------------------------------------------------------------------

    def _may_enter(self, *, alone: bool) -> bool:
        if alone:
            return len(self._free) == self._all
        return bool(self._free) and not self._exclusive and not self._suspects

    async def _turn(self, line: deque[asyncio.Future[None]]) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in line:
                line.remove(turn)
            self._wake()
            raise

    def _wake(self) -> None:
        """Wake the openings that may enter now; each checks again whether it still may."""
        if self._suspects:
            if len(self._free) == self._all:
                _grant(self._suspects)
            return
        for _ in range(min(len(self._free), len(self._others))):
            _grant(self._others)


class Opening:
    """One record from its bytes to its claim, in journaled stages."""

    __slots__ = ("_openings", "_slot", "name")

    def __init__(self, openings: Openings, name: str) -> None:
        self._openings = openings
        self._slot = 0
        self.name = name

    @property
    def suspect(self) -> bool:
        """Whether it was being opened when a process died; then it is opened by itself."""
        return self._openings.suspects(self.name)

    def done(self) -> None:
        """Report that all stages are over: the claim is next."""
        self._openings.opened(self.name)

    def enter_now(self, stage: Stage) -> bool:
        """Enter a stage unless it has to wait. Followed by `leave`."""
        slot = self._openings.enter_now(self.name, stage)
        if slot is None:
            return False
        self._slot = slot
        return True

    def leave(self) -> None:
        """Leave the stage."""
        self._openings.leave(self._slot)

    @asynccontextmanager
    async def at(self, stage: Stage) -> AsyncIterator[None]:
        """Enter a stage as soon as possible and leave it on exit. Raises Poisoned on entry."""
        self._slot = await self._openings.enter(self.name, stage)
        try:
            yield
        finally:
            self.leave()


def journaled(slot: ReplicaSlot | None, *, poison_after: int) -> Openings:
    """Return the openings of a replica, journaled if it has a supervisor and disk space."""
    if slot is None:
        return Openings(poison_after=poison_after)
    folder = slot.socket.parent
    try:
        journal = Slots.create(journal_file(folder, slot.number), JOURNAL_SLOTS)
        table = Slots.open(table_file(folder))
    except (OSError, ValueError) as error:
        logger().warning("journal_unavailable", folder=str(folder), error=str(error))
        return Openings(poison_after=poison_after)
    cleared = slot.parent_link.opened
    return Openings(journal, table, poison_after=poison_after, cleared=cleared)


def _grant(line: deque[asyncio.Future[None]]) -> None:
    turn = line.popleft()
    if not turn.done():
        turn.set_result(None)
