"""How is one replica kept? Started in its turn, watched, buried, and started again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from dragoman_worker.log import logger
from dragoman_worker.supervisor.asking import ASK_S, ask
from dragoman_worker.supervisor.backoff import Backoff
from dragoman_worker.supervisor.nursery import Nursery, Replica

LOOK_EVERY_S: Final = 5.0
BURY_S: Final = 0.3
"""A stopping supervisor waits no longer for orphans that it has killed."""


@dataclass(frozen=True, slots=True)
class End:
    """How `run` ends: its exit status, and why in one line if that is not 0."""

    status: Literal[0, 1, 2]
    message: str = ""


@dataclass(slots=True)
class Shared:
    """What the keepers of all replicas share."""

    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held from the start of a replica until it is ready or gone: two engines that measure the
    memory they may take must not do so at the same time."""
    any_was_ready: bool = False
    aborted: bool = False


class Keeper:
    """Keeps replica `number` alive until the supervisor stops or there is no point."""

    def __init__(
        self,
        number: int,
        *,
        nursery: Nursery,
        shared: Shared,
        backoff: Backoff,
        stuck_after_s: float,
        started_again: Callable[[], None],
    ) -> None:
        self.number = number
        self._nursery = nursery
        self._shared = shared
        self._stuck_after_s = stuck_after_s
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
            begun = None if self._starts else self._nursery.latest(self.number)
            if self._shared.stopping.is_set() and begun is None:
                return None
            replica = self._begin(begun)
            await first_of(replica.ready, replica.ended, self._shared.stopping)
            if replica.ended.is_set():
                await self._bury()
        if replica.ready.is_set():
            self._shared.any_was_ready = True
            self._backoff.became_ready()
            seconds = round(time.monotonic() - replica.started_at, 1)
            self._log.info("replica_ready", seconds=seconds)
        return replica

    def _begin(self, begun: Replica | None) -> Replica:
        replica = begun or self._nursery.start(self.number)
        replica.listen()
        if self._starts:
            self._started_again()
        self._starts += 1
        self._log.info("replica_started", pid=replica.pid)
        return replica

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
        """Kill it when it has said for too long that it is not alive, or nothing at all.

        Only time in which we ran ourselves counts: a group that was stopped and goes on is not
        stuck, though its clock has moved.
        """
        every_s = max(1.0, min(LOOK_EVERY_S, self._stuck_after_s / 6))
        silent_s, seen_at, reason = 0.0, time.monotonic(), ""
        while silent_s < self._stuck_after_s:
            await asyncio.sleep(every_s)
            answer = await ask(self._nursery.socket(self.number), "/livez")
            now = time.monotonic()
            passed_s, seen_at = min(now - seen_at, every_s + ASK_S), now
            # One that is loading a model may be deaf for as long as it takes.
            deaf = replica.ready.is_set() and not answer.ok
            silent_s, reason = (silent_s + passed_s, answer.reason) if deaf else (0.0, "")
        self._log.error("replica_stuck", seconds=round(silent_s, 1), reason=reason)
        replica.kill()

    # --- afterwards -------------------------------------------------------------------------------

    async def _after(self, replica: Replica) -> End | None:
        """Bury it, judge its end, and wait as long as that asks for."""
        await self._bury()
        if self._shared.stopping.is_set():
            return self._end_of_drain(replica)
        if end := self._end_of_all(replica):
            return end
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
        burying = self._nursery.end_orphans(self._report_orphans)
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
