"""What does a person type for a first look? The `dragoman-demo` command."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dragoman_demo.child import ChildFailed, last_lines
from dragoman_demo.samples import samples
from dragoman_demo.screen import Screen
from dragoman_demo.serving import addresses, commands_to_try
from dragoman_demo.translating import translate
from dragoman_demo.trial import Trial, running, unless_worker_fails
from dragoman_demo.worker_child import EngineKind
from dragoman_producer import DragomanError

FAILED = 1
PARTLY = 3
INTERRUPTED = 128 + signal.SIGINT

app = typer.Typer(
    name="dragoman-demo",
    help="See Dragoman work on this machine: embedded Kafka and Redis, and vLLM on the CPU.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
Engine = Annotated[
    EngineKind, typer.Option(help="vllm translates; echo only shows the way, without a model.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")]


@app.callback(invoke_without_command=True)
def demo(context: typer.Context, engine: Engine = EngineKind.VLLM, as_json: Json = False) -> None:
    """Translate the samples and stop; with `serve`, stay up."""
    if context.invoked_subcommand is None:
        raise typer.Exit(_run(engine, _show_samples(as_json=as_json), interrupted=INTERRUPTED))


@app.command()
def serve(engine: Engine = EngineKind.VLLM, as_json: Json = False) -> None:
    """Stay up until Ctrl-C, and tell how to reach broker and Redis."""
    # Ctrl-C is how this command ends well.
    raise typer.Exit(_run(engine, _stay_up(as_json=as_json), interrupted=0))


def main() -> None:
    """Entry point of the console script."""
    app()


Act = Callable[[Trial, Screen], Coroutine[None, None, int]]


def _show_samples(*, as_json: bool) -> Act:
    async def act(trial: Trial, screen: Screen) -> int:
        wanted = samples()
        with screen.progress(len(wanted)) as bar:
            report = await translate(
                wanted,
                bootstrap=trial.bootstrap,
                redis_url=trial.redis_url,
                on_done=lambda _: bar.advance(bar.task_ids[0]),
            )
        if as_json:
            screen.json_lines(report.done)
        else:
            screen.translations(report.done)
        screen.summary(report)
        if not report.failures:
            return 0
        return PARTLY if report.completed else FAILED

    return act


def _stay_up(*, as_json: bool) -> Act:
    async def act(trial: Trial, screen: Screen) -> int:
        screen.data(addresses(trial, as_json=as_json))
        screen.say(commands_to_try(trial))
        await asyncio.Event().wait()
        return 0

    return act


def _run(engine: EngineKind, act: Act, *, interrupted: int) -> int:
    screen = Screen(out=Console(), err=Console(stderr=True))
    # The trial is the same for everybody: settings for a real deployment must not leak into it.
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        del os.environ[name]
    # Short, for vLLM puts sockets there, whose paths may have 104 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    status = FAILED
    try:
        status = asyncio.run(_until_signal(engine, folder, screen, act))
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = interrupted
    except (ChildFailed, DragomanError) as error:
        screen.error(str(error))
    finally:
        _put_away(folder, screen, failed=status in {FAILED, PARTLY})
    return status


async def _until_signal(engine: EngineKind, folder: Path, screen: Screen, act: Act) -> int:
    """Act on a running trial; Ctrl-C, SIGTERM and a closed terminal end it, and say so at once."""

    async def trying() -> int:
        async with running(engine, folder, screen) as trial:
            return await unless_worker_fails(trial, act(trial, screen))

    task = asyncio.create_task(trying(), name="trial")

    def end() -> None:
        if not task.cancelling():  # a second one must not cut the ending short
            screen.say("Ending what has been started; this takes some seconds ...")
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end)
    return await task


def _put_away(folder: Path, screen: Screen, *, failed: bool) -> None:
    log = folder / "worker.log"
    if failed and log.is_file():
        screen.say(f"--- the end of the worker's log, {log}")
        screen.say(last_lines(log, 15))
    else:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
