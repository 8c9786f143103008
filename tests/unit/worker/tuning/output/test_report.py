"""Report of `tune` at any width, with the engine's messages unchanged."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from dragoman_worker.tuning.knee import ChosenPoint
from dragoman_worker.tuning.output.report import show
from dragoman_worker.tuning.stages import Decision
from dragoman_worker.tuning.tuner import Findings

BRACKETS = "max_num_seqs: wrong [type=value_error] in [/models/x]"


def row(sequences: int, rate: float) -> dict[str, Any]:
    return {
        "drive": {"items": sequences},
        "jobs_per_s": rate,
        "output_tokens_per_s": 123_456.0,
        "decode_ms_per_token": 12.3,
        "latency_ms": {"p99": 98_765.0},
        "answer_tokens": None,
        "jobs": 10,
        "replicas": 1,
        "kv_usage_max": 0.87,
        "gpu_busy": 99.0,
    }


def found(**more: Any) -> Findings:
    spread = {"p50": 1_234, "p95": 2_345, "p99": 3_456, "max": 4_567}
    survey = {
        "jobs": 200,
        "model": "[/models/x]",
        "prompt_tokens": spread,
        "items_per_job": spread,
        "unplanned": 1,
        "first_error": BRACKETS,
    }
    sweep = [row(256, 1_111.0), row(512, 22_222.0)]
    return Findings(
        survey, sweep=sweep, comparison={"chosen": sweep[1], "default": sweep[0]}, **more
    )


def shown(findings: Findings, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(console, findings)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 50, 60, 69, 80, 120])
def test_sequences_rate_and_p99_are_uncut_at_every_width(width: int) -> None:
    printed = shown(found(), width)
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= width
    lines = [line.split() for line in printed.splitlines()]
    assert [line[:2] for line in lines if line[:1] in (["256"], ["512"])] == [
        ["256", "1,111"],
        ["512", "22,222"],
    ]
    assert sum("98,765" in line for line in lines) == 4


def test_several_engines_are_named_beside_their_row() -> None:
    findings = found()
    findings.comparison["default"] = {**row(256, 1_111.0), "replicas": 4}
    for width in (40, 120):
        printed = shown(findings, width)
        assert "as given x4" in printed
        assert "N engines on the GPU" in printed
        assert "…" not in printed
    assert "engines on the GPU" not in shown(found(), 40)


def test_a_wide_terminal_shows_all_columns() -> None:
    assert all(text in shown(found(), 120) for text in ("87 %", "99 %", "123,456", "█" * 16))


def test_words_in_brackets_are_printed_unchanged() -> None:
    findings = found(
        choice=ChosenPoint(256, BRACKETS, degraded=False),
        decisions=[Decision("fp8", BRACKETS)],
        notes=[BRACKETS],
    )
    assert shown(findings, 200).count(BRACKETS) == 4
    assert "200 jobs, [/models/x]" in shown(findings, 200)
