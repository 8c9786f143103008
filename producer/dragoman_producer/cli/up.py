"""The `dragoman up` command: one host, embedded services and a worker, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import in_box, options
from dragoman_producer.cli.terminal import FAILURE, INTERRUPTED, SUCCESS, USAGE_ERROR, print_note

if TYPE_CHECKING:
    from dragoman_producer.box.data_folder import DataFolder
    from dragoman_producer.box.engine_choice import EngineChoice
    from dragoman_producer.box.screen import BoxScreen
    from dragoman_producer.box.serving import Reached


def up(
    *,
    model: in_box.Model = None,
    server: in_box.Server = None,
    engine: in_box.Engine = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Prompt profile; default: by the model's name."),
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="all|0,1", help="GPUs to use; default: all.")
    ] = None,
    data: in_box.Data = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of worker or gateway; repeatable."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run broker, Redis, worker and gateway on this host until Ctrl-C; print how to reach them.

    You need nothing else. Start it again with the same --data to keep the results.
    """
    from dragoman_producer.box.data_folder import DataFolder
    from dragoman_producer.box.engine_choice import choice_of
    from dragoman_producer.box.failures import BoxUnusable
    from dragoman_producer.box.machine import default_data_folder
    from dragoman_producer.box.screen import BoxScreen
    from dragoman_producer.box.serving import check_installed

    try:
        choice = choice_of(
            model=model,
            server=server,
            engine=engine,
            profile=profile,
            gpus=gpus,
            settings=set_ or (),
        )
        check_installed()
        folder = DataFolder.open(default_data_folder() if data is None else Path(data))
    except BoxUnusable as error:
        print_note(f"dragoman up: {error}")
        raise typer.Exit(USAGE_ERROR) from None
    raise typer.Exit(_status(choice, folder, BoxScreen("dragoman up"), as_json=as_json))


def _status(choice: EngineChoice, folder: DataFolder, screen: BoxScreen, *, as_json: bool) -> int:
    from dragoman_producer.box.failures import BoxFailed, BoxUnusable
    from dragoman_producer.box.linked_child import ChildFailed

    try:
        asyncio.run(_until_stopped(choice, folder, screen, as_json=as_json))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return SUCCESS  # the normal way to stop this command
    except BoxUnusable as error:
        screen.error(str(error))
        return USAGE_ERROR
    except BoxFailed as error:
        screen.error(str(error))
        return error.status
    except ChildFailed as error:
        screen.error(str(error))
        return FAILURE
    finally:
        folder.close()
    return SUCCESS


async def _until_stopped(
    choice: EngineChoice, folder: DataFolder, screen: BoxScreen, *, as_json: bool
) -> None:
    from dragoman_producer.box.serving import serve

    def show(reached: Reached, new: bool) -> None:
        _show(screen, reached, new=new, as_json=as_json)

    serving = asyncio.create_task(serve(choice, folder, screen, show), name="box")

    def stop() -> None:
        if serving.cancelling():
            os._exit(INTERRUPTED)  # the children notice, and the next start cleans up
        serving.cancel()
        screen.line("Stopping: finishing the work in flight; press Ctrl-C again to quit now")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored, as under nohup
            with suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, stop)
    await serving


def _show(screen: BoxScreen, reached: Reached, *, new: bool, as_json: bool) -> None:
    from dragoman_connections.terminal import json_line
    from dragoman_producer.box.addresses import lines_for_people, promises

    screen.data(json_line(dict(reached)) if as_json else "\n".join(lines_for_people(reached)))
    if not new:
        screen.line(f"This box is already running (process {reached['pid']}).")
        return
    screen.line()
    for line in promises(Path(reached["data"])):
        screen.line(line)
    screen.line(f"The worker's log: {reached['worker_log']}")
    screen.line("Ctrl-C stops everything.")
