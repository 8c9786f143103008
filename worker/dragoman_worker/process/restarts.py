"""How is one replica kept? Started in its turn, watched, buried, and started again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dragoman_worker.log import logger
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.children import ChildProcesses, Replica
from dragoman_worker.process.crashes import Crashes
from dragoman_worker.process.end import End
from dragoman_worker.process.exit_limits import ENDS_S, HALT_WITHIN_S
from dragoman_worker.process.journal import Entry
from dragoman_worker.process.probes import ASK_S, ask

LOOK_EVERY_S: Final = 5.0
RECOVERED_S: Final = 60.0
"""Ready for so long, a replica counts as recovered though it had no jobs to settle."""
UNWELL_S: Final = ENDS_S + 2 * HALT_WITHIN_S
"""A replica that answers ends itself after `ENDS_S`, gives its claims back and is gone within
`HALT_WITHIN_S`. Killed before, it would leave claims behind, and its jobs would become suspects."""
BURY_S: Final = 0.3
"""A stopping supervisor waits no longer for orphans that it has killed."""


@dataclass(slots=True)
class Shared:
    """What the keepers of all replicas share."""

    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held from the start of a replica until it is ready or gone: two engines that measure the
    memory they may take must not do so at the same time."""
    any_was_ready: bool = False
    aborted: bool = False


