"""A box for one run of `dragoman translate`: a live one that serves the same engine, or its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dragoman_connections.settings import DragomanSettings, KafkaSettings, RedisSettings
from dragoman_producer.box.data_folder import DataFolder
from dragoman_producer.box.engine_choice import EngineChoice
from dragoman_producer.box.failures import BoxUnusable
from dragoman_producer.box.machine import default_data_folder
from dragoman_producer.box.running import running
from dragoman_producer.box.screen import BoxScreen
from dragoman_producer.box.serving import check_installed, kept, take_or_find


class Services(NamedTuple):
    """How a run reaches a box."""

    settings: DragomanSettings
    engine: str | None
    """What tells its engine from others."""
    end: asyncio.Future[None] | None
    """A future of the error that ends an own box; None for a live one."""


@asynccontextmanager
async def services(
    choice: EngineChoice, data: Path | None, given: DragomanSettings, screen: BoxScreen
) -> AsyncIterator[Services]:
    """Provide a live box of the same engine, or one that lasts as long as the context.

    Raises BoxUnusable, BoxFailed and ChildFailed.
    """
    folder = DataFolder.open(data or default_data_folder())
    try:
        if (live := await take_or_find(choice, folder, screen, shared=True)) is not None:
            _check_address(given, live["bootstrap_servers"])
            reached = _reaching(given, live["bootstrap_servers"], live["redis_url"])
            yield Services(reached, live["engine"], None)
            return
        _check_address(given, None)
        check_installed()
        async with (
            kept(folder) as runtime,
            running(choice, folder.path, runtime, screen) as (box, end),
        ):
            reached = _reaching(given, box.bootstrap, box.redis_url)
            yield Services(reached, box.choice.identity, end)
    finally:
        folder.close()


def _check_address(given: DragomanSettings, live: str | None) -> None:
    """Refuse an address that somebody has set, unless it is that of the live box."""
    servers = given.kafka.bootstrap_servers
    if "bootstrap_servers" in given.kafka.model_fields_set and servers != live:
        raise BoxUnusable(
            f"kafka.bootstrap_servers is set to {servers}, and this box has a broker of its own; "
            "leave one of the two out"
        )


def _reaching(given: DragomanSettings, bootstrap: str, redis_url: str) -> DragomanSettings:
    """Return the settings with the box's addresses: no password of a deployment is sent there."""
    groups: dict[str, Any] = {
        "kafka": KafkaSettings(bootstrap_servers=bootstrap),
        "redis": RedisSettings(url=redis_url),
    }
    return given.model_copy(update=groups)
