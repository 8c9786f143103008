"""Commands of `dragoman`, one module each.

Large packages are loaded only when a command runs, so that --help is fast.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
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
    for command in (
        *(translate.translate, review.review, check_links.check_links, submit.submit),
        *(results.result, results.status, cancel.cancel, forget.forget, audit.audit, up.up),
    ):
        _add(app, command)
    app.add_typer(_glossary_commands(), name="glossary")
    app.add_typer(_memory_commands(), name="memory")
    app.add_typer(_dead_letter_commands(), name="dead-letters")
    app.add_typer(_topic_commands(), name="topics")
    for found in sorted(entry_points(group=COMMANDS), key=lambda each: each.name):
        group: typer.Typer = found.load()
        app.add_typer(group, name=found.name, short_help=group.info.help)
    return app


def _add(app: typer.Typer, command: Callable[..., None], name: str | None = None) -> None:
    """Add a command; the list of commands shows its whole first line, which Typer would cut."""
    app.command(name, short_help=(command.__doc__ or "").partition("\n")[0])(command)


def _group(purpose: str) -> typer.Typer:
    return typer.Typer(help=purpose, short_help=purpose, no_args_is_help=True)


def _glossary_commands() -> typer.Typer:
    app = _group("Store glossaries, which jobs name by glossary_id.")
    _add(app, glossary.add)
    _add(app, glossary.list_glossaries, "list")
    _add(app, glossary.show)
    _add(app, glossary.remove)
    return app


def _memory_commands() -> typer.Typer:
    app = _group("Show, fill and clear the translation memory.")
    _add(app, memory.show)
    _add(app, memory_import.import_files, "import")
    _add(app, memory.export)
    _add(app, memory.clear)
    return app


def _dead_letter_commands() -> typer.Typer:
    app = _group("List failed jobs and run them again.")
    _add(app, dead_letters.list_dead_letters, "list")
    _add(app, dead_letters.show)
    _add(app, dead_letters.replay)
    return app


def _topic_commands() -> typer.Typer:
    app = _group("Create and show the Kafka topics.")
    _add(app, topics.create)
    _add(app, topics.show)
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
    """Translate files, folders and texts; submit jobs, read results, operate the queue."""
