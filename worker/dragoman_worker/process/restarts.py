"""Lifecycle of one replica: start, liveness probes, cleanup after its exit, and restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from dragoman_worker.log import logger
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.children import ChildProcesses, Replica
from dragoman_worker.process.exits import EXITS_AFTER_S, HALT_WITHIN_S, Exit
from dragoman_worker.process.journal import Crashes, JournalEntry
from dragoman_worker.process.placement import Place, Shared
from dragoman_worker.process.probes import ASK_S, ask

PROBE_EVERY_S: Final = 5.0
RECOVERED_S: Final = 60.0
"""Seconds of readiness after which a replica counts as recovered, even without a settled job."""
FAILING_S: Final = EXITS_AFTER_S + 2 * HALT_WITHIN_S
"""Seconds of failing liveness checks after which a replica that still answers is killed.

Such a replica halts itself after `EXITS_AFTER_S`, releases its claims and exits within
`HALT_WITHIN_S`. Killed earlier, it would leave claims behind, and its jobs would become suspects.
"""
ORPHANS_S: Final = 0.3
"""Longest wait of a stopping supervisor for orphans that it has killed."""


class CannotStart(Exception):
    """No process can be started now; the message says why."""


class ReplicaRestarter:
    """Restarts replica `number` until the supervisor stops or a restart cannot help."""

    def __init__(
        self,
        number: int,
        *,
        place: Place,
        children: ChildProcesses,
        shared: Shared,
        backoff: Backoff,
        crashes: Crashes,
        stuck_after_s: float,
        start_within_s: float,
        restarted: Callable[[], None],
    ) -> None:
        self.number = number
        self._place = place
        self._children = children
        self._shared = shared
        self._crashes = crashes
        self._stuck_after_s = stuck_after_s
        self._start_within_s = start_within_s
        self._ready_at = 0.0
        self._restarted = restarted
        self._starts = 0
        self._fork = True
        self._backoff = backoff
        self._log = logger().bind(replica=number)

    async def run(self) -> Exit:
        """Run the replica until the supervisor stops, or a restart cannot help.

        Never returns while the replica runs.
        """
        while not self._shared.stopping.is_set():
            try:
                replica = await self._start()
            except CannotStart as error:
                if (result := self._failed_start(str(error))) is not None:
                    return result
                await self._back_off(None, str(error))
                continue
            if replica is None:
                break
            await self._until_exited(replica)
            if (result := await self._after_exit(replica)) is not None:
                return result
        return Exit(0)

    # --- start ------------------------------------------------------------------------------------

    async def _start(self) -> Replica | None:
        """Return a replica that is ready, or one that has exited and left no orphans.

        None if the supervisor is stopping. Raises CannotStart.
        """
        async with self._shared.start_turn(self._place):
            # The first replica was started before this object, and may have exited since.
            begun = None if self._starts else self._children.latest(self.number)
            if begun is None and self._fork:
                await self._prepare_fork()
            if self._shared.stopping.is_set() and begun is None:
                return None
            replica = self._begin(begun)
            await self._until_started(replica)
            if replica.exited.is_set():
                await self._kill_orphans()
        if replica.ready.is_set():
            self._shared.became_ready(self.number)
            self._ready_at = time.monotonic()
            self._backoff.became_ready()
            seconds = round(time.monotonic() - replica.started_at, 1)
            self._log.info("replica_ready", seconds=seconds)
        return replica

    def _begin(self, begun: Replica | None) -> Replica:
        try:
            replica = begun or self._children.start(self.number, fork=self._fork)
        except OSError as error:
            raise CannotStart(f"cannot be started: {error.strerror or error}") from error
        replica.on_opened = self._crashes.forget
        replica.listen()
        if self._starts:
            self._restarted()
        self._starts += 1
        gpus = list(self._place.gpus)
        self._log.info("replica_started", pid=replica.pid, gpus=gpus, forked=replica.forked)
        return replica

    async def _prepare_fork(self) -> None:
        """Return when it is known whether a replica can be forked; kill a server that hangs."""
        server = self._children.fork_server
        if server.prepare():
            server.listen()
            await first_of(server.settled, self._shared.stopping, within_s=self._start_within_s)
        if not server.settled.is_set() and not self._shared.stopping.is_set():
            server.kill()
            await first_of(server.settled, self._shared.stopping)

    async def _until_started(self, replica: Replica) -> None:
        """Return when the replica is ready or has exited; kill one that hangs.

        Only time in which the supervisor itself ran counts.
        """
        events = (replica.ready, replica.exited, self._shared.stopping)
        waited_s = 0.0
        while not any(event.is_set() for event in events):
            if waited_s >= self._start_within_s:
                await self._kill_hanging_start(replica, waited_s)
                return
            probe_s, began = min(PROBE_EVERY_S, self._start_within_s), time.monotonic()
            await first_of(*events, within_s=probe_s)
            waited_s += min(time.monotonic() - began, 2 * probe_s)

    async def _kill_hanging_start(self, replica: Replica, waited_s: float) -> None:
        answer = await ask(self._children.socket(self.number), "/startupz")
        why = f"not ready after {waited_s:.0f} s (supervisor.start_within_s): {answer.reason}"
        replica.failure = ("failed", why)
        replica.kill()
        self._log.error("replica_start_hangs", seconds=round(waited_s), reason=answer.reason)
        await first_of(replica.exited, self._shared.stopping)

    # --- watch ------------------------------------------------------------------------------------

    async def _until_exited(self, replica: Replica) -> None:
        if replica.exited.is_set():
            return
        watch = asyncio.create_task(self._watch(replica), name=f"watch-{self.number}")
        try:
            await replica.exited.wait()
        finally:
            watch.cancel()

    async def _watch(self, replica: Replica) -> None:
        """Kill the replica if it is silent for too long, or fails and does not exit by itself.

        Only time in which the supervisor itself ran counts: a process group that was stopped and
        continued is not stuck, although the clock has advanced.
        """
        every_s = max(1.0, min(PROBE_EVERY_S, self._stuck_after_s / 6))
        failing_s, probed_at, reason = 0.0, time.monotonic(), ""
        patience_s = self._stuck_after_s
        while failing_s < patience_s:
            await asyncio.sleep(every_s)
            answer = await ask(self._children.socket(self.number), "/livez")
            now = time.monotonic()
            passed_s, probed_at = min(now - probed_at, every_s + ASK_S), now
            # A replica that loads its model need not answer; its start has a limit of its own.
            failing = replica.ready.is_set() and not answer.ok
            if not failing or answer.reason != reason:  # another reason: it is making progress
                failing_s = 0.0
            if failing:
                failing_s += passed_s
            reason, patience_s = answer.reason, FAILING_S if answer.status else self._stuck_after_s
        replica.kill()
        self._log.error("replica_stuck", seconds=round(failing_s, 1), reason=reason)

    # --- after an exit ----------------------------------------------------------------------------

    async def _after_exit(self, replica: Replica) -> Exit | None:
        """Kill orphans, then return the exit of the whole run, or wait before the restart."""
        if not self._shared.stopping.is_set():
            self._crashes.replica_exited(self.number, self._report_crash)
        await self._kill_orphans()
        if self._shared.stopping.is_set():
            return self._drained(replica)
        if (result := self._fatal(replica)) is not None:
            return result
        # Whatever a forked process may lack, one that imports everything itself has.
        self._fork = replica.ready.is_set() or not replica.forked
        if self._has_recovered(replica):
            self._backoff.recovered()
        await self._back_off(replica.status, replica.exit_reason)
        return None

    async def _back_off(self, status: int | None, reason: str) -> None:
        self._backoff.exited()
        delay_s = self._backoff.delay_s()
        self._log.error(
            "replica_failed",
            gpus=list(self._place.gpus),
            status=status,
            reason=reason,
            failed_starts=self._backoff.failures,
            restart_in_s=round(delay_s, 2),
        )
        await first_of(self._shared.stopping, within_s=delay_s)

    def _has_recovered(self, replica: Replica) -> bool:
        """Whether the replica worked before it exited.

        Readiness is not enough: a replica that dies of its first record is ready each time.
        """
        if not replica.ready.is_set():
            return False
        return replica.settled.is_set() or time.monotonic() - self._ready_at >= RECOVERED_S

    def _report_crash(self, entry: JournalEntry) -> None:
        self._log.error(
            "crashed_while_opening",
            place=entry.name.partition("@")[0],
            stage=entry.stage.name.lower(),
            crashes=entry.crashes,
        )

    def _fatal(self, replica: Replica) -> Exit | None:
        """Return the exit of the whole run if a restart cannot help; count a failed start."""
        kind, _ = replica.failure or (None, "")
        if kind == "dropped":
            return Exit(1, replica.exit_reason)
        # Once a replica was ready, the settings are valid: GPU memory may be taken for a time.
        if replica.status == 2 and not self._shared.any_was_ready:
            return self._refused(replica.exit_reason, of_device=kind == "device")
        if kind == "unreachable" and not self._shared.any_was_ready:
            return Exit(1, replica.exit_reason)
        return None if replica.ready.is_set() else self._failed_start(replica.exit_reason)

    def _refused(self, reason: str, *, of_device: bool) -> Exit | None:
        """Return the exit of the whole run, unless other GPUs may not have this fault."""
        if not of_device:
            return Exit(2, reason)
        self._backoff.failed()
        where = f"{self._place.name}: " if self._place.gpus else ""
        return self._shared.gave_up(self.number, Exit(2, f"{where}{reason}"))

    def _failed_start(self, reason: str) -> Exit | None:
        """Count a failed start; return the exit of the whole run after too many in a row."""
        self._backoff.failed()
        if not self._backoff.exhausted:
            return None
        where = f" ({self._place.name})" if self._place.gpus else ""
        failed = f"replica {self.number}{where} failed {self._backoff.failures} starts in a row"
        return self._shared.gave_up(self.number, Exit(1, f"{failed}; the last: {reason}"))

    def _drained(self, replica: Replica) -> Exit:
        clean = replica.status == 0 or self._shared.aborted or not replica.ready.is_set()
        if clean:
            return Exit(0)
        return Exit(1, f"replica {self.number} did not drain: {replica.exit_reason}")

    async def _kill_orphans(self) -> None:
        """Return when the orphans are gone; once the supervisor stops, do not wait long for them.

        The kernel may not release a process that hangs in a device's driver.
        """
        killing = asyncio.create_task(self._children.kill_orphans(self._report_orphans))
        stopping = asyncio.create_task(self._shared.stopping.wait())
        try:
            await asyncio.wait({killing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({killing}, timeout=ORPHANS_S)
            if killing.done():
                killing.result()
        finally:
            killing.cancel()
            stopping.cancel()

    def _report_orphans(self, event: str, processes: list[str]) -> None:
        if event == "killed":
            self._log.warning("orphans_killed", processes=processes)
        else:
            self._log.error("orphans_left", processes=processes)


async def first_of(*events: asyncio.Event, within_s: float | None = None) -> None:
    """Return when one of the events is set, or after `within_s` seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
