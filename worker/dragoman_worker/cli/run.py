"""The `run` command and the two internal commands that it starts as child processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman_connections.child import signals_blocked
from dragoman_connections.settings import SettingsError
from dragoman_worker.cli.options import (
    Config,
    Set,
    fail,
    not_installed,
    read_settings,
    report_failure,
    settings_or_exit,
)

if TYPE_CHECKING:
    from dragoman_worker.engines.sizing import Share
    from dragoman_worker.process.children import Command
    from dragoman_worker.process.exits import Exit
    from dragoman_worker.process.fork_server import Forked
    from dragoman_worker.process.parent_link import FailureKind, ReplicaSlot
    from dragoman_worker.settings import WorkerSettings


def run(config: Config = None, set_: Set = None) -> None:
    """Translate until SIGTERM, Ctrl-C or a closed terminal; a second signal stops at once.

    Starts one process per replica and restarts those that fail. Exit status: 0 success,
    1 failure, 2 invalid settings.
    """
    from dragoman_worker.process import stderr_relay
    from dragoman_worker.process.exits import exit_now

    # A signal now would end this process and leave the replica that is about to start.
    with signals_blocked():
        stderr_relay.start()
        if config is not None and config.is_fifo():
            fail(
                2, f"--config {config}: a pipe is read once, and each replica reads it; give a file"
            )
        settings = settings_or_exit(config, set_)
        result = _supervise(settings, config, set_)
        if result.status:
            report_failure(settings, result.status, result.message)
        exit_now(result.status)


def _supervise(settings: WorkerSettings, config: Path | None, set_: list[str] | None) -> Exit:
    from dragoman_worker.engines.machine import this_machine
    from dragoman_worker.engines.sizing import share_out
    from dragoman_worker.process.exits import Exit
    from dragoman_worker.process.launcher import supervise
    from dragoman_worker.process.runtime_dir import NoRuntimeDirectory

    pairs = list(set_ or ())
    named = [*pairs, f"worker_id={settings.worker_id}"]
    try:
        share = share_out(settings.engine, this_machine)
        chosen = settings.engine.kind == "vllm" and settings.engine.replicas == "auto"
        return supervise(
            settings,
            _replica_command(settings, share, config, pairs),
            places=share.places,
            fork_server=(
                (lambda connection: _own_command("fork-server", config, named, connection))
                if settings.engine.kind == "vllm" and settings.engine.patches == "auto"
                else None
            ),
            why=share.reason if chosen else "",
        )
    except SettingsError as error:
        return Exit(2, str(error))
    except NoRuntimeDirectory as error:
        return Exit(1, str(error))


def _replica_command(
    settings: WorkerSettings, share: Share, config: Path | None, pairs: list[str]
) -> Command:
    def command(number: int, socket: Path, parent_link: str) -> list[str]:
        own_id = settings.worker_id if len(share.places) == 1 else f"{settings.worker_id}-{number}"
        own = {"worker_id": own_id, **share.places[number].settings}
        given = [*pairs, *(f"{name}={json.dumps(value)}" for name, value in own.items())]
        return _own_command("replica", config, given, str(number), str(socket), parent_link)

    return command


def _own_command(name: str, config: Path | None, pairs: list[str], *values: str) -> list[str]:
    return [
        # -P: modules in the working directory must not be imported.
        *(sys.executable, "-P", "-m", "dragoman_worker", name, *values),
        *(("--config", str(config)) if config else ()),
        *(part for pair in pairs for part in ("--set", pair)),
    ]


def replica(
    number: int, socket: Path, parent_link: int, config: Config = None, set_: Set = None
) -> None:
    """Run one engine and its consumer; started by `run`, which learns why it exits."""
    from dragoman_worker.process.fork_server import forked
    from dragoman_worker.process.parent_link import ParentLink, ReplicaSlot

    link = ParentLink.hold(parent_link)
    if forked():
        from dragoman_worker.engines.vllm.patches import fork

        fork.prepare(link)
    try:
        settings = read_settings(config, set_)
        _work(settings, ReplicaSlot(number, socket, link))
    except SettingsError as error:
        from dragoman_worker.engines.vllm.start_failures import DeviceFault

        link.failed("device" if isinstance(error, DeviceFault) else "settings", str(error))
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        link.failed("settings", not_installed(error))
        raise SystemExit(2) from None


def fork_server(connection: int, config: Config = None, set_: Set = None) -> None:
    """Import the engine and fork replicas; started by `run`, which sends the requests."""
    from dragoman_worker.process.fork_server import (
        connected_to_supervisor,
        report_ready,
        report_unfit,
        serve,
    )

    supervisor = connected_to_supervisor(connection)
    try:
        reason = _preload(read_settings(config, set_))
    except (SettingsError, ModuleNotFoundError) as error:
        reason = str(error)  # a replica that is started in the ordinary way reports it again
    if reason is not None:
        report_unfit(supervisor, reason)
        raise SystemExit(1)
    report_ready(supervisor)
    _run_forked(serve(supervisor))


def _preload(settings: WorkerSettings) -> str | None:
    """Import what replicas need; return why this process must not be forked, None if it may."""
    from dragoman_worker import log

    log.configure(settings.log, worker_id=settings.worker_id)
    log.adopt_interpreter()
    from dragoman_worker.engines.vllm.patches import fork
    from dragoman_worker.prompts import names

    reason = fork.load(settings.engine, verbose=settings.log.level == "debug")
    import dragoman_worker.app  # noqa: F401  what a replica runs

    names.load()
    return reason


def _run_forked(forked: Forked) -> None:
    """Run the internal command `replica` in a process that has just been forked."""
    forked.set_title("dragoman-worker")
    sys.argv = [sys.argv[0], *forked.argv[forked.argv.index("replica") :]]
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(replica)
    command(args=sys.argv[2:])


def _work(settings: WorkerSettings, slot: ReplicaSlot) -> None:
    from dragoman_worker import log
    from dragoman_worker.app import App
    from dragoman_worker.errors import WorkerError
    from dragoman_worker.process.event_loop import run_loop
    from dragoman_worker.process.full_disk import full_disk

    log.configure(settings.log, worker_id=settings.worker_id, replica=slot.number)
    log.adopt_interpreter()
    try:
        run_loop(App(settings, slot).run())
    except WorkerError as error:
        slot.parent_link.failed(_kind_of(error), str(error))
        raise SystemExit(1) from None
    except (SettingsError, ModuleNotFoundError):
        raise
    except Exception as error:  # noqa: BLE001  the text of a job must not reach the log
        defect = f"a defect of the worker: {log.where(error)}; nothing unfinished was committed"
        slot.parent_link.failed("failed", full_disk(error) or defect)
        raise SystemExit(1) from None


def _kind_of(error: Exception) -> FailureKind:
    from dragoman_worker.errors import RecordsDropped, Unreachable

    if isinstance(error, RecordsDropped):
        return "dropped"
    return "unreachable" if isinstance(error, Unreachable) else "failed"
