"""Tests of the verdicts that `dragoman result` prints, on any terminal and for any result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dragoman_producer.cli.showing import show
from dragoman_producer.cli.verdicts import Totals, check_status, verdict_lines, warning_lines
from dragoman_schemas.results import ItemError, ItemResult, TerminalStatus, TranslationResult

OK = ItemResult(text="Hallo.", quality="ok", attempts=1)
UNCHANGED = ItemResult(text="42", attempts=0)
UNCHECKED = ItemResult(text="Hallo.", attempts=1)
WARNED = ItemResult(
    id="greeting",
    text="Hallo.",
    quality="warn",
    attempts=2,
    warnings=["placeholders: %s is missing"],
    checks={"placeholders": "%s is missing", "numbers": {"verdict": "warn", "missing": ["12"]}},
)
FAILED = ItemResult(
    text="Hello.", quality="fail", fallback="source", attempts=3, checks={"copy": "0.97"}
)
BROKEN = ItemResult(error=ItemError(code="engine_failed", message="cut off"), attempts=3)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def result(*items: ItemResult, status: TerminalStatus = "completed") -> TranslationResult:
    return TranslationResult(job_id="a1", status=status, translations=list(items))


def test_the_items_to_look_at_are_listed_with_gates_and_text() -> None:
    assert list(verdict_lines(result(OK, WARNED, FAILED, UNCHANGED))) == [
        "a1 completed: 4 items: 1 ok, 1 warn, 1 fail, 1 unchanged",
        "  item 1 (greeting): warn",
        "    placeholders: %s is missing",
        "    numbers: verdict warn, missing ['12']",
        "    text: Hallo.",
        "  item 2: fail, source",
        "    copy: 0.97",
        "    text: Hello.",
    ]


def test_an_item_without_text_is_listed_with_its_error() -> None:
    lines = list(verdict_lines(result(OK, BROKEN, status="failed")))
    assert lines[1:] == ["  item 1: fail", "    engine_failed: cut off"]


def test_an_item_with_a_warning_is_listed_whatever_its_verdict() -> None:
    item = UNCHECKED.model_copy(update={"warnings": ["same_language: de"]})
    assert "    same_language: de" in list(verdict_lines(result(item)))


def test_the_summary_counts_items_by_verdict_and_gate() -> None:
    totals = Totals()
    totals.add(result(OK, WARNED, FAILED))
    totals.add(result(WARNED))
    assert list(totals.lines()) == [
        "2 jobs, 4 items: 1 ok, 2 warn, 1 fail",
        "  numbers: 2 items",
        "  placeholders: 2 items",
        "  copy: 1 item",
    ]


@pytest.mark.parametrize(
    ("items", "status"),
    [
        ([OK, UNCHANGED], 0),
        ([UNCHANGED], 0),
        ([OK.model_copy(update={"cached": True, "attempts": 0})], 0),
        ([UNCHECKED], 3),
        ([OK, WARNED], 3),
        ([OK, FAILED], 3),
        ([], 3),
    ],
)
def test_the_exit_status_of_check_is_3_if_an_item_needs_a_look(
    items: list[ItemResult], status: int
) -> None:
    assert check_status(result(*items)) == status


def test_result_prints_translations_and_on_stderr_what_needs_a_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert show(result(OK, WARNED), as_json=False) == 0
    out, err = capsys.readouterr()
    assert out == "Hallo.\nHallo.\n"
    assert err.splitlines()[:2] == [
        "job a1, item 1 (greeting): warn",
        "    placeholders: %s is missing",
    ]


def test_result_prints_nothing_more_for_items_that_are_ok_or_unchecked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert show(result(OK, UNCHECKED, UNCHANGED), as_json=False) == 0
    assert capsys.readouterr().err == ""


def test_result_names_the_command_for_the_items_that_it_leaves_out() -> None:
    lines = list(warning_lines(result(*[WARNED] * 30)))
    assert lines[-1] == "job a1: 20 more items; dragoman result --check a1"


def test_check_of_a_failed_job_is_1_with_the_reason_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert show(result(BROKEN, status="failed"), as_json=False, check=True) == 1
    out, err = capsys.readouterr()
    assert "item 0: fail" in out
    assert err.startswith("job a1: failed")


def test_json_is_the_same_with_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(result(WARNED), as_json=True) == 0
    without = capsys.readouterr()
    assert show(result(WARNED), as_json=True, check=True) == 3
    assert capsys.readouterr() == without


HOSTILE = "\x1b[2J\x1b]0;owned\x07 line\r\nitem 9: ok\t\u202egnorw\u2028\x00 日本語 👩‍🚀"


@pytest.mark.parametrize("columns", [1, 40, 100])
@pytest.mark.parametrize("long", [False, True])
def test_no_value_moves_the_cursor_or_leaves_its_line(
    columns: int, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    value = HOSTILE * (5_000 if long else 1)
    item = ItemResult(
        id=value,
        text=value,
        quality="fail",
        attempts=1,
        error=ItemError(code=value, message=value),
        warnings=[value] * 50,
        checks={value: {value: value}, "b": [value], "c": None},
    )
    totals = Totals()
    totals.add(result(item))
    for line in [*verdict_lines(result(item)), *warning_lines(result(item)), *totals.lines()]:
        assert cell_len(line) <= max(20, columns)
        assert line.replace("\u200d", "").isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.lists(st.text(), max_size=3))
def test_any_checks_and_warnings_can_be_printed(checks: dict[str, Any], warned: list[str]) -> None:
    item = ItemResult(text="x", quality="warn", checks=checks, warnings=warned)
    assert all("\n" not in line for line in verdict_lines(result(item)))
