"""Commands of `dragoman`, one module each.

Large packages are loaded only when a command runs, so that --help is fast.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib.metadata import entry_points
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final

import typer

from dragoman_connections.terminal import print_to
from dragoman_connections.usage import UsageError, usage_message
from dragoman_producer.cli import (
    audit,
    cancel,
    check_links,
    dead_letters,
    forget,
    glossary,
    memory,
    memory_import,
    results,
    review,
    submit,
    topics,
    translate,
    up,
)
from dragoman_producer.cli.terminal import (
    FAILURE,
    INTERRUPTED,
    SUCCESS,
    USAGE_ERROR,
    flushed,
    plain,
    print_line,
    print_note,
)

COMMANDS: Final = "dragoman.commands"
"""Group of the entry points with which other packages add commands, each a `typer.Typer`."""


def dragoman() -> int:
    """Run the `dragoman` command and return its exit status."""
    logging.disable(logging.CRITICAL)  # errors of connections are printed once, by the command
    _prepare_streams()
    try:
        status: int = _commands()(prog_name="dragoman", standalone_mode=False) or SUCCESS
    except KeyboardInterrupt:
        status = INTERRUPTED
    except typer.Abort:
        status = FAILURE
    except UsageError as error:
        print_to(sys.stderr, usage_message(error, "dragoman"))
        status = USAGE_ERROR
    except OSError as error:
        where = f"{plain(error.filename)}: " if error.filename else ""
        print_note(f"dragoman: {where}{error.strerror or error}")
        status = FAILURE
    except Exception as error:  # noqa: BLE001 - a traceback does not help the user
        print_note(f"dragoman: internal error, please report it: {type(error).__name__}: {error}")
        status = FAILURE
    return status if flushed() else max(status, FAILURE)


def _prepare_streams() -> None:
    """Replace streams that the caller has closed, which are None, and set their encoding."""
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
    app.command()(translate.translate)
    app.command()(review.review)
    app.command()(check_links.check_links)
    app.command()(submit.submit)
    app.command()(results.result)
    app.command()(results.status)
    app.command()(cancel.cancel)
    app.command()(forget.forget)
    app.command()(audit.audit)
    app.command()(up.up)
    app.add_typer(_glossary_commands(), name="glossary")
    app.add_typer(_memory_commands(), name="memory")
    app.add_typer(_dead_letter_commands(), name="dead-letters")
    app.add_typer(_topic_commands(), name="topics")
    for found in sorted(entry_points(group=COMMANDS), key=lambda each: each.name):
        app.add_typer(found.load(), name=found.name)
    return app


def _glossary_commands() -> typer.Typer:
    app = typer.Typer(help="Store glossaries that jobs name.", no_args_is_help=True)
    app.command()(glossary.add)
    app.command("list")(glossary.list_glossaries)
    app.command()(glossary.show)
    app.command()(glossary.remove)
    return app


def _memory_commands() -> typer.Typer:
    app = typer.Typer(help="Show and fill the translation memory.", no_args_is_help=True)
    app.command()(memory.show)
    app.command("import")(memory_import.import_files)
    app.command()(memory.export)
    app.command()(memory.clear)
    return app


def _dead_letter_commands() -> typer.Typer:
    app = typer.Typer(help="List failed jobs, and run them again.", no_args_is_help=True)
    app.command("list")(dead_letters.list_dead_letters)
    app.command()(dead_letters.show)
    app.command()(dead_letters.replay)
    return app


def _topic_commands() -> typer.Typer:
    app = typer.Typer(help="Create and show the Kafka topics.", no_args_is_help=True)
    app.command()(topics.create)
    app.command()(topics.show)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # rarely needed

        print_line(f"dragoman {version('dragoman')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Submit texts for translation and read the results."""
