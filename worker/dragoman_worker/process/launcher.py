"""How does `dragoman-worker run` outlive its replicas? A process without vLLM that holds them.

It starts `engine.replicas` processes one after another, starts them again when they end, kills
what they leave behind, passes signals on, and serves the one HTTP port.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.children import ChildProcesses, Command
from dragoman_worker.process.crashes import Crashes
from dragoman_worker.process.end import End
from dragoman_worker.process.runtime_dir import NoFolder, runtime_directory

if TYPE_CHECKING:
    from dragoman_worker.settings import WorkerSettings

__all__ = ["End", "NoFolder", "leave", "supervise"]


def supervise(
    settings: WorkerSettings,
    command: Command,
    backoff: Callable[[], Backoff] = Backoff,
    *,
    end_memberships: Sequence[str] = (),
    why: str = "",
) -> End:
    """Keep the replicas that `command` starts until a signal or until one cannot be kept.

    `settings.engine.replicas` is a number here; `why` tells the log what chose it.
    `end_memberships` starts the process that ends the group memberships of dead replicas.
    Raises SettingsError where the HTTP port cannot be had, and NoFolder.
    """
    with (
        runtime_directory() as folder,
        ChildProcesses(command, folder, end_memberships) as children,
    ):
        crashes = Crashes(folder)
        # The first replica imports its engine while we import the rest of ourselves.
        children.start(0)
        from dragoman_worker import log  # noqa: PLC0415
        from dragoman_worker.process.supervisor import Supervisor  # noqa: PLC0415

        log.configure(settings.log, worker_id=settings.worker_id)
        log.adopt_interpreter()
        if not crashes.published:
            log.logger().warning("journal_unavailable", folder=str(folder))
        if why:
            log.logger().info("replicas_chosen", replicas=settings.engine.replicas, reason=why)
        # Not uvloop: it keeps SIGCHLD, by which we know of every orphan, to itself.
        return asyncio.run(Supervisor(settings, children, backoff, crashes).run())


def leave(status: int) -> NoReturn:
    """End this process now, with all written that was printed.

    To take an interpreter apart took 1.4 to 2.1 s on a busy machine (load 25 on 2 cores), of the
    two that a second signal may take in all. Nothing waits for it: the replicas are gone, and so
    is their folder.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads any more; closed
            stream.flush()
    os._exit(status)
