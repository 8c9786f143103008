"""Tests of `dragoman-worker profiles` with a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman_worker.__main__ import app

OWN = "name='mine'\nuser='Into {{ target }}: {{ text }}'\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_the_profile_of_a_file_is_shown(file: Path) -> None:
    shown = CliRunner().invoke(app, ["profiles", "--file", str(file), "--to", "ja", "--json"])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout) == {
        "profile": "mine",
        "prompt": "--- user, enable_thinking=False\nInto Japanese: Good morning!",
    }


def test_a_wrong_file_is_a_usage_error_of_one_line(file: Path) -> None:
    file.write_text(OWN.replace("text", "txt"), encoding="utf-8")
    refused = CliRunner().invoke(app, ["profiles", "--file", str(file)])
    assert refused.exit_code == 2
    assert refused.stderr.strip().count("\n") == 0
    assert f"{file}: user: there is no variable txt" in refused.stderr
