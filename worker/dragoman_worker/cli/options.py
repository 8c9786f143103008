"""Options, settings and messages that all commands share."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dragoman_connections.settings import SettingsError, load_settings, parse_pairs
from dragoman_connections.terminal import how_to_install, print_to

if TYPE_CHECKING:
    from dragoman_worker.settings import WorkerSettings

Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read settings from this TOML file.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set one setting, such as engine.kind=echo; repeatable.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


def settings_or_exit(config: Path | None, pairs: list[str] | None) -> WorkerSettings:
    """Return a command's settings; exit with status 2 if they are invalid."""
    try:
        return read_settings(config, pairs)
    except SettingsError as error:
        fail(2, str(error))


def read_settings(config: Path | None, pairs: list[str] | None) -> WorkerSettings:
    """Read the file, the environment and `--set`; the later wins. Raises SettingsError."""
    from dragoman_worker.settings import WorkerSettings

    return load_settings(WorkerSettings, config, parse_pairs(pairs))


def not_installed(error: ModuleNotFoundError) -> str:
    """Return the message for a missing package of the worker."""
    return (
        f"{error.name} is not installed here; {how_to_install('echo')} without a GPU, or "
        "`pip install '.[worker]'` with vLLM"
    )


def report_failure(settings: WorkerSettings, status: int, reason: str) -> None:
    """Print in one line why `run` failed, in the log's format.

    Works without structlog, which may be the missing package.
    """
    if settings.log.format == "text":
        notify(reason)
        return
    line = {
        "event": "run_failed",
        "level": "critical",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "worker": settings.worker_id,
        "status": status,
        "reason": reason,
    }
    print_to(sys.stderr, json.dumps(line))


def fail(status: int, message: str) -> NoReturn:
    """Exit with `status` and one line on stderr."""
    notify(message)
    raise SystemExit(status)


def notify(message: str) -> None:
    """Print one line on stderr."""
    print_to(sys.stderr, f"dragoman-worker: {message}")
