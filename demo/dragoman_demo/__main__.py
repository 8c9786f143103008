"""The `dragoman-demo` command: Dragoman on one machine, with embedded Kafka and Redis."""

from __future__ import annotations

import signal
import sys

_interrupt = signal.getsignal(signal.SIGINT)
if _interrupt is signal.default_int_handler:  # not ignored, as under nohup
    # A KeyboardInterrupt during the imports below would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dragoman_connections.child import STOP_SIGNALS
from dragoman_connections.terminal import print_to
from dragoman_connections.usage import UsageError, usage_message
from dragoman_demo.folder import FolderReport, translate_folder
from dragoman_demo.requirements import EngineKind, NotInstalled, check_installed
from dragoman_demo.samples import samples
from dragoman_demo.screen import Screen
from dragoman_demo.translating import translate
from dragoman_producer import DragomanError
from dragoman_producer.box.engine_choice import choice_of
from dragoman_producer.box.failures import BoxFailed, BoxUnusable
from dragoman_producer.box.linked_child import ChildFailed
from dragoman_producer.box.logs import last_lines
from dragoman_producer.box.running import Box, running, unless_ended
from dragoman_producer.manifest.database import FolderBusy, NoFolder, NoSpace
from dragoman_worker.process.signals import stays_ignored

FAILURE = 1
USAGE_ERROR = 2
PARTIAL = 3
INTERRUPTED = 128 + signal.SIGINT

app = typer.Typer(
    name="dragoman-demo",
    help="Run Dragoman on this machine: embedded Kafka and Redis, vLLM on the CPU.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
Engine = Annotated[
    EngineKind,
    typer.Option(
        metavar="vllm|echo", help="The demo model, or no model: echo returns each text with a tag."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Keep the translated documents in this folder."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


@app.command()
def demo(
    engine: Engine = EngineKind.VLLM,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Translate sample texts and a sample folder, then stop. `dragoman up` keeps running."""
    _make(out)  # before the work whose result it keeps
    raise typer.Exit(_run(engine, _show_samples(out, as_json=as_json)))


def main() -> None:
    """Run the console script."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        raise SystemExit(app(standalone_mode=False))
    except UsageError as error:
        print_to(sys.stderr, usage_message(error, "dragoman-demo"))
        raise SystemExit(USAGE_ERROR) from None
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(INTERRUPTED) from None


def _make(out: Path | None) -> None:
    """Make the folder of the outputs. Exits with 2 if it cannot be made or written."""
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        Screen().error(
            f"--out {out}: {error.strerror}; give a folder that this user can make and write"
        )
        raise typer.Exit(USAGE_ERROR) from None


_FAILURES = (BoxFailed, BoxUnusable, ChildFailed, DragomanError, FolderBusy, NoFolder, NoSpace)
_GRACE_S = 1.0
"""Seconds that its jobs may take after Ctrl-C: nothing of the demonstration outlives it."""
_ENGINES = {EngineKind.VLLM: "demo", EngineKind.ECHO: "echo"}
"""Names of a box's engines."""
Act = Callable[[Box, Screen], Coroutine[None, None, int]]


def _show_samples(out: Path | None, *, as_json: bool) -> Act:
    async def act(box: Box, screen: Screen) -> int:
        wanted = samples()
        with screen.progress(len(wanted)) as bar:
            report = await translate(
                wanted,
                bootstrap=box.bootstrap,
                redis_url=box.redis_url,
                on_done=lambda _: bar.advance(bar.task_ids[0]),
            )
        if as_json:
            screen.json_lines(report.done)
        else:
            screen.translations(report.done)
        screen.summary(report)
        translated = await _show_folder(box, screen, out, as_json=as_json)
        if not report.failures and translated.complete:
            return 0
        return PARTIAL if report.completed else FAILURE

    return act


async def _show_folder(
    box: Box, screen: Screen, out: Path | None, *, as_json: bool
) -> FolderReport:
    """Translate a folder of documents, into a temporary one where none is given."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as temporary:
        with screen.progress(1) as bar:
            task = bar.task_ids[0]
            report = await translate_folder(
                out or Path(temporary),
                bootstrap=box.bootstrap,
                redis_url=box.redis_url,
                on_progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        if as_json:
            screen.document_lines(report)
        else:
            screen.documents(report, kept=out is not None)
    return report


def _run(engine: EngineKind, act: Act) -> int:
    screen = Screen()
    try:
        check_installed(engine)
    except NotInstalled as error:
        screen.error(str(error))
        return USAGE_ERROR
    # The demo is the same for everybody: settings of a real deployment must not reach it.
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        del os.environ[name]
    # A short path: vLLM puts sockets there, whose paths may have at most 104 characters.
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    status = FAILURE
    try:
        status = asyncio.run(_until_signal(engine, folder, screen, act))
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = INTERRUPTED
    except _FAILURES as error:
        screen.error(str(error))
    finally:
        _clean_up(folder, screen, failed=status in {FAILURE, PARTIAL})
    return status


async def _until_signal(engine: EngineKind, folder: Path, screen: Screen, act: Act) -> int:
    """Act on the running services until done; Ctrl-C, SIGTERM and a closed terminal stop them."""

    async def act_on_services() -> int:
        choice = choice_of(model=None, server=None, engine=_ENGINES[engine])
        async with running(choice, folder, folder, screen, grace_s=_GRACE_S) as (box, end):
            return await unless_ended(act(box, screen), end)

    task = asyncio.create_task(act_on_services(), name="demo")

    def stop() -> None:
        if not task.cancelling():  # a second signal must not interrupt the shutdown
            task.cancel()
            with suppress(OSError):  # the terminal is closed
                screen.line("Stopping all processes; this takes some seconds ...")

    for number in STOP_SIGNALS:
        if not stays_ignored(number):
            asyncio.get_running_loop().add_signal_handler(number, stop)
    return await task


def _clean_up(folder: Path, screen: Screen, *, failed: bool) -> None:
    log = folder / "worker.log"
    if failed and log.is_file():
        screen.line(f"--- the last lines of the worker's log, {log}")
        screen.line(last_lines(log, 15))
    else:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
