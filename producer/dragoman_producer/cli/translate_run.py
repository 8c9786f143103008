"""A run of `dragoman translate`: its request, its services, what it shows, and its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from dragoman_producer.cli import in_box, translate_stdin
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    USAGE_ERROR,
    plain,
    print_json,
    print_note,
    reported_interrupt,
    run,
)

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings
    from dragoman_producer.box.engine_choice import EngineChoice
    from dragoman_producer.runs.request import RunRequest

NAME: Final = "dragoman translate"


def usage_error(why: str) -> typer.Exit:
    """Print why options cannot be used; return the end of the command with 2."""
    print_note(f"{NAME}: {why}")
    return typer.Exit(USAGE_ERROR)


@dataclass(frozen=True, slots=True)
class DocumentsRun:
    """The options of a run, and where it finds its services."""

    given: Mapping[str, Any]
    connection: ConnectionOptions
    choice: EngineChoice | None
    """An engine on this host; None: the services of the settings."""
    data: str | None

    def of_paths(self, paths: list[Path], out: Path, *, as_json: bool) -> None:
        """Translate files and folders. Exits with its status."""
        request = self._request(paths, out)
        run(self._translated(request, as_json=as_json))

    def of_stdin(self) -> None:
        """Translate one document from stdin to stdout. Exits with its status."""
        with translate_stdin.folders() as (path, out):
            request = self._request([path], out)
            try:
                with reported_interrupt():
                    form = request.reading.format or ""
                    translate_stdin.store(path, translate_stdin.stdin(), form)
            except OSError as error:
                print_note(f"{NAME}: standard input: {error.strerror}")
                raise typer.Exit(FAILURE) from None
            run(self._streamed(request))

    async def _streamed(self, request: RunRequest) -> int:
        status = await self._translated(request, streamed=True)
        return translate_stdin.show(request, status)

    def _request(self, paths: list[Path], out: Path) -> RunRequest:
        from dragoman_producer.runs.options import Unusable, request_of  # keeps --help fast

        try:
            request = request_of(paths, out, self.given)
        except Unusable as error:
            raise usage_error(str(error)) from None
        for note in request.translation.notes:
            print_note(f"{NAME}: {note}")
        return request

    async def _translated(
        self, request: RunRequest, *, as_json: bool = False, streamed: bool = False
    ) -> int:
        settings = self.connection.settings()
        if self.choice is None or request.dry_run:
            engine = None if self.choice is None else self.choice.identity
            return await _run_documents(
                _by(engine, request), settings, as_json=as_json, streamed=streamed, forget=False
            )

        def work(reached: DragomanSettings, engine: str | None) -> Coroutine[Any, Any, int]:
            return _run_documents(
                _by(engine, request), reached, as_json=as_json, streamed=streamed, forget=True
            )

        return await in_box.in_box(NAME, self.choice, self.data, settings, work)


def _by(engine: str | None, request: RunRequest) -> RunRequest:
    """Return the request with the engine whose translations of earlier runs count."""
    return replace(request, translation=replace(request.translation, engine=engine))


async def _run_documents(
    request: RunRequest,
    settings: DragomanSettings,
    *,
    as_json: bool,
    streamed: bool,
    forget: bool,
) -> int:
    from dragoman_producer.cli.translate_progress import Display
    from dragoman_producer.client import TranslationClient  # keeps --help fast
    from dragoman_producer.manifest.database import FolderBusy, NoFolder, NoSpace
    from dragoman_producer.runs.extracting import MissingParser
    from dragoman_producer.runs.request import MissingGlossary, NothingNamed, Stop
    from dragoman_producer.runs.selecting import NothingThere
    from dragoman_producer.runs.translating import run_documents

    stop = Stop()
    display = Display(as_json=as_json, streamed=streamed)
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, _stopped(stop, display))
    status = FAILURE
    async with TranslationClient(settings=settings) as client:
        remove = client.forget if forget else None
        try:
            with display:
                async for event in run_documents(client, request, stop=stop, remove=remove):
                    status = display.show(event, status)
        except (NothingThere, NothingNamed, MissingParser, MissingGlossary) as error:
            print_note(f"{NAME}: {error}")
            return USAGE_ERROR
        except NoFolder as error:
            print_note(
                f"{NAME}: --out {plain(request.out)}: {error}; "
                "give a folder that this user can make and write"
            )
            return USAGE_ERROR
        except (FolderBusy, NoSpace) as error:
            print_note(f"{NAME}: {request.out}: {error}")
            return FAILURE
    if as_json and display.totals:
        print_json(display.totals)
    return status


def _stopped(stop: Any, display: Any) -> Any:
    """Return the handler of Ctrl-C and SIGTERM: the second one ends the process at once."""

    def handle() -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(each)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        display.note(
            "stopping: keeping results that arrive within 5 s; press Ctrl-C again to quit now"
        )
        stop()

    return handle
