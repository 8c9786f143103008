"""The table of mutants fits the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_has_exactly_one_place_in_the_code_and_existing_tests(mutant: Mutant) -> None:
    code = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert code.count(mutant.old) == 1
    if mutant.file.endswith(".py"):
        compile(code.replace(mutant.old, mutant.new), mutant.file, "exec")
    assert all((ROOT / "tests" / test).is_file() for test in mutant.tests.split())


def test_the_names_of_mutants_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
