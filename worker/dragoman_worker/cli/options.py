"""How does a command read its settings, and say what is wrong with them?"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dragoman_connections.installation import how_to_install
from dragoman_connections.settings import SettingsError, load_settings

if TYPE_CHECKING:
    from dragoman_worker.settings import WorkerSettings

Config = Annotated[Path | None, typer.Option("--config", help="TOML file with the settings.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, as in --set engine.kind=echo. May be repeated."),
]


def settings_or_exit(config: Path | None, pairs: list[str] | None) -> WorkerSettings:
    """The settings of a command; wrong ones end it with status 2."""
    try:
        return read_settings(config, pairs)
    except SettingsError as error:
        fail(2, str(error))


def read_settings(config: Path | None, pairs: list[str] | None) -> WorkerSettings:
    """File, environment and `--set`, the later winning. Raises SettingsError."""
    from dragoman_worker.settings import WorkerSettings  # noqa: PLC0415  `--help` needs none

    return load_settings(WorkerSettings, config, named(pairs))


def named(pairs: list[str] | None) -> dict[str, Any]:
    """What `--set` gives, by dotted name. Raises SettingsError."""
    return dict(_pair(text) for text in pairs or ())


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingsError(f"--set {text}: give NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def not_installed(error: ModuleNotFoundError) -> str:
    """What to say when a part of the worker is missing."""
    return (
        f"{error.name} is not installed here; {how_to_install('echo')} without a GPU, or "
        "`pip install '.[worker]'` with vLLM"
    )


def report_end(settings: WorkerSettings, status: int, reason: str) -> None:
    """Say in one line why `run` ends, in the log's format.

    Without structlog, which may be what is missing.
    """
    if settings.log.format == "text":
        say(reason)
        return
    line = {
        "event": "run_failed",
        "level": "critical",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "worker": settings.worker_id,
        "status": status,
        "reason": reason,
    }
    sys.stderr.write(f"{json.dumps(line)}\n")


def fail(status: int, message: str) -> NoReturn:
    """End with `status` and one line on stderr."""
    say(message)
    raise SystemExit(status)


def say(message: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"dragoman-worker: {message}\n")