class ReplicaRestarter:
    """Keeps replica `number` alive until the supervisor stops or there is no point."""

    def __init__(
        self,
        number: int,
        *,
        children: ChildProcesses,
        shared: Shared,
        backoff: Backoff,
        crashes: Crashes,
        stuck_after_s: float,
        start_within_s: float,
        started_again: Callable[[], None],
    ) -> None:
        self.number = number
        self._children = children
        self._shared = shared
        self._crashes = crashes
        self._stuck_after_s = stuck_after_s
        self._start_within_s = start_within_s
        self._ready_at = 0.0
        self._started_again = started_again
        self._starts = 0
        self._backoff = backoff
        self._log = logger().bind(replica=number)

    async def keep(self) -> End:
        """Until the supervisor stops, or this replica cannot be kept; never while it runs."""
        while not self._shared.stopping.is_set():
            replica = await self._start()
            if replica is None:
                break
            await self._until_ended(replica)
            if end := await self._after(replica):
                return end
        return End(0)

    # --- start ------------------------------------------------------------------------------------

    async def _start(self) -> Replica | None:
        """A replica that is ready or has ended, in which case nothing is left of it."""
        async with self._shared.turn:
            # Of the first replica the process is there before we are, and may have ended since.
            begun = None if self._starts else self._children.latest(self.number)
            if self._shared.stopping.is_set() and begun is None:
                return None
            replica = self._begin(begun)
            await self._until_started(replica)
            if replica.ended.is_set():
                await self._bury()
        if replica.ready.is_set():
            self._shared.any_was_ready = True
            self._ready_at = time.monotonic()
            self._backoff.became_ready()
            seconds = round(time.monotonic() - replica.started_at, 1)
            self._log.info("replica_ready", seconds=seconds)
        return replica

    def _begin(self, begun: Replica | None) -> Replica:
        replica = begun or self._children.start(self.number)
        replica.on_opened = self._crashes.forget
        replica.listen()
        if self._starts:
            self._started_again()
        self._starts += 1
        self._log.info("replica_started", pid=replica.pid)
        return replica

    async def _until_started(self, replica: Replica) -> None:
        """Return when it is ready or has ended; one that hangs is killed.

        Only time in which we ran ourselves counts.
        """
        events = (replica.ready, replica.ended, self._shared.stopping)
        waited_s = 0.0
        while not any(event.is_set() for event in events):
            if waited_s >= self._start_within_s:
                await self._end_hanging_start(replica, waited_s)
                return
            look_s, looked_at = min(LOOK_EVERY_S, self._start_within_s), time.monotonic()
            await first_of(*events, within_s=look_s)
            waited_s += min(time.monotonic() - looked_at, 2 * look_s)

    async def _end_hanging_start(self, replica: Replica, waited_s: float) -> None:
        answer = await ask(self._children.socket(self.number), "/startupz")
        why = f"not ready after {waited_s:.0f} s (supervisor.start_within_s): {answer.reason}"
        self._log.error("replica_start_hangs", seconds=round(waited_s), reason=answer.reason)
        replica.failure = ("failed", why)
        replica.kill()
        await first_of(replica.ended, self._shared.stopping)

    # --- watch ------------------------------------------------------------------------------------

    async def _until_ended(self, replica: Replica) -> None:
        if replica.ended.is_set():
            return
        watch = asyncio.create_task(self._watch(replica), name=f"watch-{self.number}")
        try:
            await replica.ended.wait()
        finally:
            watch.cancel()

    async def _watch(self, replica: Replica) -> None:
        """Kill it when it has not answered for too long, or has not ended itself as it should.

        Only time in which we ran ourselves counts: a group that was stopped and goes on is not
        stuck, though its clock has moved.
        """
        every_s = max(1.0, min(LOOK_EVERY_S, self._stuck_after_s / 6))
        unwell_s, seen_at, reason = 0.0, time.monotonic(), ""
        patience_s = self._stuck_after_s
        while unwell_s < patience_s:
            await asyncio.sleep(every_s)
            answer = await ask(self._children.socket(self.number), "/livez")
            now = time.monotonic()
            passed_s, seen_at = min(now - seen_at, every_s + ASK_S), now
            # One that is loading a model may be deaf for as long as it takes.
            unwell = replica.ready.is_set() and not answer.ok
            if not unwell or answer.reason != reason:  # another reason: what was stuck goes on
                unwell_s = 0.0
            if unwell:
                unwell_s += passed_s
            reason, patience_s = answer.reason, UNWELL_S if answer.status else self._stuck_after_s
        self._log.error("replica_stuck", seconds=round(unwell_s, 1), reason=reason)
        replica.kill()

    # --- afterwards -------------------------------------------------------------------------------

    async def _after(self, replica: Replica) -> End | None:
        """Bury it, judge its end, and wait as long as that asks for."""
        if not self._shared.stopping.is_set():
            self._crashes.replica_ended(self.number, self._report_crash)
        await self._bury()
        if self._shared.stopping.is_set():
            return self._end_of_drain(replica)
        if end := self._end_of_all(replica):
            return end
        if self._has_recovered(replica):
            self._backoff.recovered()
        self._backoff.ended()
        delay_s = self._backoff.delay_s()
        self._log.error(
            "replica_failed",
            status=replica.status,
            reason=replica.how_it_ended,
            failed_starts=self._backoff.failures,
            restart_in_s=round(delay_s, 2),
        )
        await first_of(self._shared.stopping, within_s=delay_s)
        return None

    def _has_recovered(self, replica: Replica) -> bool:
        """To be ready is not enough: one that dies of its first record is ready each time."""
        if not replica.ready.is_set():
            return False
        return replica.settled.is_set() or time.monotonic() - self._ready_at >= RECOVERED_S

    def _report_crash(self, entry: Entry) -> None:
        self._log.error(
            "crashed_while_opening",
            place=entry.name.partition("@")[0],
            stage=entry.stage.name.lower(),
            crashes=entry.crashes,
        )

    def _end_of_all(self, replica: Replica) -> End | None:
        kind, _ = replica.failure or (None, "")
        if replica.status == 2:
            return End(2, replica.how_it_ended)
        if kind == "unreachable" and not self._shared.any_was_ready:
            return End(1, replica.how_it_ended)
        if not replica.ready.is_set():
            self._backoff.failed()
        if self._backoff.exhausted:
            count = self._backoff.failures
            return End(
                1,
                f"replica {self.number} failed {count} starts in a row; the last: "
                f"{replica.how_it_ended}",
            )
        return None

    def _end_of_drain(self, replica: Replica) -> End:
        well = replica.status == 0 or self._shared.aborted or not replica.ready.is_set()
        if well:
            return End(0)
        return End(1, f"replica {self.number} did not drain: {replica.how_it_ended}")

    async def _bury(self) -> None:
        burying = self._children.end_orphans(self._report_orphans)
        if not self._shared.stopping.is_set():
            await burying
            return
        try:
            async with asyncio.timeout(BURY_S):
                await burying
        except TimeoutError:
            pass

    def _report_orphans(self, what: str, processes: list[str]) -> None:
        if what == "killed":
            self._log.warning("orphans_killed", processes=processes)
        else:
            self._log.error("orphans_left", processes=processes)


async def first_of(*events: asyncio.Event, within_s: float | None = None) -> None:
    """Return when one of the events is set, or after `within_s`."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
