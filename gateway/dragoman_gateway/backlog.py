"""How long a new job would wait, from the lag of its topic and how fast that is settled."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from dragoman_producer.errors import BrokerRefused, DragomanError
from dragoman_producer.operations.topics import PartitionState

EVERY_S: Final = 5.0
_WINDOW_S: Final = 60.0


class _Sample(NamedTuple):
    at: float
    settled: int
    lag: int


class TopicBacklog:
    """The wait of each topic. Without the right to see it every wait is 0, which is said once."""

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[PartitionState]]],
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._report = report
        self._clock = clock
        self._samples: defaultdict[str, deque[_Sample]] = defaultdict(deque)

    def wait_s(self, topic: str) -> float:
        """Return the predicted wait of a new job, 0 if nothing waits or nothing is known.

        While nothing is settled it is the time for which nothing was.
        """
        samples = self._samples.get(topic)
        if not samples or not samples[-1].lag:
            return 0.0
        first, last = samples[0], samples[-1]
        settled, seconds = last.settled - first.settled, last.at - first.at
        return last.lag * seconds / settled if settled > 0 else seconds

    async def forever(self) -> None:
        """Read the lag every few seconds; stop where this user may not."""
        while True:
            try:
                self.note(await self._read())
            except BrokerRefused as error:
                self._report(f"no load is shed: {error}")
                return
            except DragomanError:
                pass  # the broker is away: submitting says so
            await asyncio.sleep(EVERY_S)

    def note(self, partitions: Sequence[PartitionState]) -> None:
        """Add what was read now."""
        now = self._clock()
        lags: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for each in partitions:
            start = each.first_offset if each.committed is None else each.committed
            lags[each.topic][0] += start
            lags[each.topic][1] += each.lag
        for topic, (settled, lag) in lags.items():
            samples = self._samples[topic]
            samples.append(_Sample(now, settled, lag))
            self._trim(samples, now)

    def _trim(self, samples: deque[_Sample], now: float) -> None:
        """Keep a minute; while nothing is settled, since when; without lag, nothing before."""
        if not samples[-1].lag:
            last = samples.pop()
            samples.clear()
            samples.append(last)
        stuck = samples[0].settled == samples[-1].settled
        while len(samples) > 2 and (
            (not stuck and samples[0].at < now - _WINDOW_S) or (stuck and len(samples) > 100)
        ):
            if stuck:
                del samples[1]
            else:
                samples.popleft()
