"""Which options do all commands have, and which settings do they make?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings

_GROUP = "Connection"

Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="TOML settings.", rich_help_panel=_GROUP),
]
Kafka = Annotated[
    str | None,
    typer.Option(
        "--kafka", metavar="HOST:PORT,...", help="kafka.bootstrap_servers.", rich_help_panel=_GROUP
    ),
]
Redis = Annotated[
    str | None,
    typer.Option("--redis", metavar="URL", help="redis.url.", rich_help_panel=_GROUP),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the settings of a command come from: file, environment, then these options."""

    config: Path | None
    kafka: str | None
    redis: str | None

    def settings(self) -> DragomanSettings:
        """The settings. Raises SettingsError."""
        from dragoman_connections.settings import (  # --help need not wait for it
            DragomanSettings,
            load_settings,
        )

        options = {"kafka.bootstrap_servers": self.kafka, "redis.url": self.redis}
        return load_settings(DragomanSettings, self.config, options)
