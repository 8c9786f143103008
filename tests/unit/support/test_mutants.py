"""The table of mutants fits the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutants import lua
from mutants.breaks import Always, Break, Delete, Drop, Later, Returns, Use, apply, functions
from mutants.run import broken
from mutants.table import MUTANTS

TESTS = Path(__file__).parents[2]


def test_every_mutant_applies_in_one_place_and_its_tests_exist() -> None:
    for mutant in MUTANTS:
        file, text = broken(mutant)
        if file.suffix == ".py":
            compile(text, file.name, "exec")
        assert all((TESTS / test).is_file() for test in mutant.tests.split())


def test_the_names_of_mutants_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        (Delete("log"), "if a and b: pass"),
        (Always("b", False), "if False: log(a)"),
        (Drop("b"), "if a: log(a)"),
        (Use("log(a)", "b"), "if a and b: b"),
        (Returns("1"), "return 1"),
    ],
)
def test_an_operator_breaks_a_function(how: Break, line: str) -> None:
    ((module, function),) = functions("def f(a, b):\n if a and b: log(a)", "f")
    apply(function, how)
    assert ast.unparse(module) == ast.unparse(ast.parse(f"def f(a, b):\n {line}"))


def test_a_statement_moves_behind_another_one() -> None:
    ((_, function),) = functions("class C:\n def f(self):\n  write()\n  x = 1\n  go()", "C.f")
    apply(function, Later("write", than="go"))
    assert [ast.unparse(line) for line in function.body] == ["x = 1", "go()", "write()"]


def test_what_applies_in_no_place_or_two_is_refused() -> None:
    ((_, function),) = functions("def f(a):\n g(a)\n g(a)", "f")
    with pytest.raises(ValueError, match="2 places"):
        apply(function, Delete("g"))
    with pytest.raises(ValueError, match="0 places"):
        lua.broken("return 1", Delete("HSET"))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Delete("'HDEL', key"), "local a = b and c\nif a or b then end"),
        (Always("a or", True), "local a = b and c\nif true then redis.call('HDEL', key) end"),
        (Drop("c"), "local a = b\nif a or b then redis.call('HDEL', key) end"),
        (Drop("a or"), "local a = b and c\nif b then redis.call('HDEL', key) end"),
    ],
)
def test_an_operator_breaks_a_script(how: Break, expected: str) -> None:
    script = "local a = b and c\nif a or b then redis.call('HDEL', key) end"
    assert lua.broken(script, how).split() == expected.split()
