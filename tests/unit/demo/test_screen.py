"""Unit tests of the demo's output, in narrow terminals and in pipes."""

from __future__ import annotations

import io
import json

import pytest
from rich.cells import cell_len
from rich.console import Console

from dragoman_demo.samples import Sample
from dragoman_demo.screen import Screen
from dragoman_demo.translating import DemoReport, SampleOutcome

_DONE = [
    SampleOutcome(
        Sample("A greeting", "greeting", "Good [bold]morning[/bold]!", "en", "ja"),
        "completed",
        "おはようございます。" * 8,
        None,
        310,
    ),
    SampleOutcome(
        Sample("A greeting", "greeting", "Good [bold]morning[/bold]!", "en", "de"),
        "failed",
        None,
        "too_long: 700 tokens, 512 fit",
        40,
    ),
]


class _Screened:
    def __init__(self, width: int) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.screen = Screen(
            out=Console(file=self.out, width=width, color_system=None),
            err=Console(file=self.err, width=width, color_system=None),
        )


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_translations_fit_the_terminal_and_lose_nothing(width: int) -> None:
    screened = _Screened(width)
    screened.screen.translations(_DONE)
    text = screened.out.getvalue()
    assert max(cell_len(line) for line in text.splitlines()) <= width
    squeezed = "".join(text.split())
    assert squeezed.count("お") == 8
    # User text is never interpreted as markup.
    assert "[bold]" in squeezed
    assert squeezed.count("Good[bold]morning[/bold]!") == 1


def test_json_is_one_object_per_line_at_any_width() -> None:
    screened = _Screened(30)
    screened.screen.json_lines(_DONE)
    first, second = map(json.loads, screened.out.getvalue().splitlines())
    assert first["translation"] == _DONE[0].text
    assert first["job_id"] == "demo.greeting.en-ja"
    assert (second["translation"], second["error"]) == (None, "too_long: 700 tokens, 512 fit")


def test_failures_are_counted_by_reason_on_stderr() -> None:
    screened = _Screened(100)
    screened.screen.summary(DemoReport(_DONE, 0.5))
    assert screened.out.getvalue() == ""
    assert "1 of 2 jobs translated in 0.5 s (4.0 jobs/s)" in screened.err.getvalue()
    assert "1 failed: too_long" in screened.err.getvalue()
