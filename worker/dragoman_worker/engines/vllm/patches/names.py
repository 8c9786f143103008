"""Names that vLLM's source defines, read without importing it.

A name is `module:name`, `module:Class.member` or `module:Class.method(parameter,parameter)`. The
attributes that a class sets on itself count as members, and so do names that a module imports.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

Source = Callable[[str], str | None]
"""Returns the source of a module, None if there is no such module."""
Names = Mapping[str, tuple[str, ...]]
"""Parameters by name; empty for what is no function."""
_BLOCKS: Final = (ast.If, ast.Try, ast.With)


def installed(module: str) -> str | None:
    """Return the source of a module of the installed vLLM."""
    package, _, inside = module.partition(".")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return in_folder(Path(spec.submodule_search_locations[0]), inside)


def in_folder(package: Path, inside: str) -> str | None:
    """Return the source of the module `inside` a package's folder."""
    place = package.joinpath(*inside.split("."))
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None


def first_missing(wanted: Iterable[str], names_of: Callable[[str], Names]) -> str | None:
    """Return the first of the names that is missing or lacks a parameter, None if all are there.

    `names_of` returns what a module defines.
    """
    for each in wanted:
        name, _, rest = each.partition("(")
        module, _, inside = name.partition(":")
        found = names_of(module).get(inside)
        if found is None or not set(filter(None, rest.rstrip(")").split(","))) <= {*found}:
            return each
    return None


@cache
def installed_names(module: str) -> Names:
    """Return what a module of the installed vLLM defines; nothing if it cannot be read."""
    try:
        return names_in(installed(module) or "")
    except (OSError, ValueError, SyntaxError):
        return {}


def names_in(source: str) -> Names:
    """Return the names that a module's source defines, with the parameters of functions."""
    return dict(_defined(ast.parse(source).body))


def _defined(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", _parameters(node.args)
            if prefix:
                yield from ((f"{prefix}{name}", ()) for name in _set_on_self(node))
        elif isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", ()
            yield from _defined(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, _BLOCKS):
            yield from _defined(ast.iter_child_nodes(node), prefix)  # type: ignore[arg-type]
        else:
            yield from ((f"{prefix}{name}", ()) for name in _bound(node))


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return tuple(each.arg for each in every)


def _set_on_self(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            yield node.attr


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement imports or assigns."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (each.asname or each.name for each in node.names)
        return
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
