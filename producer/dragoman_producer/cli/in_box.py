"""The engine on this host: its options, its errors and its end, for `translate` and `up`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman_producer.cli.terminal import FAILURE, USAGE_ERROR, print_note

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings
    from dragoman_producer.box.engine_choice import EngineChoice

_GROUP = "Engine on this host"

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="DIR|NAME",
        help="Run this model: a folder, or a name such as tencent/Hy-MT2-7B.",
        rich_help_panel=_GROUP,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Use this OpenAI-compatible server, such as http://HOST:8000.",
        rich_help_panel=_GROUP,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="demo|echo",
        help="The small demo model, or no model: echo returns each text with a tag.",
        rich_help_panel=_GROUP,
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder for the results; default: dragoman/box in your data folder.",
        rich_help_panel=_GROUP,
    ),
]


def chosen(command: str, engine: Sequence[str | None], profile: str | None, **more: Any) -> Any:
    """Return the EngineChoice of --model, --server and --engine. Exits with 2."""
    from dragoman_producer.box.engine_choice import choice_of
    from dragoman_producer.box.failures import BoxUnusable

    model, server, name = engine
    try:
        return choice_of(model=model, server=server, engine=name, profile=profile, **more)
    except BoxUnusable as error:
        print_note(f"{command}: {error}")
        raise typer.Exit(USAGE_ERROR) from None


async def in_box(
    command: str,
    choice: EngineChoice,
    data: str | None,
    given: DragomanSettings,
    work: Callable[[DragomanSettings, str | None], Coroutine[Any, Any, int]],
) -> int:
    """Do a command's work with a box; return its exit status, or that of what ended the box.

    The work gets the settings that reach it, and the name of its engine.
    """
    from dragoman_producer.box.failures import BoxFailed, BoxUnusable
    from dragoman_producer.box.for_a_run import services
    from dragoman_producer.box.linked_child import ChildFailed
    from dragoman_producer.box.running import unless_ended
    from dragoman_producer.box.screen import BoxScreen

    screen = BoxScreen(command)
    where = None if data is None else Path(data)
    try:
        async with services(choice, where, given, screen) as found:
            return await unless_ended(work(found.settings, found.engine), found.end)
    except BoxUnusable as error:
        screen.error(str(error))
        return USAGE_ERROR
    except BoxFailed as error:
        screen.error(str(error))
        return error.status
    except ChildFailed as error:
        screen.error(str(error))
        return FAILURE
