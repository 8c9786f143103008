"""Validation errors of a job as one line: the path, the problem and the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic_core import ErrorDetails

from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import (
    DocumentRef,
    Item,
    Quality,
    Sampling,
    TranslationJob,
    WireModel,
)
from dragoman_schemas.nearest import did_you_mean

_SHOWN: Final = 3
_LONGEST_VALUE: Final = 60
_UNQUOTED: Final = frozenset({"text", "context"})

_MODELS: Final[Mapping[int | str, type[WireModel]]] = {
    "text": Item,
    "sampling": Sampling,
    "quality": Quality,
    "document": DocumentRef,
}

# By pydantic's error type; {value} is the refused value, the other names are pydantic's context.
_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "float_type": "must be a number",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "string_too_long": "has {length} characters, at most {max_length} are allowed",
    "string_too_short": "must not be empty",
    "too_long": "has {length} items, at most {max_length} are allowed",
    "too_short": "must not be empty",
    "greater_than_equal": "is {value}, must be at least {ge}",
    "greater_than": "is {value}, must be more than {gt}",
    "less_than_equal": "is {value}, must be at most {le}",
    "less_than": "is {value}, must be less than {lt}",
    "literal_error": "is {value}, must be {expected}",
}


def failure_code(problems: Sequence[ErrorDetails]) -> FailureCode:
    """Return unsupported_language if only languages are invalid, otherwise invalid_job."""
    if all(problem["type"] == "unsupported_language" for problem in problems):
        return FailureCode.UNSUPPORTED_LANGUAGE
    return FailureCode.INVALID_JOB


def sentence(problems: Sequence[ErrorDetails]) -> str:
    """Return the first problems in one line, and how many more there are; quote no user text."""
    # A misspelt name comes first, because it explains the required field that is missing.
    ordered = sorted(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    shown = "; ".join(_problem(problem) for problem in ordered[:_SHOWN])
    more = len(problems) - _SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def _problem(problem: ErrorDetails) -> str:
    path, message = _path(problem["loc"]), _message(problem)
    return f"{path}: {message}" if path else message


def _path(loc: tuple[int | str, ...]) -> str:
    """Return ``text[3].max_chars`` for ``("text", "<list>", 3, "<item>", "max_chars")``."""
    path, name = "", ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step == "[key]":
            name = " (a name)"  # the name of a map's entry is invalid, not its value
        elif step and not (loc[0] == "text" and step.startswith("<")):
            path += f".{_printable(step)}" if path else _printable(step)
    return path + name


def _message(problem: ErrorDetails) -> str:
    template = _MESSAGES.get(problem["type"])
    if template is None:
        return problem["msg"]
    if problem["type"] == "extra_forbidden":
        return template + _suggestion(problem)
    context = dict(problem.get("ctx", {}))
    value = problem["input"]
    if isinstance(value, str | list | dict):
        context["length"] = len(value)
    return template.format(value=_quoted(problem["loc"], value), **{"length": 0, **context})


def _suggestion(problem: ErrorDetails) -> str:
    *parents, name = problem["loc"]
    model = _MODELS.get(parents[0] if parents else "", TranslationJob)
    names = [field.alias or name for name, field in model.model_fields.items()]
    return did_you_mean(str(name), names)


def _quoted(loc: tuple[int | str, ...], value: object) -> str:
    if isinstance(value, str | list | dict) and _UNQUOTED.intersection(loc):
        return "not valid"
    return _printable(str(value) if isinstance(value, int | float) else repr(value))


def _printable(value: str) -> str:
    short = value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    return "".join(char if char.isprintable() else "�" for char in short)
