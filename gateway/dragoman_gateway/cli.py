"""`dragoman serve`, `dragoman serve --check`, and `dragoman serve new-key`."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dragoman_connections.settings import SettingsError, load_settings, parse_pairs
from dragoman_connections.terminal import how_to_install, print_to
from dragoman_connections.usage import UsageError, usage_message

if TYPE_CHECKING:
    from dragoman_gateway.settings import GatewaySettings

serve = typer.Typer(
    help="Serve DeepL's and LibreTranslate's APIs in front of the queue.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@serve.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    *,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Settings file (TOML).")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set one setting, such as serve.port=8080; repeatable.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Check settings, keys, Kafka and Redis, print every problem, and exit."
        ),
    ] = False,
) -> None:
    """Serve DeepL's and LibreTranslate's APIs in front of the queue."""
    if context.invoked_subcommand is not None:
        return
    try:
        from dragoman_gateway.settings import GatewaySettings  # the extra `serve`

        settings = load_settings(GatewaySettings, config, parse_pairs(pairs))
        status = _loop(_check(settings) if check else _serve(settings))
    except ModuleNotFoundError as error:
        _fail(2, f"{error.name} is not installed here; {how_to_install('serve')}")
    except SettingsError as error:
        _fail(2, str(error))
    raise typer.Exit(status)


@serve.command(
    "new-key", short_help="Make a key: print its secret once, and the lines for the keys file."
)
def new_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Name of the key, as logs show it.")],
    *,
    free: Annotated[
        bool, typer.Option("--fx", help="End the secret in :fx, as DeepL's free keys do.")
    ] = False,
) -> None:
    """Make a key: print its secret once, and the lines for serve.keys_file."""
    from dragoman_gateway import keys

    try:
        secret, lines = keys.new_key(key_id, free=free)
    except SettingsError as error:
        _fail(2, str(error))
    print_to(sys.stderr, f"The secret, which is stored nowhere: {secret}")
    print_to(sys.stdout, lines, flush=True)


def main() -> int:
    """Run `serve` as a program of its own, and return the exit status of contract section 7."""
    try:
        status: int = serve(prog_name="dragoman serve", standalone_mode=False) or 0
    except UsageError as error:
        print_to(sys.stderr, usage_message(error, "dragoman serve"))
        return 2
    except KeyboardInterrupt:
        return 130
    return status


def _loop(work: Coroutine[Any, Any, int]) -> int:
    try:
        import uvloop
    except ImportError:  # it does not exist for every platform
        return asyncio.run(work)
    status: int = uvloop.run(work)
    return status


async def _serve(settings: GatewaySettings) -> int:
    from dragoman_gateway.app import Gateway
    from dragoman_gateway.log import Log

    log = Log(requests=settings.serve.log_requests)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    # Reference counts free what a request leaves; the default thresholds scan all held ones.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    try:
        await Gateway(settings, log).run(stop, lambda url: log.event("ready", url=url))
    finally:
        log.close()
    return 0


async def _check(settings: GatewaySettings) -> int:
    from dragoman_gateway.check import problems
    from dragoman_gateway.keys import KeyRing

    keys = KeyRing(settings.serve.keys_file, settings.kafka.topic_names)
    status = 0
    async for fatal, problem in problems(settings, keys):
        status = 1 if fatal else status
        print_to(sys.stderr, f"dragoman serve: {problem}")
    return status


def _fail(status: int, message: str) -> NoReturn:
    print_to(sys.stderr, f"dragoman serve: {message}")
    raise typer.Exit(status)
