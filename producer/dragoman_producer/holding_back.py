"""What one publisher may have in the queue of a box, which is in the memory of its broker."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from aiokafka import TopicPartition

_LOOK_S: Final = 0.05

Committed = Callable[[Sequence[TopicPartition]], Awaitable[Mapping[TopicPartition, int]]]
"""Returns the committed offset of each partition that has one."""


class _Partition:
    """Own records that the group has not committed: those on their way, and those stored."""

    def __init__(self) -> None:
        self.stored: deque[tuple[int, int]] = deque()
        """Offset and bytes of each, in the order of their acknowledgements."""
        self.bytes = 0
        self.turn = asyncio.Lock()

    def commit(self, offset: int) -> None:
        """Forget the records below the committed offset."""
        kept = deque((each, size) for each, size in self.stored if each >= offset)
        self.bytes -= sum(size for _, size in self.stored) - sum(size for _, size in kept)
        self.stored = kept

    def fits(self, size: int, bound: int) -> bool:
        """Whether a record may be added: within the bound, or the only one."""
        return self.bytes == 0 or self.bytes + size <= bound


class HoldingBack:
    """Lets a record pass once its partition holds at most `bound` bytes of ours, or none."""

    def __init__(self, bound: int, committed: Committed) -> None:
        self._bound = bound
        self._committed = committed
        self._partitions: defaultdict[TopicPartition, _Partition] = defaultdict(_Partition)
        self._looking = asyncio.Lock()

    @asynccontextmanager
    async def room(self, place: TopicPartition, size: int) -> AsyncIterator[Callable[[int], None]]:
        """Wait for room, and yield a function to call with the offset that the record got.

        A record without an offset gives its room back at the end. Raises what reading the
        committed offsets raises.
        """
        own = self._partitions[place]
        async with own.turn:
            while not own.fits(size, self._bound):
                await self._look(place, own, size)
            own.bytes += size
        stored = False

        def acknowledged(offset: int) -> None:
            nonlocal stored
            own.stored.append((offset, size))
            stored = True

        try:
            yield acknowledged
        finally:
            if not stored:
                own.bytes -= size

    async def _look(self, place: TopicPartition, own: _Partition, size: int) -> None:
        """Read the committed offsets of all partitions with records of ours, one reader a time."""
        async with self._looking:
            if own.fits(size, self._bound):
                return
            held = [each for each, other in self._partitions.items() if other.stored]
            for each, offset in (await self._committed(held)).items():
                self._partitions[each].commit(offset)
            if not own.fits(size, self._bound):
                await asyncio.sleep(_LOOK_S)
