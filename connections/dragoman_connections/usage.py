"""Usage errors of all commands: one line with what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import typer

from dragoman_schemas.nearest import did_you_mean, invalid_choice

# Typer exports only the subclasses.
UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]

_NO_COMMAND: Final = re.compile(r"No such command '([^']*)'.*")
_NOT_ONE_OF: Final = re.compile(r"'(?P<given>[^']*)' is not one of (?P<known>'.+')")
_CHOICE: Final = re.compile(r"'([^']*)'")


def usage_message(error: Exception, program: str) -> str:
    """Return the line that names the option and the help command.

    A command group without arguments is answered with its help page instead.
    """
    message: str = getattr(error, "format_message", error.__str__)()
    if type(error).__name__ == "NoArgsIsHelpError":
        return message
    context = getattr(error, "ctx", None)
    command = context.command_path if context else program
    line = f"{command}: {_problem(error, message, context)}. See `{command} --help`."
    return " ".join(line.split())


def _problem(error: Exception, message: str, context: Any) -> str:
    """Return what is wrong, in the words of all other messages."""
    if (option := getattr(error, "option_name", None)) and "No such option" in message:
        return f"No such option: {option}{did_you_mean(option, _options(context))}"
    if (found := _NO_COMMAND.match(message)) is not None:
        commands = getattr(getattr(context, "command", None), "commands", {})
        return f"No such command: {found[1]}{did_you_mean(found[1], commands)}"
    name = getattr(getattr(error, "param", None), "opts", None)
    if name and (why := _invalid_value(error, message)):
        return f"{name[-1] if name[-1].startswith('-') else error_hint(error)}: {why}"
    return message.rstrip(".")


def error_hint(error: Exception) -> str:
    """Return the name of the argument that is wrong, as the help shows it."""
    parameter = getattr(error, "param", None)
    return str(getattr(parameter, "metavar", None) or getattr(parameter, "name", "argument"))


def _invalid_value(error: Exception, message: str) -> str:
    """Return why a value is refused, without the wording of Typer and pydantic; '' if unknown."""
    if (found := _NOT_ONE_OF.search(message)) is not None:
        return invalid_choice(found["given"], _CHOICE.findall(found["known"]))
    problems: Any = getattr(error.__cause__, "errors", None)
    if problems is None:
        return ""
    from dragoman_connections.invalid_settings import explained  # noqa: PLC0415 - pydantic is slow

    problem = problems()[0]
    given = problem.get("input")
    shown = f"{given!r} is not valid: it " if isinstance(given, str) else ""
    return f"{shown}{explained(problem)}"


def _options(context: Any) -> Iterable[str]:
    parameters = getattr(getattr(context, "command", None), "params", ())
    return [name for each in parameters for name in each.opts if name.startswith("--")]
