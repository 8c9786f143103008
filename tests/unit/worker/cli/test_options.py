"""Values of `--set` are JSON where they can be, and `run` refuses settings from a pipe."""

from __future__ import annotations

import os

import pytest
from typer.testing import CliRunner

from dragoman_connections.settings import SettingsError, parse_pairs
from dragoman_worker.__main__ import app


@pytest.mark.parametrize("value", ["plain", "[1", "9" * 5_000, "[" * 100_000])
def test_a_value_that_is_no_json_is_text(value: str) -> None:
    assert parse_pairs([f"kafka.group_id={value}"]) == {"kafka.group_id": value}


def test_a_value_may_be_json_and_hold_an_equals_sign() -> None:
    assert parse_pairs(['engine.options={"a": "b=c"}']) == {"engine.options": {"a": "b=c"}}


@pytest.mark.parametrize("text", ["kafka.group_id", "=x", "=", ".=x", "kafka.=x", "kafka..a=x"])
def test_a_setting_without_a_whole_name_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="give NAME=VALUE"):
        parse_pairs([text])


def test_settings_from_a_pipe_are_refused_by_run_which_reads_them_in_every_replica() -> None:
    reading, writing = os.pipe()
    try:
        os.close(writing)
        result = CliRunner().invoke(app, ["run", "--config", f"/dev/fd/{reading}"])
    finally:
        os.close(reading)
    assert result.exit_code == 2
    assert "a pipe is read once" in result.output
