"""What a box shows of its waits."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from dragoman_producer.box.screen import BoxScreen


def _screen(err: io.StringIO, *, terminal: bool = False) -> BoxScreen:
    console = Console(file=err, width=80, color_system=None, force_terminal=terminal)
    return BoxScreen("dragoman up", out=Console(file=io.StringIO()), err=console)


@pytest.mark.parametrize("terminal", [True, False])
async def test_a_step_shows_its_name_and_its_seconds(terminal: bool) -> None:
    err = io.StringIO()
    async with _screen(err, terminal=terminal).step("Loading the engine"):
        pass
    assert re.search(r"✓ Loading the engine  \d+\.\d s\n", err.getvalue())


async def test_a_failed_step_is_not_shown_as_done() -> None:
    err = io.StringIO()
    with pytest.raises(LookupError):
        async with _screen(err).step("Loading the engine"):
            raise LookupError
    assert "✓" not in err.getvalue()
