"""Tests of how a command ends."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
import typer

from dragoman_producer.cli.terminal import INTERRUPTED, run


def test_ctrl_c_before_the_work_begins_is_one_line_without_a_warning_of_python(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def nothing() -> int:
        return 0

    def interrupted(_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "run", interrupted)
    work = nothing()
    with pytest.raises(typer.Exit) as ended:
        run(work)
    assert ended.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "dragoman: interrupted\n"
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
