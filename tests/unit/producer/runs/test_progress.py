"""Tests of what `dragoman translate` prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman_producer.cli import translate_progress
from dragoman_producer.cli.translate_progress import Display
from dragoman_producer.runs.budget import Rate, Tokens, costs
from dragoman_producer.runs.events import (
    DocumentEnded,
    Extracted,
    Finished,
    Planned,
    Progressed,
    Working,
)

PLANNED = Planned(documents=10, segments=500, unique=400, missing=300, characters=9_000)


def test_a_plan_shows_what_it_costs_as_far_as_that_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Display(as_json=False).show(PLANNED, 1)
    assert capsys.readouterr().err.endswith("9,000 characters to translate\n")
    tokens = [Tokens(2_500, 2_750, 0.4, "a table by script")]
    for rate, said in (
        (None, "time: unknown until a run has finished; or give --rate"),
        (Rate(0.25, "--rate"), "time: 20:00 (by --rate), 0.33 GPU-hours with 1 GPU, price 0.67"),
        (Rate(0.25, "x", is_least=True), "time: at most 20:00 (by x)"),
    ):
        planned = replace(PLANNED, rows=500, budget=costs(300, tokens, rate, 1, 2.0))
        Display(as_json=False).show(planned, 1)
        shown = capsys.readouterr().err
        assert "500 rows, 10 documents" in shown
        assert "about 2,500 tokens in and 2,750 out, ±40% (by a table by" in shown
        assert said in shown


def test_the_line_begins_with_what_matters_most_for_a_narrow_terminal() -> None:
    display = Display(as_json=False)
    display.show(Extracted("a.md", 7, 120), 1)
    assert display.line(0.0) == "read 7 files, 120 segments"
    display.show(PLANNED, 1)
    display.show(Progressed(segments=100, tokens=2_500), 1)
    line = display.line(display.began + 10.0)
    assert line == "100/300 segments, 0:20 left, 10/s, 0/10 documents, 2,500 tokens"


def test_the_line_names_the_document_that_is_worked_on_for_longest() -> None:
    display = Display(as_json=False)
    display.show(Working("big.csv", "", "scanned", 12_000_000, 1_000_000_000), 1)
    assert display.line(0.0) == "read 0 files, 0 segments, big.csv: 12 of 1,000 MB scanned"
    display.show(Extracted("big.csv", 1, 300), 1)
    display.show(PLANNED, 1)
    display.show(Progressed(segments=300, tokens=9), 1)
    display.show(Working("big.csv", "de", "written", 0, 0), 1)
    display.show(Working("b.docx", "de", "written", 0, 0), 1)
    start, end = "300/300 segments, 0/10 documents, big.csv [de]", ", 9 tokens"
    assert display.line(display.began + 9.0) == f"{start} is being written and 1 more{end}"
    display.show(DocumentEnded("b.docx", "de", "done"), 1)
    display.show(Working("big.csv", "de", "written", 400_000_000, 1_000_000_000), 1)
    line = display.line(display.began + 9.0)
    assert line == f"{start.replace('0/10', '1/10')}: 400 of 1,000 MB written{end}"


def test_a_document_that_takes_long_is_a_line_of_progress_where_no_terminal_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translate_progress, "LINE_EVERY_S", 0.0)
    with Display(as_json=True) as display:
        display.show(Working("big.csv", "", "read", 2_000_000, 9_000_000), 1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "read 0 files, 0 segments, big.csv: 2 of 9 MB read\n"


def test_a_run_that_finds_no_file_says_why_it_may_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for hidden, more in ((0, ""), (3, "; 3 hidden files or folders were not read")):
        Display(as_json=False).show(Finished(1, None, {"hidden": hidden, "targets": {}}), 1)
        line = "no files found: the folders are empty, or --include and --exclude leave none"
        assert capsys.readouterr().err == f"{line}{more}\n"


def test_documents_that_need_a_look_are_one_line_each_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = Display(as_json=False)
    with display:
        display.show(Extracted("a.png", 1, 0, "unsupported_format", "no", skipped=True), 1)
        display.show(Extracted("l", 1, 0, "outside", "a link", skipped=True), 1)
        display.show(Extracted("b\n\x1b[2J.docx", 2, 0, "encrypted", "it has a password"), 1)
        display.show(PLANNED, 1)
        display.show(DocumentEnded("c.md", "de", "done", None, None, Path("out/de/c.md")), 1)
        display.show(DocumentEnded("d.md", "de", "failed", "skeleton", "why"), 1)
        for name in ("f.md", "g.md"):
            display.show(DocumentEnded(name, "de", "failed", "interrupted", "why"), 1)
        left = "1 text stays in English, at line 3 (no answer)"
        h = DocumentEnded("h.md", "de", "partial", None, left, Path("h.md"), is_new=False)
        display.show(h, 1)
        display.show(DocumentEnded("e.md", "de", "unchanged", None, None, Path("e")), 1)
        totals = {"targets": {"de": {"written": 1, "documents": 2, "new": 5, "source": 1} | ZERO}}
        assert "4/10 documents" in display.line(display.began)  # as many as the summary has
        status = display.show(Finished(3, Path("out/report.json"), totals), 1)
    assert status == 3
    captured = capsys.readouterr()
    assert captured.out == "out/de/c.md\n"
    assert captured.err.splitlines() == [
        "b \N{REPLACEMENT CHARACTER}[2J.docx: not read: it has a password (encrypted)",
        f"{PLAN}, 9,000 characters to translate",
        "d.md [de]: not written: why (skeleton); see report.json",
        "h.md [de]: 1 text stays in English, at line 3 (no answer); see report.json",
        "2 documents are not finished; rerun the same command to resume",
        "skipped: 1 file in unsupported formats",
        "skipped: 1 file, links",
        "de: 1 of 2 documents, 5 new, 1 left in the source language",
        "report: out/report.json",
    ]


PLAN = "10 documents, 500 segments, 400 unique, 100 already translated"
ZERO = dict.fromkeys(("reused", "memory", "edited", "warned"), 0)
