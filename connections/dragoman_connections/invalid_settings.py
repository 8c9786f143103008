"""Messages about settings that are invalid: each names the setting and the valid values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings.exceptions import SettingsError as UnreadableSource

from dragoman_schemas.nearest import alternatives, did_you_mean

TOP_LEVEL: Final = frozenset(
    [
        "connect_timeout_s",
        "engine",
        "glossary",
        "http",
        "kafka",
        "limits",
        "log",
        "memory",
        "quality",
        "redis",
        "retry",
        "serve",
        "shutdown",
        "supervisor",
        "tracing",
        "worker_id",
    ]
)
"""Groups, and settings outside groups, of all programs: they may share a file and environment."""
_MESSAGES: Final[Mapping[str, str]] = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "path_type": "must be a path",
    "dict_type": "must be a table of names and values",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "missing": "is missing",
}
"""By pydantic's type of error; the names in braces are pydantic's context. No value is quoted:
it may be a password."""
_CHOICES: Final = re.compile(r"'([^']*)'")


def in_one_line(error: ValidationError, kind: type[BaseModel]) -> str:
    """Return every problem of settings of this kind, in one line."""
    return "; ".join(_problems(error, kind))


def explained(problem: ErrorDetails) -> str:
    """Return what is wrong with a value, without its name: `must be at least 60`."""
    if problem["type"] == "literal_error":
        return f"choose {alternatives(_CHOICES.findall(problem.get('ctx', {})['expected']))}"
    if (template := _MESSAGES.get(problem["type"])) is not None:
        return template.format(**problem.get("ctx", {}))
    return problem["msg"].removeprefix("Value error, ")


def _problems(error: ValidationError, kind: type[BaseModel]) -> Iterable[str]:
    for problem in error.errors(include_url=False, include_input=False):
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            yield _unknown(problem["loc"], kind)
        elif problem["type"] == "model_type":
            yield f"{name} is a group of settings, not one value; set {name}.NAME"
        else:
            message = explained(problem)
            is_named = not name or message.startswith(f"{name}.")
            yield message if is_named else f"{name}: {message}"


def _unknown(loc: tuple[int | str, ...], kind: type[BaseModel]) -> str:
    """Return that there is no such setting, and the nearest one or all of its group."""
    *groups, last = map(str, loc)
    fields: Any = kind.model_fields
    for group in groups:  # a step into a list finds no fields, and so no hint
        annotation = fields[group].annotation if group in fields else None
        fields = getattr(annotation, "model_fields", {})
    prefix = "".join(f"{group}." for group in groups)
    hint = did_you_mean(last, fields, prefix)
    more = f"; {groups[-1]} has {', '.join(fields)}" if groups and fields and not hint else ""
    return f"unknown setting {prefix}{last}{hint}{more}"


def unknown_group(given: Iterable[Mapping[str, Any]], prefix: str) -> str | None:
    """Return the first group that no program has, in sources or the environment; None if none.

    Without this a program would ignore it, as it ignores the groups of other programs.
    """
    found = [name for source in given for name in source if name not in TOP_LEVEL]
    if found:
        return f"unknown setting {found[0]}{did_you_mean(found[0], TOP_LEVEL)}"
    return next(_unknown_variables(prefix), None)


def _unknown_variables(prefix: str) -> Iterator[str]:
    """Yield variables of unknown groups; those without `__` may be of other programs."""
    for name in os.environ:
        group, is_nested, rest = name.upper().removeprefix(prefix).partition("__")
        if name.upper().startswith(prefix) and is_nested and group.lower() not in TOP_LEVEL:
            known = [f"{prefix}{each.upper()}__{rest}" for each in sorted(TOP_LEVEL)]
            yield f"unknown setting in the environment: {name}{did_you_mean(name, known)}"


def of_environment(error: UnreadableSource, prefix: str) -> str:
    """Return what is wrong with the variable of a group or a table.

    pydantic-settings names only the group of settings, and its own classes.
    """
    group = re.search(r'field "(\w+)"', str(error))
    if group is None:
        return f"environment {prefix}*: {error}"
    name = f"{prefix}{group[1].upper()}"
    return (
        f"environment {name} or {name}__*: a group or a table must be JSON; "
        f"give one setting as {name}__NAME"
    )
