"""One box: take its data folder, run it, say how to reach it, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from dragoman_connections.terminal import how_to_install
from dragoman_producer.box.data_folder import DataFolder
from dragoman_producer.box.embedded_redis import executable
from dragoman_producer.box.engine_choice import EngineChoice
from dragoman_producer.box.failures import BoxFailed, BoxUnusable
from dragoman_producer.box.gateway_part import is_installed, own_key
from dragoman_producer.box.linked_child import ChildFailed
from dragoman_producer.box.running import Box, running
from dragoman_producer.box.screen import BoxScreen

_LOOK_S: Final = 0.2
_PARTS: Final = ("confluent_kafka", "structlog", "aiohttp", "prometheus_client")

Reached = Mapping[str, Any]
"""How to reach a box: the members that `reach` gives it."""


def check_installed() -> None:
    """Raise BoxUnusable where the embedded broker, Redis or the worker is missing."""
    if missing := [name for name in _PARTS if find_spec(name) is None]:
        raise BoxUnusable(
            f"parts of a box are not installed ({', '.join(missing)}); {how_to_install('box')}"
        )
    try:
        executable()
    except ChildFailed as error:
        raise BoxUnusable(str(error)) from None


async def serve(
    choice: EngineChoice,
    folder: DataFolder,
    screen: BoxScreen,
    show: Callable[[Reached, bool], None],
) -> None:
    """Run a box until it is canceled or fails; show how to reach it, and whether it is new.

    If one with equal options is live already, show how to reach that and return. Raises
    BoxUnusable, BoxFailed and ChildFailed.
    """
    if (live := await take_or_find(choice, folder, screen)) is not None:
        show(live, False)
        return
    gateway = is_installed()
    if choice.settings_of(gateway=True) and not gateway:
        raise BoxUnusable(f"--set serve...: no gateway is installed; {how_to_install('serve')}")
    key = own_key(folder.path) if gateway else None
    async with (
        kept(folder) as runtime,
        running(choice, folder.path, runtime, screen, gateway=gateway) as (box, end),
        told(folder, box, key) as reached,
    ):
        show(reached, True)
        await end


async def take_or_find(
    choice: EngineChoice, folder: DataFolder, screen: BoxScreen, *, shared: bool = False
) -> Reached | None:
    """Lock the folder, or return how to reach the box with equal options that holds it.

    With `shared` the same engine and profile are enough. Waits for a box that is starting or
    stopping, or that one run has for itself. Raises BoxUnusable if its options are others.
    """
    told_once = False
    while not folder.take():
        state = folder.state()
        reached = state.get("reached")
        if state and not _serves(choice, state, shared=shared):
            raise BoxUnusable(in_use(folder, state))
        if reached:
            return dict(reached)
        if not told_once:
            screen.line(
                f"Waiting for the box in {folder.path} (process {state.get('pid')}), which starts, "
                "stops or is busy with one run ..."
            )
            told_once = True
        await asyncio.sleep(_LOOK_S)
    old = folder.state().get("runtime", "")
    folder.write_state({"pid": os.getpid(), "choice": choice.as_json(), "runtime": old})
    return None


def _serves(choice: EngineChoice, state: Mapping[str, Any], *, shared: bool) -> bool:
    live, reached = state.get("choice", {}), state.get("reached")
    if shared and reached:
        return choice.same_engine(live, reached["profile"])
    return bool(live == choice.as_json())


def in_use(folder: DataFolder, state: Mapping[str, Any]) -> str:
    """Return why a folder cannot be used with other options than its live box has."""
    live = state.get("choice", {})
    named = {name: live.get(name) for name in ("model", "server", "engine")}
    shown = next((f"--{name} {value}" for name, value in named.items() if value), "other options")
    return (
        f"--data {folder.path}: a box with {shown} and its options runs there (process "
        f"{state.get('pid')}); stop it, give its options, or give another --data"
    )


@asynccontextmanager
async def told(folder: DataFolder, box: Box, key: str | None) -> AsyncIterator[Reached]:
    """Write how to reach a box into its folder while the context is open."""
    state = folder.state()
    reached = reach(box, folder.path, key)
    folder.write_state({**state, "reached": reached})
    try:
        yield reached
    finally:
        with suppress(BoxFailed):  # a full disk: `kept` removes the state soon
            folder.write_state(state)


def reach(box: Box, data: Path, key: str | None) -> Reached:
    """Return how to reach a running box. `key` is that of its gateway; None without one."""
    return {
        "bootstrap_servers": box.bootstrap,
        "redis_url": box.redis_url,
        "worker_url": box.worker.url,
        "gateway_url": box.gateway_url,
        "gateway_key": key,
        "profile": box.choice.profile,
        "engine": box.choice.identity,
        "pid": os.getpid(),
        "data": str(data),
        "worker_log": str(box.worker_log),
    }


@asynccontextmanager
async def kept(folder: DataFolder) -> AsyncIterator[Path]:
    """Make the runtime folder of a box; remove it and the state of the box at the end."""
    runtime = folder.make_runtime()
    try:
        folder.write_state({**folder.state(), "runtime": str(runtime)})
        yield runtime
    finally:
        folder.remove_state()
        shutil.rmtree(runtime, ignore_errors=True)
