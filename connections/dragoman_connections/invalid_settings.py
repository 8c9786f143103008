"""Messages about settings that are invalid: each names the setting and the valid values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_settings.exceptions import SettingsError as UnreadableSource


def in_one_line(error: ValidationError) -> str:
    """Return every problem of the settings, in one line."""
    return "; ".join(_problems(error))


def _problems(error: ValidationError) -> Iterable[str]:
    for problem in error.errors(include_url=False, include_input=False):
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            yield f"{name}: there is no such setting; docs/reference/settings.md lists all"
        elif problem["type"] == "model_type":
            yield f"{name}: it is a group of settings, not one value; set {name}.NAME"
        else:
            message = problem["msg"].removeprefix("Value error, ")
            yield f"{name}: {message}" if name else message


def of_environment(error: UnreadableSource, prefix: str) -> str:
    """Return what is wrong with the variable of a group or a table.

    pydantic-settings names the group of settings alone, and its own classes.
    """
    group = re.search(r'field "(\w+)"', str(error))
    if group is None:
        return f"environment {prefix}*: {error}"
    name = f"{prefix}{group[1].upper()}"
    return (
        f"environment {name} or {name}__*: a group or a table must be JSON; "
        f"give one setting as {name}__NAME"
    )
