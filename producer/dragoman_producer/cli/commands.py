"""Which commands does `dragoman` have?

Each is a module here. Nothing heavy is loaded before a command runs, so that --help is quick.
"""

from __future__ import annotations

import logging
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from dragoman_producer.cli import audit, dead_letters, results, submit, topics
from dragoman_producer.cli.terminal import (
    ALL_WELL,
    FAILED,
    INTERRUPTED,
    WRONG_USAGE,
    flushed,
    say,
)

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]


def dragoman() -> int:
    """Run the `dragoman` command; the status it ends with."""
    logging.disable(logging.CRITICAL)  # what libraries log about a refused connection is said once
    _prepare_streams()
    try:
        status: int = _commands()(prog_name="dragoman", standalone_mode=False) or ALL_WELL
    except KeyboardInterrupt:
        status = INTERRUPTED
    except typer.Abort:
        status = FAILED
    except _USAGE_ERROR as error:
        status = _wrong_usage(error)
    except OSError as error:
        say(f"dragoman: {error.filename or 'standard output'}: {error.strerror or error}")
        status = FAILED
    except Exception as error:  # noqa: BLE001 - a traceback tells the person at the shell nothing
        say(f"dragoman: a fault of the program, please report it: {type(error).__name__}: {error}")
        status = FAILED
    return status if flushed() else max(status, FAILED)


def _prepare_streams() -> None:
    """A stream that the caller has closed is None, and one in another encoding fails late."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - until the process exits
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _commands() -> typer.Typer:
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    app.command()(submit.submit)
    app.command()(results.result)
    app.command()(results.status)
    app.command()(results.cancel)
    app.command()(audit.audit)
    app.add_typer(_dead_letter_commands(), name="dead-letters")
    app.add_typer(_topic_commands(), name="topics")
    return app


def _dead_letter_commands() -> typer.Typer:
    app = typer.Typer(help="Look at what failed, and run it again.", no_args_is_help=True)
    app.command("list")(dead_letters.list_letters)
    app.command()(dead_letters.show)
    app.command()(dead_letters.replay)
    return app


def _topic_commands() -> typer.Typer:
    app = typer.Typer(help="Make and look at Kafka's topics.", no_args_is_help=True)
    app.command()(topics.create)
    app.command()(topics.show)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # seldom needed

        typer.echo(f"dragoman {version('dragoman')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hand texts over for translation and read the results."""


def _wrong_usage(error: Exception) -> int:
    """One line that names the option, and where to read more."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "dragoman"
    message = getattr(error, "format_message", error.__str__)()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
    else:
        say(f"{command}: {message.rstrip('.')}. See `{command} --help`.")
    return WRONG_USAGE
