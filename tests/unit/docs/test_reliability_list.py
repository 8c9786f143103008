"""Tests that the list of the promise's tests names tests that exist and leaves out no number."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "docs" / "explanation" / "reliability-tests.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`([a-z_/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| (\d+) \|(.*)\|(.*)\|$", re.MULTILINE)


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((_ROOT / "tests" / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_every_test_named_exists() -> None:
    named = _TEST.findall(_PAGE)
    assert len(named) > 40
    missing = [f"{path}::{name}" for path, name in named if name not in _functions(path)]
    assert missing == []


def test_every_number_has_one_row_with_a_test_or_a_reason() -> None:
    rows = {int(number): (claim, proof) for number, claim, proof in _ROW.findall(_PAGE)}
    assert sorted(rows) == list(range(1, 45))
    assert len(_ROW.findall(_PAGE)) == 44
    for number, (claim, proof) in rows.items():
        assert claim.strip(), number
        proven = _TEST.search(proof) or "make " in proof or "cannot" in proof or "**open**" in proof
        assert proven, number
