"""What does a person type to run a GPU? The `dragoman-worker` command."""

from __future__ import annotations

import signal

_interrupt = signal.getsignal(signal.SIGINT)
if _interrupt is signal.default_int_handler:  # not ignored, as under nohup
    # While Python imports what follows, a KeyboardInterrupt would end as a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman_connections.settings import SettingsError
from dragoman_worker.cli.options import Config, Set, not_installed, read_settings, report_end
from dragoman_worker.cli.options import fail as _fail
from dragoman_worker.cli.options import settings_or_exit as _settings
from dragoman_worker.cli.tune_and_bench import bench, tune
from dragoman_worker.cli.why import why

app = typer.Typer(
    name="dragoman-worker",
    help="Translate the jobs of a Kafka topic on this machine's GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def run(config: Config = None, set_: Set = None) -> None:
    """Work until SIGTERM or Ctrl-C; a second one stops at once."""
    from dragoman_worker.engines.sizing import share_out, this_machine
    from dragoman_worker.process.exits import Exit, exit_now
    from dragoman_worker.process.launcher import supervise
    from dragoman_worker.process.runtime_dir import NoRuntimeDirectory
    from dragoman_worker.process.signals import stop_signals_blocked

    # A signal now would end us with no regard to the replica that is about to start.
    with stop_signals_blocked():
        settings = _settings(config, set_)
        try:
            share = share_out(settings.engine, this_machine)
            reason = share.reason if settings.engine.replicas == "auto" else ""
            counted = _with_replicas(settings, share.count)
            result = supervise(
                counted,
                _command(counted, share, config, set_),
                end_memberships=_own_command(
                    "end-memberships", config, [*(set_ or ()), f"worker_id={settings.worker_id}"]
                ),
                why=reason,
            )
        except SettingsError as error:
            result = Exit(2, str(error))
        except NoRuntimeDirectory as error:
            result = Exit(1, str(error))
        if result.status:
            report_end(settings, result.status, result.message)
        exit_now(result.status)


def _with_replicas(settings: Any, count: int) -> Any:
    engine = settings.engine.model_copy(update={"replicas": count})
    return settings.model_copy(update={"engine": engine})


def _command(settings: Any, share: Any, config: Path | None, set_: list[str] | None) -> Any:
    def command(number: int, socket: Path, parent_link: int) -> list[str]:
        own = {"worker_id": _worker_id(settings, number), **share.options}
        pairs = [*(set_ or ()), *(f"{name}={json.dumps(value)}" for name, value in own.items())]
        return _own_command("replica", config, pairs, str(number), str(socket), str(parent_link))

    return command


def _own_command(name: str, config: Path | None, pairs: list[str], *values: str) -> list[str]:
    return [
        # -P: what lies in the working directory is not ours to import.
        *(sys.executable, "-P", "-m", "dragoman_worker", name, *values),
        *(("--config", str(config)) if config else ()),
        *(part for pair in pairs for part in ("--set", pair)),
    ]


@app.command(hidden=True)
def replica(
    number: int, socket: Path, parent_link: int, config: Config = None, set_: Set = None
) -> None:
    """One engine and its consumer, started by `run`, which is told how it ends."""
    from dragoman_worker.process.parent_link import ParentLink, ReplicaSlot

    line = ParentLink.adopt(parent_link)
    line.hold()
    try:
        settings = read_settings(config, set_)
        _work(settings, ReplicaSlot(number, socket, line))
    except SettingsError as error:
        line.failed("settings", str(error))
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        line.failed("settings", not_installed(error))
        raise SystemExit(2) from None


@app.command(hidden=True)
def end_memberships(config: Config = None, set_: Set = None) -> None:
    """End the group memberships that `run` names, one JSON line each, for its dead replicas."""
    from dragoman_worker import log
    from dragoman_worker.kafka import leave_group

    settings = _settings(config, set_)
    log.configure(settings.log, worker_id=settings.worker_id)
    leave_group.end_memberships(settings.kafka, sys.stdin)


def _work(settings: Any, slot: Any) -> None:
    from dragoman_worker import log
    from dragoman_worker.app import App
    from dragoman_worker.errors import Unreachable, WorkerError
    from dragoman_worker.process.full_disk import full_disk

    log.configure(settings.log, worker_id=settings.worker_id, replica=slot.number)
    log.adopt_interpreter()
    try:
        _loop_runner()(App(settings, slot).run())
    except WorkerError as error:
        kind = "unreachable" if isinstance(error, Unreachable) else "failed"
        slot.parent_link.failed(kind, str(error))
        raise SystemExit(1) from None
    except (SettingsError, ModuleNotFoundError):
        raise
    except Exception as error:  # noqa: BLE001  the text of a job must not reach the log
        defect = f"a defect of the worker: {log.where(error)}; nothing unfinished was committed"
        slot.parent_link.failed("failed", full_disk(error) or defect)
        raise SystemExit(1) from None


def _worker_id(settings: Any, number: int) -> str:
    alone = settings.engine.replicas == 1
    return str(settings.worker_id) if alone else f"{settings.worker_id}-{number}"


@app.command()
def check(
    config: Config = None,
    set_: Set = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    engine: Annotated[
        bool, typer.Option("--engine/--no-engine", help="Whether to start the engine too.")
    ] = True,
) -> None:
    """Try everything now that would fail later: settings, model, broker, Redis, every right."""
    settings = _settings(config, set_)
    bad = _loop_runner()(_check(settings, as_json=as_json, engine=engine))
    raise typer.Exit(1 if bad else 0)


@app.command()
def profiles(
    name: Annotated[str | None, typer.Argument(help="Show this one's prompt.")] = None,
    text: Annotated[str, typer.Option(help="The text to render.")] = "Good morning!",
    to: Annotated[str, typer.Option("--to", help="Target language.")] = "de",
    from_: Annotated[str, typer.Option("--from", help="Source language.")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """List the prompt profiles, or show how one of them asks for a translation."""
    from dragoman_schemas.languages import UnknownLanguage, normalise
    from dragoman_worker.errors import JobError
    from dragoman_worker.prompts import get_profile
    from dragoman_worker.prompts.base import Segment
    from dragoman_worker.prompts.show import rendered

    if name is None:
        _list_profiles(as_json=as_json)
        return
    try:
        profile = get_profile(name)
        segment = Segment(text=text, target_lang=normalise(to), source_lang=normalise(from_))
        shown = rendered(profile, segment)
    except (JobError, UnknownLanguage) as error:
        _fail(2, str(error))
    print(json.dumps({"profile": name, "prompt": shown}) if as_json else shown)


def _list_profiles(*, as_json: bool) -> None:
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from dragoman_worker.prompts.show import profile_rows

    rows = profile_rows()
    if as_json:
        for row in rows:
            print(json.dumps(asdict(row)))
        return
    table = Table(box=None, padding=(0, 1, 1, 0))
    for heading in ("profile", "models", "languages", "takes", "sampling"):
        table.add_column(heading, overflow="fold")  # a cut word would hide what it says
    for row in rows:
        languages = " ".join(row.languages) if len(row.languages) <= 8 else str(len(row.languages))
        table.add_row(row.name, row.models, languages or "any", "\n".join(row.takes), row.sampling)
    Console().print(table)


async def _check(settings: Any, *, as_json: bool, engine: bool) -> bool:
    from dragoman_worker import log
    from dragoman_worker.cli.checks import findings

    log.configure(settings.log, worker_id=settings.worker_id)
    bad = False
    async for finding in findings(settings, engine=engine):
        bad = bad or finding.status == "bad"
        if as_json:
            line = {"check": finding.name, "status": finding.status, "detail": finding.detail}
            print(json.dumps(line), flush=True)
        else:
            print(f"{finding.status:>4}  {finding.name}: {finding.detail}", flush=True)
    return bad


for command in (tune, bench, why):
    app.command()(command)


def main() -> None:
    """Entry point of the console script."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        app()
    except ModuleNotFoundError as error:  # every command needs an extra, the client has none
        _fail(2, not_installed(error))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _loop_runner() -> Any:
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run
    return uvloop.run


if __name__ == "__main__":
    main()
