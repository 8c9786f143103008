"""Commit offset of a partition: a pure tracker of its unfinished offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Set as AbstractSet


class PartitionOffsets:
    """The delivered offsets of one partition in one assignment generation.

    Only delivered offsets count, so gaps left by compaction or transaction markers never hold the
    commit offset back, and `pass_gap` moves it past one at the end of the log. Invariants:
    ``base <= commit_offset <= next_offset``; the commit offset never decreases; no unfinished
    offset is below it.
    """

    __slots__ = (
        "_ahead",
        "_unfinished",
        "acknowledged",
        "base",
        "committed",
        "generation",
        "next_offset",
        "tried",
    )

    def __init__(self, *, generation: int, base: int, committed: int | None = None) -> None:
        self.generation = generation
        self.base = base
        """First offset to deliver."""
        self.next_offset = base
        """Next offset to fetch: one past the highest delivered one, and past a gap behind it."""
        self.committed = committed
        """Offset that the broker has acknowledged as committed; None if there is none."""
        self.tried = committed
        """Offset of the last commit request: the broker may hold it although the reply was lost."""
        self.acknowledged: int | None = None
        """Offset that the broker held for this tracker when it last answered; None until then.

        Of a topic that an error "offset out of range" has shown to be another one it is None, and
        `committed` is the earlier tracker's.
        """
        self._unfinished: deque[int] = deque()
        self._ahead: set[int] = set()

    def begin(self, offset: int) -> bool:
        """Register a delivered offset; return False if it was delivered before."""
        if offset < self.next_offset:
            return False
        self._unfinished.append(offset)
        self.next_offset = offset + 1
        return True

    def pass_gap(self, position: int) -> None:
        """Note that all records below `position` that exist were delivered: the rest is gaps.

        No delivery follows transaction markers, aborted or compacted records at the end of the log,
        so without this they would stay uncommitted, and count as lag, until the next record.
        """
        self.next_offset = max(self.next_offset, position)

    def complete(self, offset: int) -> None:
        """Mark a delivered offset as finished, in any order. Idempotent."""
        if offset < self.commit_offset or offset >= self.next_offset:
            return
        self._ahead.add(offset)
        while self._unfinished and self._unfinished[0] in self._ahead:
            self._ahead.remove(self._unfinished.popleft())

    def acknowledge(self, held: int | None) -> None:
        """Note that the broker holds `held` as the committed offset of this tracker."""
        self.committed = self.acknowledged = held

    def is_ahead_of(self, held: int | None) -> bool:
        """Whether the broker has acknowledged a higher offset than `held`, which it holds now."""
        return self.acknowledged is not None and (held is None or held < self.acknowledged)

    def continues(self, held: int | None) -> bool:
        """Whether the broker's committed offset `held` is from this tracker, not another member."""
        return held in {self.committed, self.tried}

    @property
    def commit_offset(self) -> int:
        """The offset to commit next: all delivered offsets below it are finished."""
        return self._unfinished[0] if self._unfinished else self.next_offset

    @property
    def due(self) -> bool:
        """Whether the commit offset should be committed.

        Also if the committed offset is outside the log: only a commit prevents that a restart
        resumes there and counts the same loss again.
        """
        return self.commit_offset != (self.base if self.committed is None else self.committed)

    @property
    def span(self) -> int:
        """Offsets from the commit offset to the next offset to deliver."""
        return self.next_offset - self.commit_offset

    def first_unfinished(self, *, without: AbstractSet[int]) -> int | None:
        """Return the lowest delivered offset that is neither finished nor in `without`."""
        return next(
            (o for o in self._unfinished if o not in without and o not in self._ahead), None
        )

    @property
    def unfinished(self) -> int:
        """Number of delivered offsets that are not finished."""
        return len(self._unfinished) - len(self._ahead)
