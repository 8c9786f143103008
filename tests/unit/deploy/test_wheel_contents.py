"""The wheel holds no module that only tests import, and each of its classes has its own name."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOR_USERS = {"dragoman_producer.testing"}
"""What only programs of users import, for their tests."""


@cache
def project() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def modules() -> dict[str, Path]:
    """Return the file of each module in the wheel, by its dotted name."""
    wheel = project()["tool"]["hatch"]["build"]["targets"]["wheel"]  # type: ignore[index]
    return {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for folder in (ROOT / each for each in wheel["packages"])  # type: ignore[index]
        for path in folder.rglob("*.py")
    }


def is_program(path: Path) -> bool:
    """Whether a process starts with this module: by `python -m`, or by the path of its file."""
    return path.stem == "__main__" or 'if __name__ == "__main__"' in path.read_text()


def named(path: Path, package: str) -> Iterator[str]:
    """Yield the dotted names in a module's imports, and in its strings where it imports by name."""
    source = path.read_text()
    by_name = "import_module(" in source
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from (each.name for each in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
                yield from (f"{module}.{each.name}" for each in node.names)
            case ast.Constant(value=str(text)):
                yield text.partition(":")[0]  # module:function
                if by_name:  # a table of modules below its own package
                    yield f"{package}.{text}"
            case _:
                pass


def reached(names: set[str]) -> set[str]:
    """Return these modules, what they import and so on, each with the packages around it."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name not in modules():
            continue
        found.add(name)
        path = modules()[name]
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        waiting += [name.rpartition(".")[0], *named(path, package)]
    return found


def test_every_module_of_the_wheel_is_reached_from_a_command_or_is_for_users() -> None:
    scripts = {target.partition(":")[0] for target in project()["project"]["scripts"].values()}
    programs = {name for name, path in modules().items() if is_program(path)}
    assert sorted(set(modules()) - reached(scripts | programs | FOR_USERS)) == []


SHARED = {"Piece", "Unreachable"}
"""Names that several classes have. Add none: a search and a stack trace should tell which it is."""


def test_no_two_public_classes_have_the_same_name() -> None:
    named = Counter(
        node.name
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert sorted({name for name, count in named.items() if count > 1} - SHARED) == []
