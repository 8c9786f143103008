"""Usage errors of all commands: one line with what to do."""

from __future__ import annotations

from typing import Final

import typer

# Typer exports the subclasses alone.
UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]


def usage_message(error: Exception, program: str) -> str:
    """Return the line that names the option and the help command.

    A command group without arguments is answered with its help page instead.
    """
    message: str = getattr(error, "format_message", error.__str__)()
    if type(error).__name__ == "NoArgsIsHelpError":
        return message
    context = getattr(error, "ctx", None)
    command = context.command_path if context else program
    line = f"{command}: {message.rstrip('.')}. See `{command} --help`."
    return " ".join(line.split())
