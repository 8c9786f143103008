"""Operators of the mutants: small breaks of one function, found by what it does, not by its text.

A name matches wherever the syntax tree holds it: `claim` in `self._store.claim(...)`,
`self._store.claim` only there. An operator raises ValueError unless exactly one place matches.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node")
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Delete:
    """Leave out the statement that mentions `of`, or the command of a script."""

    of: str


@dataclass(frozen=True, slots=True)
class Later:
    """Run the statement that mentions `of` after the one of the same block that mentions `than`."""

    of: str
    than: str


@dataclass(frozen=True, slots=True)
class Always:
    """Fix the condition that mentions `of`, of an `if`, a `while` or a comprehension."""

    of: str
    is_: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave out the operand of `and` or `or` that mentions `of`."""

    of: str


@dataclass(frozen=True, slots=True)
class Use:
    """Put another expression in the place of `of`."""

    of: str
    instead: str


@dataclass(frozen=True, slots=True)
class Returns:
    """Return this expression at once."""

    value: str


Break = Delete | Later | Always | Drop | Use | Returns


def only(found: Iterable[Node], what: object) -> Node:
    """Return the only one. Raises ValueError."""
    every = list(found)
    if len(every) != 1:
        raise ValueError(f"{what} applies in {len(every)} places")
    return every[0]


def functions(source: str, name: str) -> Iterator[tuple[ast.Module, Function]]:
    """Yield the module and each of its functions `name`: `Class.method` or `function`."""
    *owners, last = name.split(".")
    if not all(f"class {owner}" in source for owner in owners) or f"def {last}(" not in source:
        return
    module = ast.parse(source)
    level: list[ast.AST] = [module]
    for owner in owners:
        level = [
            each
            for node in level
            for each in ast.iter_child_nodes(node)
            if isinstance(each, ast.ClassDef) and each.name == owner
        ]
    for node in level:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, Function) and each.name == last:
                yield module, each


def apply(function: Function, how: Break) -> None:
    """Break the function in place. Raises ValueError."""
    match how:
        case Delete(of):
            block, n = only(_statements(function, of), how)
            block[n : n + 1] = [] if len(block) > 1 else [ast.Pass()]
        case Later(of, than):
            block, n, last = only(_pairs(function, of, than), how)
            block.insert(last, block.pop(n))
        case Always(of, is_):
            put = only(_conditions(function, of), how)
            put(ast.Constant(is_))
        case Drop(of):
            chain, operand = only(_operands(function, of), how)
            chain.values.remove(operand)
        case Use(of, instead):
            put = only(_expressions(function, of), how)
            put(ast.parse(instead, mode="eval").body)
        case Returns(value):
            function.body = [ast.Return(ast.parse(value, mode="eval").body)]


def _mentions(node: ast.AST, of: str) -> bool:
    return any(of in _names(each) for each in ast.walk(node))


def _names(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Attribute(attr=name):
            return (name, ast.unparse(node))
        case ast.keyword(arg=str(name)):
            return (name,)
        case ast.Constant(value=str(text)):
            return (text,)
        case ast.expr() | ast.stmt():
            return (ast.unparse(node),)
        case _:
            return ()


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        blocks = (getattr(node, field, None) for field in _BLOCKS)
        yield from (block for block in blocks if isinstance(block, list))


def _statements(function: Function, of: str) -> Iterator[tuple[list[ast.stmt], int]]:
    for block in _blocks(function):
        for n, statement in enumerate(block):
            if not hasattr(statement, "body") and _mentions(statement, of):
                yield block, n


def _pairs(function: Function, of: str, than: str) -> Iterator[tuple[list[ast.stmt], int, int]]:
    for block in _blocks(function):
        for n, statement in enumerate(block):
            for last in range(n + 1, len(block)):
                if _mentions(statement, of) and _mentions(block[last], than):
                    yield block, n, last


def _conditions(function: Function, of: str) -> Iterator[Callable[[ast.expr], None]]:
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp | ast.While) and _mentions(node.test, of):
            yield _setter(node, "test")
        elif isinstance(node, ast.comprehension):
            yield from (
                _item_setter(node.ifs, n)
                for n, condition in enumerate(node.ifs)
                if _mentions(condition, of)
            )


def _operands(function: Function, of: str) -> Iterator[tuple[ast.BoolOp, ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.BoolOp):
            yield from ((node, each) for each in node.values if _mentions(each, of))


def _expressions(function: Function, of: str) -> Iterator[Callable[[ast.expr], None]]:
    for node in ast.walk(function):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and ast.unparse(value) == of:
                yield _setter(node, field)
            elif isinstance(value, list):
                yield from (
                    _item_setter(value, n)
                    for n, each in enumerate(value)
                    if isinstance(each, ast.expr) and ast.unparse(each) == of
                )


def _setter(node: ast.AST, field: str) -> Callable[[ast.expr], None]:
    return lambda new: setattr(node, field, new)


def _item_setter(items: list[ast.expr], n: int) -> Callable[[ast.expr], None]:
    return lambda new: items.__setitem__(n, new)
