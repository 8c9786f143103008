"""Start of the supervisor: a process without vLLM that outlives its replicas.

The supervisor starts its replicas side by side, each on its own GPUs, and restarts them when they
exit. It kills the processes that they leave behind, forwards signals, and serves the HTTP port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman_connections import child
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.children import ChildProcesses, Command
from dragoman_worker.process.exits import Exit
from dragoman_worker.process.journal import Crashes
from dragoman_worker.process.placement import Place
from dragoman_worker.process.runtime_dir import runtime_directory

if TYPE_CHECKING:
    from dragoman_worker.settings import WorkerSettings


def supervise(
    settings: WorkerSettings,
    command: Command,
    backoff: Callable[[], Backoff] = Backoff,
    *,
    places: Sequence[Place] = (Place(),),
    fork_server: child.Command | None = None,
    why: str = "",
) -> Exit:
    """Run the replicas that `command` starts until a signal, or until one cannot be kept running.

    There is one replica per place; `why` is the reason for their number, for the log.
    `fork_server` is the command of the process that replicas are forked from.
    Raises SettingsError if the HTTP port is unavailable, and NoRuntimeDirectory.
    """
    with (
        runtime_directory() as folder,
        ChildProcesses(
            command,
            folder,
            lambda number: places[number].environment,
            fork_server,
        ) as children,
    ):
        crashes = Crashes(folder)
        # The fork server or the first replica imports the engine while this process imports the
        # supervisor.
        if not children.fork_server.prepare():
            with suppress(OSError):  # the supervisor tries again, and reports why it cannot
                children.start(0)
        from dragoman_worker import log  # noqa: PLC0415
        from dragoman_worker.process.supervisor import Supervisor  # noqa: PLC0415

        log.configure(settings.log, worker_id=settings.worker_id)
        log.adopt_interpreter()
        if not crashes.published:
            log.logger().warning("journal_unavailable", folder=str(folder))
        if why:
            log.logger().info("replicas_chosen", replicas=len(places), reason=why)
        # Not uvloop: it consumes SIGCHLD, by which the supervisor learns of every orphan.
        return asyncio.run(Supervisor(settings, children, backoff, crashes, places).run())
