"""A review explains every gate and every error code."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_producer.review.reasons import REASONS
from dragoman_schemas.failures import FailureCode
from dragoman_text.gates import GATES

QUALITY_PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "quality.md"
OF_NO_GATE = ["framing", "same_language", "pieces", "terms", "unjudged", "uncut"]
"""The other first words of a result's warnings."""


@pytest.mark.parametrize("gate", [*(gate.name for gate in GATES), *OF_NO_GATE])
def test_every_gate_and_every_other_warning_has_a_reason(gate: str) -> None:
    assert REASONS[gate]


@pytest.mark.parametrize("code", FailureCode)
def test_every_failure_code_has_a_reason(code: FailureCode) -> None:
    assert REASONS[code]


@pytest.mark.parametrize("gate", [gate.name for gate in GATES])
def test_every_gate_has_a_row_in_the_table_of_the_quality_page(gate: str) -> None:
    assert f"\n| `{gate}` | " in QUALITY_PAGE.read_text(encoding="utf-8")
