"""Up to where may a partition's offset be committed? A pure tracker of unfinished offsets."""

from __future__ import annotations

from collections import deque


class PartitionOffsets:
    """The delivered offsets of one partition in one assignment epoch.

    Only offsets that were really delivered count, so gaps left by compaction or transaction
    markers never hold the watermark back. Invariants: ``base <= watermark <= next_offset``; the
    watermark never falls; no unfinished offset lies below it.
    """

    __slots__ = ("_ahead", "_unfinished", "base", "committed", "generation", "next_offset", "tried")

    def __init__(self, *, generation: int, base: int, committed: int | None = None) -> None:
        self.generation = generation
        self.base = base
        """Where delivery began."""
        self.next_offset = base
        """One past the highest delivered offset: where fetching goes on."""
        self.committed = committed
        """What the broker holds, as far as it has told us; None if nothing."""
        self.tried = committed
        """The last mark that we asked the broker to hold: it may, though its reply was lost."""
        self._unfinished: deque[int] = deque()
        self._ahead: set[int] = set()

    def begin(self, offset: int) -> bool:
        """Register a delivered offset. False if it was delivered before in this epoch."""
        if offset < self.next_offset:
            return False
        self._unfinished.append(offset)
        self.next_offset = offset + 1
        return True

    def complete(self, offset: int) -> None:
        """Mark a delivered offset as finished, in any order. Idempotent."""
        if offset < self.commit_offset or offset >= self.next_offset:
            return
        self._ahead.add(offset)
        while self._unfinished and self._unfinished[0] in self._ahead:
            self._ahead.remove(self._unfinished.popleft())

    def continues(self, held: int | None) -> bool:
        """Whether what the broker holds is of our own making: nobody else has moved it."""
        return held in {self.committed, self.tried}

    @property
    def commit_offset(self) -> int:
        """The offset to commit: everything delivered below it is finished."""
        return self._unfinished[0] if self._unfinished else self.next_offset

    @property
    def due(self) -> bool:
        """Whether the broker should be told the watermark.

        Also when what it holds lies outside the log: only a commit ends that a restart asks for it
        again, and counts the same loss again.
        """
        return self.commit_offset != (self.base if self.committed is None else self.committed)

    @property
    def span(self) -> int:
        """How far delivery has run ahead of the watermark, in offsets."""
        return self.next_offset - self.commit_offset

    @property
    def unfinished(self) -> int:
        """How many delivered offsets are not finished."""
        return len(self._unfinished) - len(self._ahead)
