"""Options that all commands share, and the settings that result from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli.terminal import USAGE_ERROR, print_note

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings

_GROUP = "Connection"

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Read settings from this TOML file.",
        rich_help_panel=_GROUP,
    ),
]
Kafka = Annotated[
    str | None,
    typer.Option(
        "--kafka",
        metavar="HOST:PORT,...",
        help="Kafka servers; replaces kafka.bootstrap_servers.",
        rich_help_panel=_GROUP,
    ),
]
Redis = Annotated[
    str | None,
    typer.Option(
        "--redis", metavar="URL", help="Redis URL; replaces redis.url.", rich_help_panel=_GROUP
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the results and print them.")]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0, help="With --wait: stop waiting after this time."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Sources of a command's settings: file, environment, then these options."""

    config: Path | None
    kafka: str | None
    redis: str | None
    topic: str | None = None

    def settings(self) -> DragomanSettings:
        """Load the settings. Raises SettingsError."""
        from dragoman_connections.settings import (  # keeps --help fast
            DragomanSettings,
            load_settings,
        )

        for name, text in (("--kafka", self.kafka), ("--redis", self.redis)):
            check_utf8("dragoman", name, text or "")
        options = {
            "kafka.bootstrap_servers": self.kafka,
            "kafka.topics": self.topic,
            "redis.url": self.redis,
        }
        return load_settings(DragomanSettings, self.config, options)


def language(command: str, option: str, tag: str | None) -> str | None:
    """Return the canonical tag of an option. Exits with 2 if it is not a language."""
    from dragoman_schemas.languages import UnknownLanguage, normalise  # keeps --help fast

    try:
        return None if tag is None else normalise(tag)
    except UnknownLanguage as error:
        print_note(f"{command}: {option}: {error}")
        raise typer.Exit(USAGE_ERROR) from None


def check_utf8(command: str, name: str, text: str) -> None:
    """Exit with 2 if the bytes of an argument are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        print_note(
            f"{command}: {name} is not UTF-8 (character {error.start + 1}); give it as UTF-8"
        )
        raise typer.Exit(USAGE_ERROR) from None
